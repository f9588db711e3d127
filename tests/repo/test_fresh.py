"""bin/fresh: a bare Debian in a folder, and the scripts beside it, as far as a test can go without making a system."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.tutorial.__main__ import BEGUN, CALLED, LEFT_OUT
from tests.offenders import holds_for
from tests.repo.product import ROOT
from tests.shell import complaints

FRESH = ROOT / "bin" / "fresh"
SUITES = ("bookworm", "trixie", "forky")
BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="bash is missing: apt-get install bash")


def fresh(*arguments: str, path: str | None = None) -> tuple[int, str, str]:
    environment = {"PATH": os.environ["PATH"] if path is None else path}
    done = subprocess.run([str(BASH), str(FRESH), *arguments], env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_a_newcomer_follows_the_pages_there_with_nothing_installed() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "do bin/fresh $$suite python3 -m tests.acceptance.tutorial || exit; done" in makefile
    assert "timeout --kill-after=60 900 make --silent check-fresh SUITES=trixie\n" in (ROOT / ".ci" / "run").read_text(
        encoding="utf-8"
    )
    alone = [sys.executable, "-S", "-c", "import tests.acceptance.tutorial.__main__"]
    assert subprocess.run(alone, cwd=ROOT, env={}, capture_output=True, text=True).stderr == ""


def test_the_newcomer_calls_each_target_of_the_page_or_says_why_not() -> None:
    page = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([a-z0-9-]+)", page))
    assert {*CALLED, *BEGUN, *LEFT_OUT} == targets
    assert not LEFT_OUT.keys() & {*CALLED, *BEGUN}
    assert [line for target, calls in CALLED.items() for line, _, _ in calls if f"make {target}" not in line] == []


def test_the_newcomer_gives_the_demo_each_setting_of_the_page() -> None:
    page = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| setting \| effect \|\n(.+?)\n\n", page, re.M | re.S)
    settings = {name for line in table.splitlines() for name in re.findall(r"`([A-Z_]+)=", line.split(" | ")[0])}
    given = {name for line, _, _ in CALLED["demo"] for name in re.findall(r" ([A-Z_]+)=", line)}
    assert settings - given == {"KEEP"}  # the demo of the README stays up by it


@holds_for([FRESH, ROOT / ".ci" / "run", ROOT / ".ci" / "install"])
def test_shellcheck_finds_nothing_in_a_script(path: Path) -> None:
    assert complaints(path) == ""

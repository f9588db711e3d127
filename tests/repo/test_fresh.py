"""bin/fresh: a bare Debian in a folder, and the scripts beside it, as far as a test can go without making a system."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.offenders import holds_for
from tests.repo.product import ROOT
from tests.repo.test_pythons import PYTHONS
from tests.shell import complaints

FRESH = ROOT / "bin" / "fresh"
SUITES = ("bookworm", "trixie", "forky")
BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="bash is missing: apt-get install bash")


def fresh(*arguments: str, path: str | None = None) -> tuple[int, str, str]:
    environment = {"PATH": os.environ["PATH"] if path is None else path}
    done = subprocess.run([str(BASH), str(FRESH), *arguments], env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_it_says_how_it_is_used_and_which_pythons_it_has() -> None:
    code, said, errors = fresh("--help")
    assert (code, errors) == (0, "")
    assert said.startswith("usage: bin/fresh SUITE COMMAND")
    assert [line.split()[0] for line in said.splitlines() if ", Python 3." in line] == [*SUITES]
    assert {line.split()[-1] for line in said.splitlines() if ", Python 3." in line} <= set(PYTHONS)


@holds_for(
    [
        (("sarge", "true"), "no suite is called sarge: bookworm, trixie and forky are known"),
        (("trixie",), "name a command to run, such as: bin/fresh trixie make demo EVENTS=3000"),
    ]
)
def test_a_wrong_call_is_one_line(case: tuple[tuple[str, ...], str]) -> None:
    arguments, said = case
    assert fresh(*arguments) == (2, "", f"fresh: {said}\n")


def test_what_is_missing_is_one_line_with_the_command_that_brings_it(tmp_path: Path) -> None:
    for name in ("dirname", "readlink"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    for user, said in (
        ("1000", "only root may make a system in a folder: run it with sudo"),
        ("0", "debootstrap is missing: apt-get install debootstrap util-linux git"),
    ):
        (tmp_path / "id").write_text(f"#!/bin/sh\necho {user}\n")
        (tmp_path / "id").chmod(0o755)
        assert fresh("trixie", "true", path=str(tmp_path)) == (2, "", f"fresh: {said}\n")


def test_make_runs_it_on_every_suite() -> None:
    assert f"\nSUITES ?= {' '.join(SUITES)}\n" in (ROOT / "Makefile").read_text(encoding="utf-8")


@holds_for([FRESH, ROOT / ".ci" / "run"])
def test_shellcheck_finds_nothing_in_a_script(path: Path) -> None:
    assert complaints(path) == ""

import re
import subprocess
import sys
from pathlib import Path

from tests.acceptance.tutorial.__main__ import BEGUN, CALLED, LEFT_OUT
from tests.offenders import holds_for
from tests.repo.product import ROOT
from tests.shell import complaints

PAGE = (ROOT / "docs" / "run.md").read_text(encoding="utf-8")


def test_the_program_of_a_newcomer_runs_with_nothing_installed() -> None:
    alone = [sys.executable, "-S", "-c", "import tests.acceptance.tutorial.__main__"]
    assert subprocess.run(alone, cwd=ROOT, env={}, capture_output=True, text=True).stderr == ""


def test_the_newcomer_calls_each_target_of_the_page_or_says_why_not_and_gives_the_demo_each_setting() -> None:
    assert {*CALLED, *BEGUN, *LEFT_OUT} == set(re.findall(r"`make ([a-z0-9-]+)", PAGE))
    assert not LEFT_OUT.keys() & {*CALLED, *BEGUN}
    assert [line for target, calls in CALLED.items() for line, _, _ in calls if f"make {target}" not in line] == []
    (table,) = re.findall(r"^\| setting \| effect \|\n(.+?)\n\n", PAGE, re.M | re.S)
    settings = {name for line in table.splitlines() for name in re.findall(r"`([A-Z_]+)=", line.split(" | ")[0])}
    given = {name for line, _, _ in CALLED["demo"] for name in re.findall(r" ([A-Z_]+)=", line)}
    assert settings - given == {"KEEP"}  # the demo of the README stays up by it


@holds_for([ROOT / "bin" / "fresh", ROOT / ".ci" / "run", ROOT / ".ci" / "install"])
def test_shellcheck_finds_nothing_in_a_script(path: Path) -> None:
    assert complaints(path) == ""

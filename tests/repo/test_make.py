"""Each setting of make is read by its target, or refused before anything starts. A newcomer calls each target."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.tutorial.__main__ import BEGUN, CALLED, LEFT_OUT
from tests.offenders import holds_for
from tests.repo.product import ROOT
from tests.rooms.found import main
from tests.schedule import SLOW
from tests.shell import complaints

MAKE = shutil.which("make")
pytestmark = pytest.mark.skipif(MAKE is None, reason="make is missing: apt-get install make")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
NAMES = "name home_security, flight_info or one like apps.orders"
READ = {target: names.split() for target, names in re.findall(r"^SETTINGS_OF_([\w-]+) := (.+)$", MAKEFILE, re.M)}


def rehearsed(*arguments: str) -> tuple[int, str]:
    """Return the code of a call that runs no recipe, and its fault."""
    done = subprocess.run([str(MAKE), "-n", *arguments], cwd=ROOT, env={}, capture_output=True, text=True)
    return done.returncode, done.stderr


@holds_for(
    [
        (("test", "PORT=8080"), "PORT: make test does not read it; it is a setting of: "),
        (("demo", "HUB_PORT=1"), "HUB_PORT: make demo does not read it; it is a setting of: run."),
    ]
)
def test_a_setting_that_the_target_does_not_read_is_refused(case: tuple[tuple[str, ...], str]) -> None:
    code, fault = rehearsed(*case[0])
    assert (code, case[1] in fault) == (2, True), fault


def test_a_name_of_no_room_is_one_line_that_says_what_to_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert 'python -m tests.rooms.found "$(TRANSFORM)") || exit;' in MAKEFILE
    for name in ("zzz", "apps.zzz", "../apps", "a b"):
        assert main(name) == 2
        assert capsys.readouterr().err == f"check-room: there is no room {name}: {NAMES}\n"
    assert main("core") == 2
    assert capsys.readouterr().err.startswith("check-room: core is not a room: ")
    for name in ("home_security", "examples.home_security", "examples.home_security.transform"):
        assert main(name) == 0
        assert capsys.readouterr().out == "examples.home_security\n"


def test_a_target_takes_its_settings_and_every_setting_has_a_target() -> None:
    for target, names in READ.items():
        given = [f"{name}=1" for name in names if "$" not in name]
        code, fault = rehearsed(target, *given)
        assert "does not read it" not in fault, (target, code)
    declared = {name for name in re.findall(r"^(\w+) \?=", MAKEFILE, re.M) if name not in ("PYTHON", "SUITES")}
    of_demo = re.findall(r"^OF_DEMO := (.+)$", MAKEFILE, re.M)[0].split()
    assert declared - {name for names in (*READ.values(), of_demo) for name in names} == set()


def test_a_target_that_the_workflow_calls_is_in_the_makefile() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    called = set(re.findall(r"^ *(?:- run: |run: )?make ([\w-]+)", workflow, re.M))
    assert "test-sqlserver" in called
    assert called - set(re.findall(r"^([\w-]+):", MAKEFILE, re.M)) == set()


def test_each_subject_has_a_proof_in_make_test_and_no_proof_is_of_anything_else() -> None:
    texts = [path.read_text(encoding="utf-8") for room in SLOW for path in (ROOT / "tests" / room).rglob("test_*.py")]
    assert {one for text in texts for one in re.findall(r'pytest\.mark\.proof\("([^"]+)"\)', text)} == {
        "event", "letter", "replay", "gap", "aggregation", "incarnation", "worker", "API", "page", "command line",
        "room", "upgrade",
    }  # fmt: skip


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

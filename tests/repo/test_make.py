import re
import shutil
import subprocess

import pytest

from tests.offenders import holds_for
from tests.repo.product import ROOT
from tests.rooms.found import main
from tests.schedule import SLOW

MAKE = shutil.which("make")
pytestmark = pytest.mark.skipif(MAKE is None, reason="make is missing: apt-get install make")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
NAMES = "name home_security, flight_info or one like apps.orders"
READ = {target: names.split() for target, names in re.findall(r"^SETTINGS_OF_([\w-]+) := (.+)$", MAKEFILE, re.M)}


def rehearsed(*arguments: str) -> tuple[int, str]:
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

"""tests/schedule.py: the longest modules run first, and the end of a run says what it left out."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.schedule import ROOT, module_of, room_of, stored_seconds, unit_of

TWO = """
import pytest

@pytest.mark.slow
def test_slow() -> None:
    pass

@pytest.mark.slow
@pytest.mark.proof("letter")
def test_proof() -> None:
    pass

def test_fast() -> None:
    pass
"""


def test_a_module_is_one_unit_unless_its_package_shares_a_server() -> None:
    assert unit_of("tests/core/test_a.py::TestB::test_c[d::e]") == "tests/core/test_a.py"
    assert unit_of("tests/acceptance/api/test_a.py::test_b") == "tests/acceptance/api"
    assert unit_of("tests/acceptance/apis/test_a.py::test_b") == "tests/acceptance/apis/test_a.py"


def test_a_room_is_a_folder_of_tests_or_one_of_its_parts() -> None:
    places = {
        "tests/spark/test_a.py": "spark",
        "tests/acceptance/worker/test_a.py": "acceptance/worker",
        "tests/core/store/test_a.py": "core",
        "tests/infra/deployer/test_a.py": "infra",
        "examples/flight_info/tests/test_a.py": "examples",
    }
    assert {module: room_of(module) for module in places} == places


def test_the_stored_seconds_are_those_of_modules_that_are_here() -> None:
    stored = stored_seconds()
    assert len(stored) > 50
    assert [module for module in stored if not (ROOT / module).exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_run_of_proofs_says_what_it_left_out(tmp_path: Path, processes: str) -> None:
    for name in ("test_a.py", "test_b.py"):
        (tmp_path / name).write_text(TWO)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow\n soak\n proof\n")
    options = ("-p", "tests.schedule", "-n", processes, "-m", "not slow or proof", "--rootdir", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    assert "left out: make test-all has 2 tests more (" in done.stdout
    assert module_of("test_a.py::test_b") == "test_a.py"

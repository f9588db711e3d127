"""bench/report/suite.py: no part stops another, and no run leaves half a result."""

import os
import signal
import time
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.report.results import PartResult, ResultsRefused, read_results
from bench.report.suite import Suite, held
from local.programs import Interrupted
from tests.bench.report.parts import COUNTS, SPEED

PARTS = "tests.bench.report.parts"


def measured(folder: Path, *parts: str, size: str = "") -> dict[str, PartResult]:
    suite = Suite(folder / "results.json", (), os.environ, time.sleep, size, PARTS)
    return {result.part: result for result in suite.measure({part: {} for part in parts})}


def stored(folder: Path) -> dict[str, PartResult]:
    return {result.part: result for result in read_results(folder / "results.json").get("", [])}


def test_each_part_leaves_an_entry_with_its_figures_its_tables_and_its_circumstances(tmp_path: Path) -> None:
    measured(tmp_path, "good")
    measured(tmp_path, "good", size="full")
    found = stored(tmp_path)["good"]
    assert found.size == ""
    assert read_results(tmp_path / "results.json")["full"][0].figures == found.figures
    assert (found.figures, found.tables, found.fault) == ((SPEED,), (COUNTS,), None)
    assert {"processor", "cores", "kernel", "python", "sqlite", "azure-eventhub"} <= found.machine.keys()
    assert found.commit
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


@pytest.mark.slow
def test_a_part_that_raises_dies_or_exits_is_a_fault_in_its_entry_and_stops_no_other(tmp_path: Path) -> None:
    results = measured(tmp_path, "raising", "killed", "leaving", "good")
    faults = {name: result.fault for name, result in stored(tmp_path).items()}
    assert faults == {name: result.fault for name, result in results.items()}
    assert str(faults.pop("raising")).startswith("RuntimeError: 3 of 5 letters are in store.db (tests/")
    assert faults == {
        "killed": "its process ended with SIGKILL and left no results",
        "leaving": "its process ended with code 3 and left no results",
        "good": None,
    }
    assert results["raising"].figures == (SPEED,)


def test_ctrl_c_gives_a_part_time_to_clean_up_and_keeps_the_results_before(tmp_path: Path) -> None:
    def pause(seconds: float) -> None:
        time.sleep(seconds)
        if (tmp_path / "begun").exists():
            raise Interrupted(signal.SIGINT)

    environment = {**os.environ, "BENCH_FOLDER": str(tmp_path)}
    suite = Suite(tmp_path / "results.json", (), environment, pause, module=PARTS)
    with pytest.raises(Interrupted):
        list(suite.measure({"good": {}, "endless": {}, "late": {}}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["begun", "cleaned", "results.json"]
    assert stored(tmp_path).keys() == {"good"}


def test_a_second_run_on_a_file_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    with (
        held(tmp_path / "new" / "results.json"),
        pytest.raises(ResultsRefused, match="a different run writes"),
        held(tmp_path / "new" / "results.json"),
    ):
        pass
    with held(tmp_path / "new" / "results.json"):
        pass


@pytest.mark.parametrize(
    ("file", "reason"), [("file/results", "cannot hold results"), ("file", "is no whole file of results")]
)
def test_a_file_that_cannot_be_used_is_refused_before_anything_is_measured(
    tmp_path: Path, file: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert main(["--results", str(tmp_path / file), "local"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert reason in shown.err
    assert len(shown.err.splitlines()) == 1

"""bench/report: no part stops another, a file holds whole results, and pages and pictures say what the results say.

The parts fail in every way: this module runs in place of `bench` then.
"""

import json
import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.figures import Figure, Result, Table
from bench.report.__main__ import RESULTS
from bench.report.__main__ import main as make_pages
from bench.report.part import measure_part
from bench.report.results import PartResult, ResultsRefused, read_results, results_of, text_of, write_result
from bench.report.suite import Suite, held

SPEED = Figure("speed", 7.5, "x", ">= 5", True, "measured")
LATE = Figure("delay", 9.0, "s", "<= 2", False)
COUNTS = Table("Counts", ("peer", "lost"), (("ours", 0), ("theirs", 12), ("unknown", None)))
WAY = Table("CPU of the whole way", ("stage", "µs"), (("receive", 40.0), ("decode", 10), ("log", None)))


def good() -> Iterator[Result]:
    yield SPEED
    yield COUNTS


def raising() -> Iterator[Result]:
    yield SPEED
    raise RuntimeError("3 of 5 letters are in /somewhere/on/this/machine/store.db\nand more")


def killed() -> Iterator[Result]:
    yield SPEED
    os.kill(os.getpid(), signal.SIGKILL)


def leaving() -> Iterator[Result]:
    yield SPEED
    sys.exit(3)


def suite(folder: Path, size: str = "", pause: object = time.sleep) -> Suite:
    environment = {**os.environ, "BENCH_FOLDER": str(folder)}
    return Suite(folder / "results.json", (), environment, pause, size, "tests.bench.test_report")  # type: ignore[arg-type]


def stored(folder: Path, size: str = "") -> dict[str, PartResult]:
    return {result.part: result for result in read_results(folder / "results.json").get(size, [])}


@pytest.mark.slow
def test_each_part_leaves_an_entry(tmp_path: Path) -> None:
    parts = ("raising", "killed", "leaving", "good")
    measured = {one.part: one for one in suite(tmp_path).measure({part: {} for part in parts})}
    list(suite(tmp_path, "full").measure({"good": {}}))
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    found = stored(tmp_path)["good"]
    assert (found.size, found.figures, found.tables, found.fault) == ("", (SPEED,), (COUNTS,), None)
    assert stored(tmp_path, "full")["good"].figures == found.figures
    assert {"processor", "cores", "kernel", "python", "sqlite", "azure-eventhub"} <= found.machine.keys()
    assert found.commit
    faults = {name: result.fault for name, result in stored(tmp_path).items()}
    assert faults == {name: result.fault for name, result in measured.items()}
    assert str(faults.pop("raising")).startswith("RuntimeError: 3 of 5 letters are in store.db (tests/")
    assert faults == {
        "killed": "its process ended with SIGKILL and left no results",
        "leaving": "its process ended with code 3 and left no results",
        "good": None,
    }
    assert measured["raising"].figures == (SPEED,)


def test_a_file_that_is_taken_or_cannot_be_used_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "new" / "results.json"
    with held(taken), pytest.raises(ResultsRefused, match="a different run writes"), held(taken):
        pass
    with held(taken):
        pass
    (tmp_path / "file").touch()
    for file, reason in (("file/results", "cannot hold results"), ("file", "is no whole file of results")):
        assert main(["--results", str(tmp_path / file), "local"]) == 1
        shown = capsys.readouterr()
        assert (shown.out, reason in shown.err, len(shown.err.splitlines())) == ("", True, 1)


def test_a_result_is_read_as_it_was_written_and_a_file_that_is_cut_off_is_refused_with_its_name(tmp_path: Path) -> None:
    path, result = tmp_path / "results.json", measure_part("good", good)
    large, other = replace(result, size="full"), replace(result, part="better")
    for one in (large, replace(result, seconds=7.0), replace(large, size="server"), other, result):
        write_result(path, one)
    assert read_results(path) == {"": [other, result], "full": [large], "server": [replace(large, size="server")]}
    text = text_of([result]).rstrip()
    for length in range(0, len(text), 17):
        path.write_text(text[:length], encoding="utf-8")
        with pytest.raises(ResultsRefused, match=r"results\.json is no whole file of results"):
            read_results(path)
    for value in (math.inf, math.nan):
        text = text_of([replace(result, figures=(replace(SPEED, value=value),))])
        assert json.loads(text)[0]["figures"][0]["value"] is None
        assert math.isnan(results_of(text)[0].figures[0].value)


def result(
    part: str, *figures: Figure, tables: tuple[Table, ...] = (), settings: dict[str, str] | None = None
) -> PartResult:
    of: Mapping[str, str | int] = {"processor": "A chip", "cores": 2}
    at = "2026-01-02T10:00:00+00:00"
    return PartResult(part, at, 61.2, "abc1234", False, of, (0.2, 7.4), settings or {}, figures, tables, 0.2)


def test_a_page_keeps_what_is_written_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("docs/images", "bench"):
        (tmp_path / folder).mkdir(parents=True)
    readme, path = tmp_path / "README.md", tmp_path / RESULTS
    readme.write_text("By hand.\n<!-- results: the targets -->\nold\n<!-- end of results -->\nTail.\n")
    (tmp_path / "docs" / "plain.md").write_text("No results.\n")
    write_result(path, result("way", SPEED, tables=(WAY,)))
    assert make_pages(tmp_path) == 0
    first = readme.read_text(encoding="utf-8")
    assert first.startswith("By hand.\n<!-- results: the targets -->\n\nMeasured on ")
    assert first.endswith("<!-- end of results -->\nTail.\n")
    assert "old" not in first
    assert (tmp_path / "docs" / "images" / "way.svg").exists()
    assert (make_pages(tmp_path), readme.read_text(encoding="utf-8")) == (0, first)
    path.write_text(path.read_text(encoding="utf-8")[:99], encoding="utf-8")
    assert (make_pages(tmp_path), readme.read_text(encoding="utf-8")) == (1, first)
    assert "results.json is no whole file of results" in capsys.readouterr().err


if __name__ == "__main__":
    _, _, file, part = sys.argv
    Path(file).write_text(text_of([measure_part(part, globals()[part])]), encoding="utf-8")

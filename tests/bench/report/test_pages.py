"""bench/report/words.py, pages.py and pictures.py: pages and pictures say what the results say."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench.figures import Figure, Table
from bench.report.__main__ import RESULTS, main
from bench.report.pictures import pictures_of
from bench.report.results import PartResult, write_result
from bench.report.words import front, targets
from tests.bench.report.parts import LATE, SPEED

PEERS = Table(
    "Peers",
    ("peer", "fed at, events per second", "events/s"),
    (("ours", 7, 9000), ("(a) <blob> & more", 6, 812.4), ("(e) Spark", None, 500), ("(f)", None, None)),
)
LOSSES = Table(
    "Losses",
    ("peer", "kills: rows lost", "lost deliveries: events", "rows lost", "rows doubled", "rows doubled again"),
    (("ours", 0, 900, 0, 0, 0), ("(a) <blob> & more", 3, 900, 500, 1_000, 200)),
)
WAY = Table("CPU of the whole way", ("stage", "µs"), (("receive", 40.0), ("decode", 10), ("log", None)))


def result(part: str, *figures: Figure, tables: tuple[Table, ...] = (), **more: object) -> PartResult:
    machine: Mapping[str, str | int] = {"processor": "A chip", "cores": 2}
    plain = PartResult(
        part, "2026-01-02T10:00:00+00:00", 61.2, "abc1234", False, machine, (0.2, 7.4), {}, figures, tables, 0.2
    )
    return replace(plain, **more)  # type: ignore[arg-type]


def test_the_front_page_shows_first_what_each_peer_lost_then_the_rates_and_targets_in_two_sentences() -> None:
    results = {"": [result("peers", SPEED, tables=(PEERS, LOSSES)), result("way", LATE)]}
    words = front(results, pictures_of(results), "docs/images")
    table, _, said = words.rpartition("\n\n")
    assert table.startswith("**Losses**")
    assert "| (a) &lt;blob> & more | 3 | 900 | 500 | 1,000 | 200 |" in table
    assert said == (
        "Hubledger takes 9,000 (ours) events/s, the fastest of the peers 812 ((a) &lt;blob> & more)."
        " 1 of 2 targets are met, measured on 2 cores (A chip), 2026-01-02."
    )


def test_the_targets_have_each_figure_with_a_target_once_at_the_largest_size_of_its_part() -> None:
    free = replace(SPEED, name="a free figure", target="", met=None)
    here = [result("ingest", SPEED, LATE, free), result("size", SPEED)]
    large = [result("size", replace(SPEED, name="size, speed", value=9.0), settings={"BENCH_EVENTS": "7"})]
    words = targets({"": here, "full": large}, {}, "")
    assert words.splitlines()[-3:] == [
        "| `ingest` | speed | 7.5 x | >= 5, met |",
        "|  | delay | 9 s | &lt;= 2, **missed** |",
        "| `size`, `BENCH_EVENTS=7` | speed | 9 x | >= 5, met |",
    ]
    assert "a free figure" not in words
    assert words.startswith("Measured on 2 cores (A chip), 2026-01-02.")


def test_a_page_keeps_what_is_written_by_hand_and_a_second_run_or_a_broken_file_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs" / "images").mkdir(parents=True)
    (tmp_path / "bench").mkdir()
    (tmp_path / "README.md").write_text(
        "By hand.\n<!-- results: the targets -->\nold\n<!-- end of results -->\nTail.\n"
    )
    (tmp_path / "docs" / "plain.md").write_text("No results.\n")
    write_result(tmp_path / RESULTS, result("way", SPEED, tables=(WAY,)))
    assert main(tmp_path) == 0
    first = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert first.startswith("By hand.\n<!-- results: the targets -->\n\nMeasured on ")
    assert first.endswith("<!-- end of results -->\nTail.\n")
    assert "old" not in first
    assert (tmp_path / "docs" / "images" / "way.svg").exists()
    assert main(tmp_path) == 0
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == first
    path = tmp_path / RESULTS
    path.write_text(path.read_text(encoding="utf-8")[:99], encoding="utf-8")
    assert main(tmp_path) == 1
    assert "results.json is no whole file of results" in capsys.readouterr().err
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == first

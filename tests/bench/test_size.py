import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

import pytest

from bench.figures import Figure
from bench.peers.latency import Fed
from bench.size import paced, size
from bench.size.looks import Look, Usage
from bench.size.published import Expectation, SummedRecord, Sums, compared
from local.feed.businesses import HOMES
from local.feed.homes import EXPECT_FILTERED, EXPECT_POISON, Expected
from local.feed.planned_events import WRITTEN, Minute, PlannedEvent
from local.feed.record import ONCE, Copies, Record, published_copies

MB = 1 << 20
SLOW = ["share of 7,000 events/s accounted for", "from enqueued to committed at that pace, p99"]
READING = Expected(WRITTEN, "motion", "motion-1", "active", None, 5, alerts=1)
OTHER = READING._replace(state="idle", alerts=0)
ARMED = Expected(WRITTEN, "registration", time_zone="Etc/UTC", armed=1)
Rows = list[tuple[object, ...]]
ROWS: dict[str, Rows] = {
    "sensor_reading": [("home-1", "motion-1", "motion", state, None, 5) for state in ("active", "idle")],
    "home_alert": [("home-1", "motion-1", "motion", None, 5)],
    "home": [("home-1", "Etc/UTC", 0)],
}
CHANGES: dict[str, Callable[[Rows], Rows]] = {
    "lost": lambda rows: rows[1:],
    "doubled": lambda rows: [*rows, rows[-1]],
    "one lost and another doubled": lambda rows: [rows[-1], *rows[1:-1], (*rows[-1][:-1], 7)],
    "changed": lambda rows: [("home-2", *rows[0][1:]), *rows[1:]],
}


def look(number: int, cpu: float, worker: float = 100.0) -> Look:
    """A look each second at a run of 8,000 events per second, with two workers."""
    usage = {
        "worker-1": Usage(int(worker * MB), cpu * number), "worker-2": Usage(100 * MB, cpu * number),
        "emulator": Usage(50 * MB, number / 10), "publisher": Usage(40 * MB, number / 5),
    }  # fmt: skip
    files = {"store": 100 * 8_000 * number, "log": 4_000_000, "hub": 20 * MB}
    return Look(float(number), 8_000 * number, (0.5, 1.5), usage, files)


def fed(each: int) -> Fed:
    commits = [(f"{n % 2}", each * (n // 2) - 1, each * (n // 2 + 1) - 1, 100.0 + n) for n in range(21)]
    return Fed("telemetry", 7_000, commits)


def values(figures: Iterable[Figure]) -> dict[str, tuple[object, bool | None]]:
    return {one.name.removeprefix("size, "): (pytest.approx(one.value), one.met) for one in figures}


def missed(figures: Iterable[Figure]) -> list[str]:
    return [name for name, (_, met) in values(figures).items() if met is False]


def test_a_steady_run_meets_each_target_and_one_that_grows_or_gets_slower_misses_them() -> None:
    steady = list(size.figures([look(number, 0.2) for number in range(21)]))
    assert missed(steady) == []
    expected = {
        "events accounted for per second, after a fifth": (8_000, True),
        "memory of the workers, against after a fifth": (1.0, True),
        "CPU of the workers per event": (50.0, None),
        "CPU of the publishers per event": (25.0, None),
        "growth of the store per event": (100.0, None),
        "growth of the store, last fifth against second": (1.0, True),
        "lag, 99 of 100 looks at a partition": (1.5, None),
    }
    assert {name: values(steady)[name] for name in expected} == expected
    found = values(size.figures([look(number, 0.2, worker=100.0 + 5 * number) for number in range(21)]))
    assert found["memory of the workers, against after a fifth"] == (300 / 220, False)
    slower = size.figures([look(number, 0.2 + 0.01 * number) for number in range(21)])
    assert "CPU of the workers per event, last fifth against second" in missed(slower)


def test_workers_that_keep_the_pace_meet_each_target_and_those_that_fall_behind_miss_both() -> None:
    assert values(paced.figures(fed(7_000), (400.0, 1_999.0))) == {
        SLOW[0]: (100, True),
        "from enqueued to committed at that pace, median": (0.4, None),
        SLOW[1]: (1.999, True),
    }
    assert missed(paced.figures(fed(6_800), (1_500.0, 2_000.0))) == SLOW


def differences(folder: Path, rows: dict[str, Rows]) -> list[str]:
    sums = {name: Sums() for name in rows}
    for name, found in rows.items():
        for one in found:
            sums[name].add(*one)
    return list(compared(Expectation.load(folder / "expected.json"), sums))


def publish(folder: Path, copies: Copies) -> None:
    """Record six events, one of them a letter. The home was armed, and is not any more."""
    with closing(Record(folder / "record.db", HOMES, 1, 1)) as record:
        summed = SummedRecord(record, folder / "expected.json")
        for expected in ((ARMED, READING), (OTHER, EXPECT_FILTERED, EXPECT_POISON), (ARMED._replace(armed=0),)):
            summed.add(Minute("home-1", [PlannedEvent(b"body", one) for one in expected]), copies)
        summed.complete()


def test_a_different_row_is_a_difference_of_its_table_and_an_equal_one_is_none_in_any_order(tmp_path: Path) -> None:
    publish(tmp_path, ONCE)
    with closing(sqlite3.connect(tmp_path / "record.db")) as connection:
        rows = connection.execute("SELECT outcome, at_least, at_most, body FROM event ORDER BY outcome").fetchall()
    assert rows == [("filtered", 1, 1, None), ("poison", 1, 1, b"body"), ("written", 4, 4, None)]
    assert published_copies(tmp_path / "record.db") == Copies(6, 6)
    assert differences(tmp_path, {name: rows[::-1] for name, rows in ROWS.items()}) == []
    for table in ROWS:
        for change, made in CHANGES.items():
            found = differences(tmp_path, {**ROWS, table: made(ROWS[table])})
            assert [one.partition(":")[0] for one in found] == [table], change

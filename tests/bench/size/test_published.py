"""bench/size/published.py: the record of a run, in which a lost, doubled or changed row is seen."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from bench.size.published import Expectation, SummedRecord, Sums, compared
from local.feed.businesses import HOMES
from local.feed.homes import EXPECT_FILTERED, EXPECT_POISON, Expected
from local.feed.planned_events import WRITTEN, Minute, PlannedEvent
from local.feed.record import ONCE, Copies, Record, published_copies

READING = Expected(WRITTEN, "motion", "motion-1", "active", None, 5, alerts=1)
OTHER = READING._replace(state="idle", alerts=0)
ARMED = Expected(WRITTEN, "registration", time_zone="Etc/UTC", armed=1)
ROWS: dict[str, list[tuple[object, ...]]] = {
    "sensor_reading": [("home-1", "motion-1", "motion", state, None, 5) for state in ("active", "idle")],
    "home_alert": [("home-1", "motion-1", "motion", None, 5)],
    "home": [("home-1", "Etc/UTC", 0)],
}


def found(rows: Mapping[str, list[tuple[object, ...]]]) -> dict[str, Sums]:
    sums = {name: Sums() for name in rows}
    for name, values in rows.items():
        for one in values:
            sums[name].add(*one)
    return sums


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a record of six events, one of them a letter; the home was armed, and is not any more."""
    publish(tmp_path, ONCE)
    return tmp_path


def publish(folder: Path, copies: Copies) -> None:
    with closing(Record(folder / "record.db", HOMES, 1, 1)) as record:
        summed = SummedRecord(record, folder / "expected.json")
        for expected in ((ARMED, READING), (OTHER, EXPECT_FILTERED, EXPECT_POISON), (ARMED._replace(armed=0),)):
            summed.add(Minute("home-1", [PlannedEvent(b"body", one) for one in expected]), copies)
        summed.complete()


def test_the_record_has_each_letter_and_a_row_for_each_other_outcome(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "record.db")) as connection:
        rows = connection.execute("SELECT outcome, at_least, at_most, body FROM event ORDER BY outcome").fetchall()
    assert rows == [("filtered", 1, 1, None), ("poison", 1, 1, b"body"), ("written", 4, 4, None)]
    assert published_copies(folder / "record.db") == Copies(6, 6)


def test_equal_rows_differ_in_nothing_whatever_their_order(folder: Path) -> None:
    turned = {name: rows[::-1] for name, rows in ROWS.items()}
    assert list(compared(Expectation.load(folder / "expected.json"), found(turned))) == []


CHANGES: dict[str, Callable[[list[tuple[object, ...]]], list[tuple[object, ...]]]] = {
    "lost": lambda rows: rows[1:],
    "doubled": lambda rows: [*rows, rows[-1]],
    "one lost and another doubled": lambda rows: [rows[-1], *rows[1:-1], (*rows[-1][:-1], 7)],
    "changed": lambda rows: [("home-2", *rows[0][1:]), *rows[1:]],
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("table", ROWS)
def test_another_row_is_a_difference_of_its_table(folder: Path, table: str, change: str) -> None:
    differences = list(
        compared(Expectation.load(folder / "expected.json"), found({**ROWS, table: CHANGES[change](ROWS[table])}))
    )
    assert [one.partition(":")[0] for one in differences] == [table]


def test_a_send_without_an_answer_leaves_open_what_was_published(tmp_path: Path) -> None:
    publish(tmp_path, Copies(1, 2))
    (difference,) = compared(Expectation.load(tmp_path / "expected.json"), found(ROWS))
    assert difference.startswith("record: the hub has not answered 3 sends")

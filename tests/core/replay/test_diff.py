"""core/replay/diff.py: what a dry run shows of each event, and its exact counts."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from core.model.events import Event
from core.model.rows import References, Row, appended_to
from core.replay.diff import SHOWN, document, rehearsed_piece
from core.replay.pieces import Rehearsal, ReplayJob, RetractedRow
from examples.flight_info.transform import FlightChange
from examples.home_security.transform import HomeAlert, SensorReading
from tests.fakes.builders import alert, home, reading
from tests.fakes.memory_store import MemoryStore
from tests.fakes.replaying import World, changed, log_of, order
from tests.sql.statements import replay_of
from tests.sql.values import row_of


@appended_to("quote")
@dataclass(frozen=True, slots=True)
class Quote:
    """A row with values that have several texts."""

    price: Decimal
    ratio: float
    at: datetime


Rows = Callable[[Event, References], Iterable[Row]]


def dry_run(before: Rows, after: Rows, *bodies: str) -> tuple[ReplayJob, dict[int, Any]]:
    """The job and the diffs by number, of a log that was ingested by one transform and rehearsed by another."""
    world = World(MemoryStore(), {"0": log_of(*(bodies or ("x",)))}, changed(before, "before"))
    world.transform = changed(after, "after")
    job = world.replay(order(dry_run=True))
    diffs = world.store.read_replay_diffs(job.task.task_id, None, 10_000)
    return job, {one.sequence_number: json.loads(one.diff) for one in diffs}


def always(*rows: Row) -> Rows:
    return lambda event, references: rows


def failing(event: Event, references: References) -> Iterable[Row]:
    raise ValueError("no more")


def changes(job: ReplayJob) -> tuple[int, int, int, int]:
    counts = job.counts
    return counts.events_changed, counts.rows_added, counts.rows_removed, counts.rows_changed


def test_rows_that_stay_the_same_are_no_change() -> None:
    same = always(reading("a"), alert("a"), home("a"))
    job, diffs = dry_run(same, same, "x", "y")
    assert (changes(job), diffs) == ((0, 0, 0, 0), {})


def test_a_changed_row_shows_its_columns_before_and_after() -> None:
    job, diffs = dry_run(always(reading("a", ppm=5)), always(reading("a", ppm=None)))
    assert changes(job) == (1, 0, 0, 1)
    assert diffs[0]["outcome"] == "written"
    (row,) = diffs[0]["changed"]
    assert (row["table"], row["columns"]) == ("sensor_reading", {"ppm": [5, None]})
    assert row["row"] == document(reading("a", ppm=None))


def test_a_whole_number_that_javascript_would_round_is_shown_as_a_text() -> None:
    job, diffs = dry_run(always(reading(ppm=2**53 + 1)), always(reading(ppm=2**53 - 1), reading(ppm=-(2**63))))
    assert changes(job) == (1, 1, 0, 1)
    assert diffs[0]["changed"][0]["columns"] == {"ppm": [str(2**53 + 1), 2**53 - 1]}
    assert diffs[0]["added"][0]["row"]["ppm"] == str(-(2**63))


def test_a_time_that_does_not_exist_in_utc_is_shown_with_its_zone() -> None:
    row = reading(at=datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=5))))
    assert document(row)["observed_at"] == "9999-12-31T23:00:00-05:00"


def test_a_value_that_a_database_writes_with_a_different_text_is_no_change() -> None:
    """A column of ten places gives 1.5 back as 1.5000000000."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    before = Quote(Decimal("1.5000000000"), 3.0, at)
    given = Quote(Decimal("1.5"), 3, at.astimezone(timezone(timedelta(hours=2))))
    commit = replay_of((), letters=False)
    number = commit.numbers[0]
    rehearsal = Rehearsal((RetractedRow(number, 0, before),), 0, 0)

    def events_changed(row: Quote) -> int:
        settled = replace(commit.settled, rows={Quote: [(number, 0, row)]})
        return rehearsed_piece(replace(commit, settled=settled), rehearsal, {}).counts.events_changed

    assert events_changed(given) == 0
    assert events_changed(replace(given, price=Decimal("1.50000000001"))) == 1


def test_rows_more_and_less_are_added_and_removed() -> None:
    job, diffs = dry_run(always(reading("a"), reading("b")), always(reading("a"), alert("a")))
    assert changes(job) == (1, 1, 1, 0)
    assert [one["table"] for one in diffs[0]["added"]] == ["home_alert"]
    assert [one["row"]["home_id"] for one in diffs[0]["removed"]] == ["b"]


def test_a_row_that_only_comes_later_among_the_others_of_its_event_is_no_change() -> None:
    job, diffs = dry_run(always(reading("a")), always(alert("a"), reading("a")))
    assert changes(job) == (1, 1, 0, 0)
    assert diffs[0]["changed"] == []


def test_an_event_that_fails_now_shows_its_error_and_its_rows_removed() -> None:
    job, diffs = dry_run(always(reading("a"), alert("a")), failing)
    assert changes(job) == (1, 0, 2, 0)
    assert (diffs[0]["outcome"], diffs[0]["error"]) == ("dead_lettered", "no more")
    assert (job.counts.letters_added, job.counts.dead_lettered) == (1, 1)


def test_an_event_that_writes_nothing_now_is_filtered() -> None:
    job, diffs = dry_run(always(reading("a")), always())
    assert (changes(job), diffs[0]["outcome"]) == ((1, 0, 1, 0), "filtered")


def test_a_state_is_compared_with_the_one_that_stands() -> None:
    job, diffs = dry_run(always(home("a")), always(home("a", armed=True)), "x", "y")
    assert changes(job) == (1, 0, 0, 1)  # the first event's state gave way long ago
    assert diffs[1]["changed"][0]["columns"] == {"armed": [False, True]}
    job, diffs = dry_run(always(home("a")), always(home("a"), home("b")), "x", "y")
    assert (changes(job), diffs[1]["added"][0]["row"]["home_id"]) == ((1, 1, 0, 0), "b")


def test_a_state_that_a_newer_event_wrote_is_no_change_of_an_older_one() -> None:
    def by_place(event: Event, references: References) -> Iterable[Row]:
        return [home("a", armed=event.body == b"on")]

    world = World(MemoryStore(), {"0": log_of("on", "off")}, changed(by_place))
    job = world.replay(order(["0"], 0, 0, dry_run=True))
    assert changes(job) == (0, 0, 0, 0)


def test_only_the_first_events_that_change_are_shown_and_all_are_counted() -> None:
    job, diffs = dry_run(always(reading("a")), always(reading("b")), *["x"] * (SHOWN + 70))
    assert changes(job) == (SHOWN + 70, 0, 0, SHOWN + 70)
    assert sorted(diffs) == list(range(SHOWN))


@pytest.mark.parametrize("row_class", [SensorReading, HomeAlert, FlightChange])
def test_a_document_is_json_with_instants_in_utc(row_class: type) -> None:
    told = document(row_of(row_class))
    assert json.loads(json.dumps(told)) == told
    stamp = told.get("observed_at", told.get("changed_at"))
    assert stamp == "2026-01-01T00:00:00Z"

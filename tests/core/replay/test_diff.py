import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.model.events import Event
from core.model.rows import References, Row, appended_to, row_table
from core.replay.diff import SHOWN, document, rehearsed_piece
from core.replay.pieces import Rehearsal, ReplayJob, RetractedRow
from examples.flight_info.transform import FlightChange, FlightStatus
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import alert, home, reading
from tests.fakes.replaying import FLIGHTS, World, changed, changes_of, log_of, minute_of, now_as, order
from tests.fakes.store import MemoryStore
from tests.simulation.deployments import TRANSFORMS
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


def test_an_event_that_fails_or_writes_nothing_now_shows_its_rows_removed() -> None:
    job, diffs = dry_run(always(reading("a"), alert("a")), failing)
    assert changes(job) == (1, 0, 2, 0)
    assert (diffs[0]["outcome"], diffs[0]["error"]) == ("dead_lettered", "no more")
    assert (job.counts.letters_added, job.counts.dead_lettered) == (1, 1)
    job, diffs = dry_run(always(reading("a")), always())
    assert (changes(job), diffs[0]["outcome"]) == ((1, 0, 1, 0), "filtered")


def test_a_state_is_compared_with_the_one_that_stands() -> None:
    job, diffs = dry_run(always(home("a")), always(home("a", armed=True)), "x", "y")
    assert changes(job) == (1, 0, 0, 1)  # the first event's state gave way long ago
    assert diffs[1]["changed"][0]["columns"] == {"armed": [False, True]}
    job, diffs = dry_run(always(home("a")), always(home("a"), home("b")), "x", "y")
    assert (changes(job), diffs[1]["added"][0]["row"]["home_id"]) == ((1, 1, 0, 0), "b")


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
    row = reading(at=datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=5))))  # it does not exist in UTC
    assert document(row)["observed_at"] == "9999-12-31T23:00:00-05:00"


BODIES = ["home a 0", "home a 1", "home b 1", "reading a", "double b", "look a", "look b", "quiet", "bug", "poison"]
LOGS = st.lists(st.sampled_from(BODIES), min_size=1, max_size=25)
RANGES = st.tuples(st.integers(0, 24), st.integers(0, 24)).map(sorted)

Standing = Counter[tuple[int, str, str]]


def standing_rows(store: MemoryStore) -> Standing:
    return Counter(
        (one.sequence_number, row_table(each).name, text_of(document(one.row)))
        for each in (SensorReading, HomeAlert, Home)
        for one in store.rows(each)
    )


def appended(rows: Standing) -> Standing:
    return Counter({key: count for key, count in rows.items() if key[1] != "home"})


def states(rows: Standing) -> set[str]:
    return {text for _, table, text in rows if table == "home"}


def diffs_of(world: World, job: ReplayJob) -> list[tuple[int, dict[str, Any]]]:
    found = world.store.read_replay_diffs(job.task.task_id, None, 1_000)
    return [(one.sequence_number, json.loads(one.diff)) for one in found]


def applied(before: Standing, diffs: list[tuple[int, dict[str, Any]]]) -> Standing:
    """The rows that there would be after the changes that a dry run shows."""
    after = Counter(before)
    for number, diff in diffs:
        for one in diff["removed"]:
            after[number, one["table"], text_of(one["row"])] -= 1
        for one in diff["added"]:
            after[number, one["table"], text_of(one["row"])] += 1
        for one in diff["changed"]:
            old = {**one["row"], **{name: pair[0] for name, pair in one["columns"].items()}}
            after[number, one["table"], text_of(old)] -= 1
            after[number, one["table"], text_of(one["row"])] += 1
    return +after


def text_of(columns: dict[str, Any]) -> str:
    return json.dumps(columns, sort_keys=True)


def stored_world(bodies: list[str]) -> tuple[World, MemoryStore]:
    store = MemoryStore()
    return World(store, {"0": log_of(*bodies)}), store


@pytest.mark.slow
@given(LOGS, st.sampled_from(TRANSFORMS), RANGES)
@settings(max_examples=200)
def test_a_dry_run_shows_exactly_what_the_replay_then_does(bodies: list[str], transform: Any, span: list[int]) -> None:
    world, store = stored_world(bodies)
    first, last = (min(one, len(bodies) - 1) for one in span)
    world.transform = transform
    before = standing_rows(store)
    dry = world.replay(order(["0"], first, last, dry_run=True))
    assert standing_rows(store) == before
    shown, real = diffs_of(world, dry), world.replay(order(["0"], first, last))
    assert appended(applied(before, shown)) == appended(standing_rows(store))
    assert states(applied(before, shown)) >= states(standing_rows(store)) - states(before)
    for name in ("events", "written", "filtered", "dead_lettered", "letters_added", "letters_resolved", "states_left"):
        assert getattr(dry.counts, name) == getattr(real.counts, name), name


@pytest.mark.slow
@given(LOGS, st.sampled_from(TRANSFORMS), st.lists(RANGES, max_size=4))
@settings(max_examples=150)
def test_doing_a_replay_again_changes_nothing(bodies: list[str], transform: Any, spans: list[list[int]]) -> None:
    world, store = stored_world(bodies)
    world.transform = transform
    for span in [*spans, [0, len(bodies) - 1]]:
        world.replay(order(["0"], *(min(one, len(bodies) - 1) for one in span)))
    before, letters = standing_rows(store), [(one.sequence_number, one.status, one.error) for one in store.letters()]
    dry = world.replay(order(dry_run=True))
    assert (dry.counts.events_changed, dry.counts.letters_added, dry.counts.letters_resolved) == (0, 0, 0)
    world.replay()
    assert standing_rows(store) == before
    assert [(one.sequence_number, one.status, one.error) for one in store.letters()] == letters
    assert [books.balanced for books in store.read_ledgers()] == [True]


FLIGHT_BODIES = st.sampled_from(["quiet 1", *(f"{key} {minute}" for key in (1, 2) for minute in range(5)), "look 1"])
FLIGHT_LOGS = st.lists(FLIGHT_BODIES, min_size=1, max_size=8)


@pytest.mark.slow
@given(
    FLIGHT_LOGS, FLIGHT_LOGS, st.dictionaries(st.integers(0, 7), FLIGHT_BODIES, max_size=4), st.sampled_from([1, 2, 9])
)
@settings(max_examples=400)
def test_a_replay_that_leaves_no_state_ends_in_the_greatest_values_and_its_dry_run_says_the_same(
    bodies: list[str], others: list[str], now: dict[int, str], piece: int
) -> None:
    store = MemoryStore()
    world = World(store, {"0": log_of(*bodies), "1": log_of(*others)}, FLIGHTS, piece=piece)
    world.transform = now_as(now)
    asked = order(["0"])
    dry = world.replay(replace(asked, is_dry_run=True))
    changes = [one["row"] for one in changes_of(world, dry) if one["table"] == "flight_status"]
    real = world.replay(asked)
    for name in ("written", "rows_retracted", "states_left", "states_lowered"):
        assert getattr(dry.counts, name) == getattr(real.counts, name), name
    stands = {cast(FlightStatus, one.row).flight_number: document(one.row) for one in store.rows(FlightStatus)}
    assert {one["flight_number"]: one for one in changes}.items() <= stands.items()
    said = [("0", at, now.get(at, body)) for at, body in enumerate(bodies)]
    said += [("1", at, now.get(at, body)) for at, body in enumerate(others)]
    wanted: dict[int, tuple[int, str, int]] = {}
    for id, at, body in said:
        if body[0] in "12":
            key, minute = map(int, body.split())
            wanted[key] = max(wanted.get(key, (-1, "", 0)), (minute, id, at))
    for _ in range(2):
        real = world.replay()
    if not real.counts.states_left:
        found = [
            (cast(FlightStatus, one.row), one.partition_id, one.sequence_number) for one in store.rows(FlightStatus)
        ]
        assert {row.flight_number: (minute_of(row), *place) for row, *place in found} == wanted

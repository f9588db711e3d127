"""Whatever is replayed, however often: a dry run shows exactly what the replay does, and doing it again is nothing."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.model.rows import row_table
from core.replay.diff import document
from core.replay.pieces import ReplayJob
from examples.flight_info.transform import FlightStatus
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.memory_store import MemoryStore
from tests.fakes.ordered_flights import FLIGHTS, changes_of, minute_of, now_as
from tests.fakes.replaying import World, log_of, order
from tests.simulation.deployments import TRANSFORMS

BODIES = ["home a 0", "home a 1", "home b 1", "reading a", "double b", "look a", "look b", "quiet", "bug", "poison"]
LOGS = st.lists(st.sampled_from(BODIES), min_size=1, max_size=25)
RANGES = st.tuples(st.integers(0, 24), st.integers(0, 24)).map(sorted)

Rows = Counter[tuple[int, str, str]]


def rows_of(store: MemoryStore) -> Rows:
    """Every row by the number that it carries, its table and its columns."""
    return Counter(
        (one.sequence_number, row_table(each).name, _text(document(one.row)))
        for each in (SensorReading, HomeAlert, Home)
        for one in store.rows(each)
    )


def appended(rows: Rows) -> Rows:
    return Counter({key: count for key, count in rows.items() if key[1] != "home"})


def states(rows: Rows) -> set[str]:
    return {text for _, table, text in rows if table == "home"}


def diffs_of(world: World, job: ReplayJob) -> list[tuple[int, dict[str, Any]]]:
    found = world.store.read_replay_diffs(job.task.task_id, None, 1_000)
    return [(one.sequence_number, json.loads(one.diff)) for one in found]


def applied(before: Rows, diffs: list[tuple[int, dict[str, Any]]]) -> Rows:
    """The rows that there would be after the changes that a dry run shows."""
    after = Counter(before)
    for number, diff in diffs:
        for one in diff["removed"]:
            after[number, one["table"], _text(one["row"])] -= 1
        for one in diff["added"]:
            after[number, one["table"], _text(one["row"])] += 1
        for one in diff["changed"]:
            old = {**one["row"], **{name: pair[0] for name, pair in one["columns"].items()}}
            after[number, one["table"], _text(old)] -= 1
            after[number, one["table"], _text(one["row"])] += 1
    return +after


def _text(columns: dict[str, Any]) -> str:
    return json.dumps(columns, sort_keys=True)


def world_of(bodies: list[str]) -> tuple[World, MemoryStore]:
    store = MemoryStore()
    return World(store, {"0": log_of(*bodies)}), store


@pytest.mark.slow
@given(LOGS, st.sampled_from(TRANSFORMS), RANGES)
@settings(max_examples=200)
def test_a_dry_run_shows_exactly_what_the_replay_then_does(bodies: list[str], transform: Any, span: list[int]) -> None:
    world, store = world_of(bodies)
    first, last = (min(one, len(bodies) - 1) for one in span)
    world.transform = transform
    before = rows_of(store)
    dry = world.replay(order(["0"], first, last, dry_run=True))
    assert rows_of(store) == before
    shown, real = diffs_of(world, dry), world.replay(order(["0"], first, last))
    assert appended(applied(before, shown)) == appended(rows_of(store))
    assert states(applied(before, shown)) >= states(rows_of(store)) - states(before)
    for name in ("events", "written", "filtered", "dead_lettered", "letters_added", "letters_resolved", "states_left"):
        assert getattr(dry.counts, name) == getattr(real.counts, name), name


@pytest.mark.slow
@given(LOGS, st.sampled_from(TRANSFORMS), st.lists(RANGES, max_size=4))
@settings(max_examples=150)
def test_doing_a_replay_again_changes_nothing(bodies: list[str], transform: Any, spans: list[list[int]]) -> None:
    world, store = world_of(bodies)
    world.transform = transform
    for span in [*spans, [0, len(bodies) - 1]]:
        world.replay(order(["0"], *(min(one, len(bodies) - 1) for one in span)))
    before, letters = rows_of(store), [(one.sequence_number, one.status, one.error) for one in store.letters()]
    dry = world.replay(order(dry_run=True))
    assert (dry.counts.events_changed, dry.counts.letters_added, dry.counts.letters_resolved) == (0, 0, 0)
    world.replay()
    assert rows_of(store) == before
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

"""Promises of every store about states that a column orders: the greatest value stands, in every order of commits."""

import random
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import permutations
from typing import Any, cast

import pytest

from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import Event
from core.model.rows import References, Row
from core.model.transforms import Transform
from examples.flight_info.transform import FlightStatus
from examples.home_security.transform import SensorReading
from tests.core.letters.test_store import resolved, retry
from tests.fakes.builders import EPOCH, batch, claim, commit, event, keep_letters, partition, settled, stamps
from tests.fakes.kept import Engine
from tests.fakes.ordered_flights import FLIGHTS, changes_of, flight, minute_of, now_as
from tests.fakes.replaying import World, log_of, order
from tests.fakes.store import Store


def standing(engine: Engine) -> dict[int, tuple[int, str, int]]:
    """Return the minute, the partition and the sequence number of each flight."""
    kept = [(cast(FlightStatus, one.row), one) for one in engine.rows(FlightStatus)]
    return {row.flight_number: (minute_of(row), one.partition_id, one.sequence_number) for row, one in kept}


def put(store: Store, number: int, rows: Sequence[Row], place: str = "0", group: str = "hubledger") -> None:
    state = store.read_partition(partition(place, group=group))
    store.commit_batch(commit(state, number, number, settled({number: rows})))


def ingest(store: Store, id: str, *bodies: str, first: int = 0) -> None:
    given = [event(first + at, body) for at, body in enumerate(bodies)]
    ingest_batch(batch(given, partition(id)), Ingestion(store, FLIGHTS, stamps(first)))


@pytest.mark.parametrize(("minutes", "expected"), [((5, 3), (5, "0", 0)), ((3, 5), (5, "1", 0)), ((5, 5), (5, "1", 0))])
def test_the_greatest_value_stands_and_between_equals_the_position(
    store: Store, engine: Engine, minutes: tuple[int, int], expected: tuple[int, str, int]
) -> None:
    for id, minute in zip("01", minutes, strict=True):
        put(store, 0, [flight(1, minute)], id)
        put(store, 0, [flight(2, minutes[1 - int(id)])], "10" if id == "0" else "9")
    found = standing(engine)
    assert found[1] == expected
    assert found[2][0] == max(minutes)


def test_the_greatest_value_stands_within_a_partition_a_commit_and_an_event_and_between_equals_the_later_one(
    store: Store, engine: Engine
) -> None:
    for number, minute in enumerate((3, 9, 4, 9, 8)):
        put(store, number, [flight(1, minute)])
    assert standing(engine) == {1: (9, "0", 3)}
    rows = {5: [flight(2, 7), flight(2, 5)], 6: [flight(2, 7, "later"), flight(2, 7, "last")], 7: [flight(2, 6)]}
    store.commit_batch(commit(store.read_partition(partition()), 5, 7, settled(rows)))
    _, kept = engine.rows(FlightStatus)
    assert (kept.row, kept.sequence_number) == (flight(2, 7, "last"), 6)
    put(store, 0, [flight(1, 9, "second"), flight(2, 7, "second")], group="other")
    put(store, 8, [flight(2, 7, "first")])
    assert [cast(Any, one.row).status for one in engine.rows(FlightStatus)] == ["second", "second"]


@pytest.mark.parametrize("seed", range(4))
def test_every_order_of_commits_of_several_partitions_ends_in_the_same_row(
    store: Store, engine: Engine, seed: int
) -> None:
    chance = random.Random(seed)
    minutes = {(id, at): chance.randrange(4) for id in ("0", "1", "10") for at in range(2)}
    orders = [
        one for one in permutations(minutes) if all(one.index((id, 0)) < one.index((id, 1)) for id in ("0", "1", "10"))
    ]  # of one partition the events are in order
    numbers = dict.fromkeys(("0", "1", "10"), 0)
    for key, one in enumerate(chance.sample(orders, 20)):
        for id, at in one:
            put(store, numbers[id], [flight(key, minutes[id, at], f"{id} {at}")], id)
            numbers[id] += 1
    place, minute = max(minutes.items(), key=lambda one: (one[1], one[0]))
    found = [(cast(FlightStatus, one.row).status, minute_of(one.row)) for one in engine.rows(FlightStatus)]
    assert found == [(f"{place[0]} {place[1]}", minute)] * 20


def test_partitions_that_commit_one_key_at_once_end_in_the_greatest_value(store: Store, engine: Engine) -> None:
    def work(id: int) -> None:
        for number in range(10):
            put(store, number, [flight(key, 10 * number + (id + key) % 4) for key in range(5)], str(id))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert {key: minute for key, (minute, *_) in standing(engine).items()} == dict.fromkeys(range(5), 93)


def test_a_later_event_sees_the_greatest_value_and_not_the_last(store: Store, engine: Engine) -> None:
    ingest(store, "0", "1 5", "1 3", "look 1")
    ingest(store, "0", "1 2", "look 1", first=3)
    assert [cast(SensorReading, one.row).ppm for one in engine.rows(SensorReading)] == [5, 5]


@pytest.mark.parametrize("minute", [3, 5, 7])
def test_a_retry_writes_its_row_only_if_it_is_the_greatest(store: Store, engine: Engine, minute: int) -> None:
    keep_letters(store, {2: "a"})
    put(store, 3, [flight(1, 5)])
    store.claim_letters(claim())
    store.commit_retry(retry(store, [resolved(2)], settled({2: [flight(1, minute)]})))
    assert standing(engine)[1] == (max(minute, 5), "0", 2 if minute == 7 else 3)


def test_a_value_that_has_no_order_is_a_letter_and_stops_no_other_event(store: Store, engine: Engine) -> None:
    def wrong(given: Event, references: References) -> Iterable[Row]:
        at = [EPOCH, EPOCH.replace(tzinfo=None), 7, None, EPOCH][given.sequence_number]
        return [replace(flight(1, 0, str(given.sequence_number)), changed_at=cast(Any, at))]

    ingest_batch(batch(event(number) for number in range(5)), Ingestion(store, Transform("test/1", wrong), stamps()))
    assert [(one.sequence_number, one.error_class) for one in engine.letters()] == [(at, "refused") for at in (1, 2, 3)]
    assert all("FlightStatus.changed_at is declared datetime, and" in one.error for one in engine.letters())
    assert standing(engine) == {1: (0, "0", 4)}


# What partition 0 said, what partition 1 said, what events of partition 0 say now, the expected minute and its event,
# and the most states of which an older value may be written. Random ones are in tests/core/replay.
REPLAYS: dict[str, tuple[list[str], list[str], dict[int, str], tuple[int, str, int], int]] = {
    "its own event says less, a later one more": (["1 5", "1 9", "1 7"], [], {1: "1 6"}, (7, "0", 2), 1),
    "they change places": (["1 5", "1 9", "1 7"], [], {0: "1 12", 1: "1 3"}, (12, "0", 0), 0),
    "a different partition is equal": (["1 5", "1 9"], ["1 11"], {1: "1 11"}, (11, "1", 0), 0),
    "a letter now has rows": (["quiet 1", "quiet 1"], ["1 11"], {0: "1 12", 1: "1 10"}, (12, "0", 0), 0),
    "it does not write it again": (["1 5", "1 9", "1 7"], [], {1: "quiet 1"}, (9, "0", 1), 0),
    "two of one event": (["1 5", "1 9,1 8", "1 7"], [], {1: "1 3,1 6"}, (7, "0", 2), 1),
}


@pytest.mark.parametrize("piece", [1, 2, 500])
@pytest.mark.parametrize("case", REPLAYS)
def test_a_replay_takes_back_what_its_event_wrote_and_the_greatest_value_stands(
    store: Store, engine: Engine, case: str, piece: int
) -> None:
    before, others, now, expected, lowered = REPLAYS[case]
    world = World(store, {"0": log_of(*before), **({"1": log_of(*others)} if others else {})}, FLIGHTS, piece=piece)
    world.transform = now_as(now)
    dry, real = world.replay(order(["0"], dry_run=True)), world.replay(order(["0"]))
    assert standing(engine)[1] == expected
    for name in ("events", "written", "rows_retracted", "states_left", "states_lowered"):
        assert getattr(dry.counts, name) == getattr(real.counts, name), name
    assert real.counts.states_left == (case == "it does not write it again") + real.counts.states_lowered
    assert real.counts.states_lowered <= lowered
    again = world.replay(order(["0"], dry_run=True))
    assert (again.counts.events_changed, again.counts.states_lowered) == (0, 0)


@pytest.mark.parametrize("piece", [1, 500])
def test_a_lowered_state_is_counted_and_a_second_replay_ends_in_the_greatest_value(
    store: Store, engine: Engine, piece: int
) -> None:
    """Rows that lost are not stored: an event of an earlier piece, or of a different partition, may have one."""
    world = World(store, {"0": log_of("1 5", "1 9"), "1": log_of("1 7")}, FLIGHTS, piece=piece)
    world.transform = now_as({1: "1 3"})
    only = order(["0"])
    dry = world.replay(replace(only, is_dry_run=True))
    first = world.replay(only)
    assert (dry.counts.states_left, first.counts.states_left) == (1, 1)
    assert standing(engine)[1] == ((3, "0", 1) if piece == 1 else (5, "0", 0))
    assert [world.replay().counts.states_left for _ in range(2)] == [0, 0]
    assert standing(engine)[1] == (7, "1", 0)


@pytest.mark.parametrize("piece", [1, 2, 500])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_replayed_event_sees_the_greatest_value_of_the_events_before_it(
    store: Store, engine: Engine, piece: int, dry_run: bool
) -> None:
    bodies = ["1 5", "look 1", "1 3", "look 1", "1 9", "look 1", "1 8", "look 1"]
    world = World(store, {"0": log_of(*bodies)}, FLIGHTS, piece=piece)
    before = [one.row for one in engine.rows(SensorReading)]
    assert [cast(SensorReading, row).ppm for row in before] == [5, 5, 9, 9]
    again = world.replay(order(["0"], dry_run=dry_run))
    assert (again.counts.rows_changed, [one.row for one in engine.rows(SensorReading)]) == (0, before)
    world.transform = now_as({0: "1 6", 4: "1 4"})
    job = world.replay(order(["0"], dry_run=dry_run))
    found = [row for one in engine.rows(SensorReading) if (row := cast(SensorReading, one.row))]
    ppm = [change["row"]["ppm"] for change in changes_of(world, job) if change["table"] == "sensor_reading"]
    assert (ppm if dry_run else [row.ppm for row in found]) == [6, 6, 6, 8]


def test_a_batch_that_commits_between_two_pieces_keeps_its_newer_row(store: Store, engine: Engine) -> None:
    world = World(store, {"0": log_of("1 5", "1 9")}, FLIGHTS, piece=1)
    world.transform = now_as({1: "1 3"})
    job = world.ask(order(["0"]))
    ingest(store, "1", "1 20")
    world.work(job)
    assert standing(engine)[1] == (20, "1", 0)

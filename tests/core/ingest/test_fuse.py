from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import DataRefused, OutageSuspected, PoisonEvent, StopReason, StoreUnavailable
from core.ingest.stalled_partitions import Healed, SilenceCheck, Unhealed
from core.model.commits import BatchCommit, PartitionState
from core.model.events import Event
from core.model.rows import References, Row
from core.model.transforms import Transform
from tests.core.ingest.conftest import FUSE, HOLDING, QUIET, World
from tests.fakes.builders import event, events, partition
from tests.fakes.store import MemoryStore


@pytest.fixture
def world() -> World:
    return World(fuse=FUSE)


def held(world: World, given: Sequence[Event]) -> bool:
    try:
        world.take(*given)
    except OutageSuspected:
        return True
    return False


def letters(world: World) -> int:
    return len(world.store.letters())


def mixed(good: int, bad: int, word: str = "bug", first: int = 0) -> list[Event]:
    return [*events(first, first + good - 1, "reading a"), *events(first + good, first + good + bad - 1, word)]


@pytest.mark.parametrize(
    ("good", "bad", "is_held"),
    [(0, 9, False), (0, 10, True), (10, 10, True), (11, 10, False), (40, 40, True), (41, 39, False)],
)
def test_a_batch_is_held_from_the_share_and_the_floor_on(world: World, good: int, bad: int, is_held: bool) -> None:
    assert held(world, mixed(good, bad)) is is_held
    assert letters(world) == (0 if is_held else bad)
    assert [stop.reason for stop in world.stops] == (["outage"] if is_held else [])


@pytest.mark.parametrize(
    ("good", "bad", "is_held"),
    [(0, 0, False), (99, 0, False), (99, 1, False), (100, 1, True), (400, 4, True), (396, 4, False)],
)
def test_poison_holds_a_partition_only_if_less_than_one_in_a_hundred_of_many_events_failed(
    world: World, good: int, bad: int, is_held: bool
) -> None:
    if good:
        world.take(*mixed(good, bad, "poison"))
    assert held(world, mixed(0, 50, "poison", first=good + bad)) is is_held


def test_a_partition_whose_good_events_turn_to_poison_is_held_once(world: World) -> None:
    """A deployment or a schema has changed. When the letters are accepted, the partition is no longer a good one."""
    world.take(*mixed(3_000, 29, "poison"))
    tries = [held(world, mixed(5, 40, "poison", first=3_029)) for _ in range(FUSE.patience + 1)]
    assert tries == [True, True, True, False]
    assert "40 of 45 events fail" in world.stops[0].detail
    for first in (3_074, 3_119):
        assert not held(world, mixed(5, 40, "poison", first=first))
    assert (world.stops, letters(world)) == ((), 29 + 3 * 40)


def test_a_few_events_of_poison_or_a_mended_transform_end_the_hold(world: World) -> None:
    world.take(*mixed(200, 0))
    assert held(world, mixed(0, 50, "poison", first=200))
    world.take(*mixed(0, 50, "poison", first=200), transform=QUIET)
    assert (letters(world), world.stops) == (0, ())
    assert held(world, mixed(0, 50, first=250))
    assert not held(world, mixed(0, 1, "poison", first=250))
    assert world.stops == ()


def test_two_classes_are_not_added_up_and_poison_does_not_count_beside_an_outage(world: World) -> None:
    def half_poison(event: Event, references: References) -> Iterable[Row]:
        raise PoisonEvent("odd") if event.sequence_number % 2 else KeyError("even")

    assert not held(world, [*events(0, 8, "bug"), *events(9, 17, "look nobody")])
    assert letters(world) == 18
    other = World(fuse=FUSE)
    other.means = replace(other.means, transform=Transform("test/1", half_poison))
    assert held(other, mixed(0, 20))
    strict = World(fuse=replace(FUSE, share=0.6))
    assert not held(strict, [*events(0, 9, "poison"), *events(10, 19, "bug")])


def test_after_its_patience_the_letters_are_accepted_so_that_bad_events_cannot_block_for_ever(world: World) -> None:
    for attempt in range(1, FUSE.patience + 1):  # the store counts, so a restart does not begin anew
        assert held(world, mixed(5, 20))
        ((stop,), words) = world.stops, ("20 of 25 events fail", f"attempt {attempt} of 3", "unknown: 'bug'")
        assert stop.attempts == attempt
        assert [word for word in words if word not in stop.detail] == []
    assert not held(world, mixed(5, 20))
    assert letters(world) == 20
    assert not held(world, mixed(0, 20, first=25)), "further bad batches are accepted at once"
    assert [stop.attempts for stop in world.stops] == [3]
    assert not held(world, mixed(20, 0, first=45))
    assert world.stops == ()
    assert held(world, mixed(0, 20, first=65)), "the first healthy batch sets the fuse again"


def test_a_held_batch_is_held_on_whatever_its_size(world: World) -> None:
    class Unclearing(MemoryStore):
        """A store that cannot be reached between two transactions."""

        def clear_stops(self, state: PartitionState, reasons: Collection[StopReason]) -> None:
            raise StoreUnavailable("the connection is lost")

    world.means = replace(world.means, store=Unclearing())
    assert held(world, mixed(0, 50))
    assert held(world, mixed(0, 3))
    world.take(*mixed(0, 20), transform=QUIET)
    assert world.means.store.read_partition(partition()).stops == ()


def test_a_table_that_refuses_every_row_stops_after_few_letters_and_adds_none_while_it_is_held(world: World) -> None:
    class Refusing(MemoryStore):
        def commit_batch(self, commit: BatchCommit) -> int:
            if commit.settled.rows_written:
                raise DataRefused("no such table")
            return super().commit_batch(commit)

    world.store = Refusing()
    world.means = replace(world.means, store=world.store)
    assert held(world, mixed(100, 0))
    assert (before := letters(world)) < FUSE.floor
    assert held(world, mixed(100, 0))
    assert letters(world) == before


def test_the_silence_check_holds_a_gap_too_and_clears_the_stop_once_nothing_waits() -> None:
    world = World(mixed(0, 40), fuse=FUSE)
    assert held(world, events(40, 49, "reading a"))
    assert [stop.attempts for stop in world.stops] == [1], "once for the gap and its batch"
    check = SilenceCheck(world.means, timedelta(seconds=60))
    assert list(check.run("timer")) == []
    world.clock.advance(61)
    (looked,) = check.run("timer")
    assert isinstance(looked, Unhealed) and isinstance(looked.fault, OutageSuspected)
    assert [stop.attempts for stop in world.stops] == [2]
    mended = SilenceCheck(replace(world.means, transform=QUIET), timedelta(), standing=dict(check.standing))
    (healed,) = mended.run("timer")
    assert isinstance(healed, Healed)
    state = world.store.read_partition(partition())
    world.store.note_stop(state, "outage", "noted by another process", world.clock.now())
    assert list(mended.run("timer")) == []
    assert world.stops == ()


def keys(count: int, each: int, word: str = "bug", first: int = 0) -> list[Event]:
    return [event(first + at, word, key=f"key-{at % count}") for at in range(count * each)]


@pytest.mark.parametrize(
    ("given", "is_held"),
    [
        pytest.param(keys(3, 4), True, id="those that would be held count for the floor"),
        pytest.param(keys(3, 3), False, id="too few"),
        pytest.param([*keys(1, 20), *events(20, 21, "reading a")], False, id="one bad event of a busy key"),
    ],
)
def test_with_keys_in_order_only_those_that_failed_themselves_show_an_outage(given: list[Event], is_held: bool) -> None:
    world = World(fuse=FUSE, letters=HOLDING)
    assert held(world, given) is is_held
    assert letters(world) == (0 if is_held else len([one for one in given if one.partition_key]))


def test_a_batch_of_which_all_is_held_does_not_end_an_outage() -> None:
    world = World(fuse=FUSE, letters=HOLDING)
    for _ in range(FUSE.patience):
        assert held(world, keys(3, 4))
    world.take(*keys(3, 4))
    world.take(*keys(3, 4, "reading a", first=12))
    assert [stop.reason for stop in world.stops] == ["outage"]
    world.take(*events(24, 40, "reading a"))
    assert world.stops == ()

"""core/ingest/fuse.py: a batch that mostly fails is held for a while, and then its letters are accepted."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import DataRefused, OutageSuspected, PoisonEvent, StopReason, StoreUnavailable
from core.ingest.fuse import check_fuse
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.ingest.stalled_partitions import Healed, SilenceCheck, Unhealed
from core.model.commits import BatchCommit, PartitionState, PartitionStop, Past
from core.model.events import Event
from core.model.letters import LetterPolicy
from core.model.policies import Fuse
from core.model.rows import References, Row
from core.model.transforms import Transform
from tests.fakes.builders import FakeClock, batch, commit, event, events, ids, letter, partition, settled, stamps
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN

FUSE = Fuse(share=0.5, floor=10, patience=3)
QUIET = replace(PLAIN, rows_of=lambda event, references: ())


def rows_of(event: Event, references: References) -> Iterable[Row]:
    """The plain transform, but `bug` fails as a bug does."""
    if event.body == b"bug":
        raise KeyError("deployed too early")
    return PLAIN.rows_of(event, references)


class World:
    def __init__(self, fuse: Fuse = FUSE, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.means = Ingestion(self.store, replace(PLAIN, rows_of=rows_of), stamps(), fuse=fuse)

    def take(self, given: Sequence[Event]) -> None:
        ingest_batch(batch(given), self.means)

    def is_held(self, given: Sequence[Event]) -> bool:
        try:
            self.take(given)
        except OutageSuspected:
            return True
        return False

    def stops(self) -> tuple[PartitionStop, ...]:
        return self.store.read_partition(partition()).stops

    def letters(self) -> int:
        return len(self.store.letters())


def mixed(good: int, bad: int, word: str = "bug", first: int = 0) -> list[Event]:
    """Good events, and after them bad ones."""
    return [*events(first, first + good - 1, "reading a"), *events(first + good, first + good + bad - 1, word)]


@pytest.mark.parametrize(
    ("good", "bad", "held"),
    [(0, 9, False), (0, 10, True), (10, 10, True), (11, 10, False), (40, 40, True), (41, 39, False)],
)
def test_a_batch_is_held_from_the_share_and_the_floor_on(good: int, bad: int, held: bool) -> None:
    world = World()
    assert world.is_held(mixed(good, bad)) is held
    assert world.letters() == (0 if held else bad)
    assert [stop.reason for stop in world.stops()] == (["outage"] if held else [])


def test_the_error_of_an_earlier_commit_of_the_invocation_explains_why_the_batch_is_held() -> None:
    state = MemoryStore().read_partition(partition())
    many = commit(state, 0, 11, settled({}, letters=[letter(event(number)) for number in range(12)]))
    last = commit(state, 12, 12, settled({}, letters=[replace(letter(event(12)), error_class="reference")]))
    with pytest.raises(OutageSuspected, match=r"12 of 13 events fail.*no such kind"):
        check_fuse(FUSE, [many, last])


def test_poison_is_no_outage_where_nothing_shows_that_the_events_were_good_before() -> None:
    world = World()
    assert not world.is_held(mixed(0, 50, "poison"))
    assert world.letters() == 50
    few = World()
    few.take(mixed(99, 0))
    assert not few.is_held(mixed(0, 50, "poison", first=99))


def test_a_partition_whose_good_events_turn_to_poison_is_held_once() -> None:
    """A deployment or a schema has changed. When the letters are accepted, the partition is no longer a good one."""
    world = World()
    world.take(mixed(3_000, 29, "poison"))
    held = [world.is_held(mixed(5, 40, "poison", first=3_029)) for _ in range(FUSE.patience + 1)]
    assert held == [True, True, True, False]
    assert "40 of 45 events fail" in world.stops()[0].detail
    for first in (3_074, 3_119):
        assert not world.is_held(mixed(5, 40, "poison", first=first))
    assert (world.stops(), world.letters()) == ((), 29 + 3 * 40)


@pytest.mark.parametrize(("good", "bad", "held"), [(99, 1, False), (100, 1, True), (400, 4, True), (396, 4, False)])
def test_poison_holds_a_partition_of_which_less_than_one_event_in_a_hundred_failed(
    good: int, bad: int, held: bool
) -> None:
    world = World()
    world.take(mixed(good, bad, "poison"))
    assert world.is_held(mixed(0, 10, "poison", first=good + bad)) is held


def test_a_transform_that_is_mended_settles_the_poison_that_was_held() -> None:
    world = World()
    world.take(mixed(200, 0))
    assert world.is_held(mixed(0, 50, "poison", first=200))
    world.means = replace(world.means, transform=QUIET)
    world.take(mixed(0, 50, "poison", first=200))
    assert (world.letters(), world.stops()) == (0, ())


def test_a_few_events_of_poison_hold_no_partition_on_that_was_stopped() -> None:
    world = World()
    world.take(mixed(200, 0))
    assert world.is_held(mixed(0, 50, first=200))
    assert not world.is_held(mixed(0, 1, "poison", first=200))
    assert world.stops() == ()


def test_crashes_hold_no_partition_because_each_event_is_alone_to_blame() -> None:
    state = MemoryStore().read_partition(partition())
    crashed = [replace(letter(event(number)), error_class="crash") for number in range(50)]
    assert check_fuse(FUSE, [commit(state, 0, 49, settled({}, letters=crashed))], lambda: Past(0, 1_000))


def test_two_classes_are_not_added_up() -> None:
    world = World()
    assert not world.is_held([*events(0, 8, "bug"), *events(9, 17, "look nobody")])
    assert world.letters() == 18


def test_the_stop_says_what_fails_how_often_and_how_long_it_is_held() -> None:
    world = World()
    for _ in range(2):
        assert world.is_held(mixed(5, 20))
    (stop,) = world.stops()
    assert stop.attempts == 2
    assert "20 of 25 events fail" in stop.detail
    assert "attempt 2 of 3" in stop.detail
    assert "unknown: 'deployed too early'" in stop.detail


def test_after_its_patience_the_letters_are_accepted_so_that_bad_events_cannot_block_for_ever() -> None:
    world = World()
    assert [world.is_held(mixed(0, 20)) for _ in range(4)] == [True, True, True, False]
    assert world.letters() == 20


def test_further_bad_batches_are_accepted_at_once_and_the_first_healthy_one_sets_the_fuse_again() -> None:
    world = World()
    for _ in range(4):
        world.is_held(mixed(0, 20))
    assert not world.is_held(mixed(0, 20, first=20))
    assert [stop.attempts for stop in world.stops()] == [3]
    assert not world.is_held(mixed(20, 0, first=40))
    assert world.stops() == ()
    assert world.is_held(mixed(0, 20, first=60))


class Unclearing(MemoryStore):
    """A store that cannot be reached between two transactions."""

    def clear_stops(self, state: PartitionState, reasons: Collection[StopReason]) -> None:
        raise StoreUnavailable("the connection is lost")


def test_a_healthy_batch_ends_the_stop_in_its_own_transaction() -> None:
    world = World(store=Unclearing())
    assert world.is_held(mixed(0, 20))
    world.means = replace(world.means, transform=QUIET)
    world.take(mixed(0, 20))
    assert world.stops() == ()


def test_a_held_batch_is_held_on_whatever_its_size_when_it_comes_again() -> None:
    world = World()
    assert world.is_held(mixed(0, 50))
    assert world.is_held(mixed(0, 3))
    assert world.letters() == 0


def test_attempts_are_counted_by_the_store_so_a_restart_does_not_reset_the_count() -> None:
    world = World()
    held = 0
    while World(store=world.store).is_held(mixed(0, 20)):
        held += 1
    assert held == FUSE.patience


def test_a_patience_of_none_switches_the_fuse_off() -> None:
    world = World()
    assert world.is_held(mixed(0, 50))
    world.means = replace(world.means, fuse=Fuse(share=0.01, floor=1, patience=0))
    assert not world.is_held(mixed(0, 50))
    assert world.stops() == ()


class Refusing(MemoryStore):
    """A store with a broken table: it refuses every commit with rows."""

    def commit_batch(self, commit: BatchCommit) -> int:
        if commit.settled.rows_written:
            raise DataRefused("no such table")
        return super().commit_batch(commit)


def test_a_table_that_refuses_every_row_stops_after_few_letters_and_adds_none_while_it_is_held() -> None:
    world = World(store=Refusing())
    assert world.is_held(mixed(100, 0))
    assert world.letters() < FUSE.floor
    before = world.letters()
    assert world.is_held(mixed(100, 0))
    assert world.letters() == before


def test_an_event_that_blames_itself_does_not_count_beside_an_outage() -> None:
    def half_poison(event: Event, references: References) -> Iterable[Row]:
        if event.sequence_number % 2:
            raise PoisonEvent("odd")
        raise KeyError("even")

    world = World()
    world.means = replace(world.means, transform=Transform("test/1", half_poison))
    assert world.is_held(mixed(0, 20))
    assert not World(replace(FUSE, share=0.6)).is_held([*events(0, 9, "poison"), *events(10, 19, "bug")])


def test_a_gap_is_held_once_for_each_attempt() -> None:
    world = World()
    hub = MemoryHub({"0": mixed(0, 40)})
    world.means = replace(world.means, gap_reading=GapReading(hub))
    for attempt in (1, 2):
        with pytest.raises(OutageSuspected):
            world.take(events(40, 49, "reading a"))
        assert [stop.attempts for stop in world.stops()] == [attempt]


def test_the_silence_check_holds_a_gap_too_and_clears_the_stop_once_nothing_waits() -> None:
    clock, source = FakeClock(), iter(ids())
    world = World()
    hub = MemoryHub({"0": mixed(0, 40)})
    world.means = replace(
        world.means,
        gap_reading=GapReading(hub),
        clock=replace(world.means.clock, now=clock.now, new_id=lambda: next(source)),
    )
    check = SilenceCheck(world.means, timedelta(seconds=60))
    assert list(check.run("timer")) == []
    clock.advance(61)
    (held,) = check.run("timer")
    assert isinstance(held, Unhealed)
    assert isinstance(held.fault, OutageSuspected)
    assert [stop.attempts for stop in world.stops()] == [1]
    mended = SilenceCheck(replace(world.means, transform=QUIET), timedelta(), standing=dict(check.standing))
    (healed,) = mended.run("timer")
    assert isinstance(healed, Healed)
    world.store.note_stop(world.store.read_partition(partition()), "outage", "noted by another process", clock.now())
    assert list(mended.run("timer")) == []
    assert world.stops() == ()


def keyed(keys: int, each: int, word: str = "bug", first: int = 0) -> list[Event]:
    """Events of some keys in turn."""
    return [event(first + at, word, key=f"key-{at % keys}") for at in range(keys * each)]


def holding() -> World:
    world = World()
    world.means = replace(world.means, letters=LetterPolicy(order="hold_key"))
    return world


def test_events_that_would_be_held_after_a_failure_count_for_the_floor_of_an_outage() -> None:
    assert holding().is_held(keyed(3, 4))
    assert not holding().is_held(keyed(3, 3))


def test_one_bad_event_of_a_busy_key_among_others_is_no_outage() -> None:
    world = holding()
    assert not world.is_held([*keyed(1, 20), *events(20, 21, "reading a")])
    assert world.letters() == 20


def test_a_batch_of_which_all_is_held_does_not_end_an_outage() -> None:
    world = holding()
    for _ in range(FUSE.patience):
        assert world.is_held(keyed(3, 4))
    world.take(keyed(3, 4))
    world.take(keyed(3, 4, "reading a", first=12))
    assert [stop.reason for stop in world.stops()] == ["outage"]
    world.take(events(24, 40, "reading a"))
    assert world.stops() == ()

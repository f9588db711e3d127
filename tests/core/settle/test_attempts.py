"""core/settle/attempts.py: which attempts leave a mark, which run in a child, and what it costs."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from core.errors import InfrastructureFault, StoreUnavailable
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import BATCH_EVENTS, Event, Partition, SequenceNumber, span
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.settle.attempts import ALONE, NOBODY, WINDOW, AttemptMark, StoredJournal
from core.settle.isolate import LONGEST, AttemptRequest, Isolation, RunChanged
from core.settle.settle import ChildNotFree, EventKilled
from core.store.memory import Memory
from core.store.script import Outcome, Script
from tests.fakes.builders import EPOCH, FakeClock, batch, commit, event, events, partition, reading, stamps
from tests.fakes.faulty_database import NotedDatabase
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store

P = partition()
OTHER = AttemptMark(P.partition_id, span(0, 9), UUID(int=99), EPOCH, 0, "test/1")


class World:
    """A store and a machine, and one process with a journal and a memory over them."""

    def __init__(self, store: MemoryStore | None = None, process: int = 7) -> None:
        self.store = store or MemoryStore()
        self.noted = NotedDatabase(self.store.database)
        self.clock = FakeClock()
        self.seconds = 0.0  # of the children that an event kills
        self.alone: list[tuple[int, ...]] = []  # the numbers of each run that was tried in a child
        self.meanwhile: Callable[[], object] = lambda: None  # what others do while an attempt waits for a child
        journal = StoredJournal(Store(self.noted), stamps(process, self.clock), self.in_child)
        gap_reading = GapReading(MemoryHub({"0": events(0, 599, "reading a")}))
        self.means = Ingestion(
            Store(self.noted, Memory(timedelta(seconds=60))), PLAIN, stamps(), gap_reading, journal=journal
        )

    @contextmanager
    def in_child(self, transform: Transform, look_again: Callable[[], None]) -> Iterator[Transform]:
        tried: list[int] = []
        self.meanwhile()

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            tried.append(event.sequence_number)
            if event.body == b"kill":
                raise EventKilled(event.sequence_number, "its process ended by SIGSEGV", self.seconds)
            return transform.rows_of(event, references)

        try:
            yield replace(transform, rows_of=rows_of)
        finally:
            self.alone.append(tuple(tried))

    def ingest(self, first: int, last: int, *, is_retry: bool = False, rows_of: Any = None) -> None:
        own = replace(batch(events(first, last, "reading a")), retries=int(is_retry))
        transform = PLAIN if rows_of is None else Transform("test/1", rows_of)
        ingest_batch(own, replace(self.means, transform=transform))

    def prove(self) -> None:
        """Commit as many events as one batch may hold, 0 to 499."""
        for first in range(0, BATCH_EVENTS, 250):
            self.ingest(first, first + 249)

    def calls(self) -> list[str]:
        """Return the calls since this was last asked."""
        made = list(self.noted.calls)
        self.noted.calls.clear()
        return made

    def die(self, first: int, last: int, deaths: int = 0, place: Partition = P) -> AttemptMark:
        """Let a different process die now with these numbers in hand, and return its mark."""
        at, id = self.clock.now(), place.partition_id
        mark = replace(OTHER, partition_id=id, tried=span(first, last), begun_at=at, deaths=deaths)
        self.store.begin_attempt(self.store.read_partition(place), mark)
        return mark

    @property
    def marks(self) -> tuple[AttemptMark, ...]:
        return self.store.read_marks(self.store.read_partition(P))

    @property
    def mark(self) -> AttemptMark | None:
        """The newest mark, of the greatest number."""
        return self.marks[-1] if self.marks else None

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return [(one.first, one.last) for one in self.store.ledger()]


def raising(error: BaseException) -> Any:
    def rows_of(event: Event, references: References) -> Iterable[Row]:
        raise error

    return rows_of


def begun(world: World) -> Any:
    """Note the mark that stands while the transform runs."""
    seen: list[AttemptMark | None] = []

    def rows_of(event: Event, references: References) -> Iterable[Row]:
        seen.append(world.mark)
        return (reading(),)

    return seen, rows_of


class TestASuspiciousBatch:
    def test_leaves_a_mark_of_its_numbers_before_the_transform_and_its_commit_deletes_it(self) -> None:
        world = World()
        seen, rows_of = begun(world)
        world.ingest(0, 4, rows_of=rows_of)
        assert seen[0] is not None
        assert (seen[0].tried, seen[0].transform_version, world.mark) == (span(0, 4), "test/1", None)

    def test_is_one_of_the_first_of_its_partition_a_retry_and_each_piece_of_a_gap(self) -> None:
        world = World()
        for first in range(0, BATCH_EVENTS, 100):
            seen, rows_of = begun(world)
            world.ingest(first, first + 99, rows_of=rows_of)
            assert seen[0] is not None and seen[0].tried.last == first + 99
        for first, is_retry, marked in [
            (500, False, False),
            (505, True, True),
            (510, False, False),
            (515, False, False),
        ]:
            seen, rows_of = begun(world)
            world.ingest(first, first + 4, is_retry=is_retry, rows_of=rows_of)
            assert [one is not None for one in seen] == [marked] * 5, first
        seen, rows_of = begun(world)
        world.ingest(525, 529, rows_of=rows_of)  # 520 to 524 are read back
        assert [one and one.tried for one in seen] == [span(520, 524)] * 5 + [span(525, 529)] * 5

    def test_is_marked_before_its_references_are_asked_for(self) -> None:
        world = World()

        def references(event: Event) -> Iterable[Any]:
            assert world.mark is not None
            return ()

        ingest_batch(batch(events(0, 4)), replace(world.means, transform=replace(PLAIN, references_of=references)))
        assert world.ranges == [(0, 4)]

    def test_costs_two_calls_and_the_others_cost_none(self) -> None:
        world = World()
        world.ingest(0, 499)
        first = world.calls()
        for number in range(100, 110):
            world.ingest(number * 5, number * 5 + 4)
        assert world.calls() == ["advance_checkpoint"] * 10
        without = World()
        without.means = replace(without.means, journal=Ingestion(without.store, PLAIN, stamps()).journal)
        without.ingest(0, 499)
        assert [call for call in first if call not in ("read_marks", "begin_attempt")] == without.calls()
        assert len([call for call in first if "attempt" in call or "marks" in call]) == 2


class TestABatchRunsInAChild:
    def test_when_a_different_process_has_left_its_mark(self) -> None:
        world = World()
        world.store.begin_attempt(world.store.read_partition(P), OTHER)
        world.ingest(0, 4)
        assert (world.alone, world.marks) == ([(0, 1, 2, 3, 4)], (OTHER,))
        world.ingest(5, 9)
        assert (world.alone, world.marks) == ([(0, 1, 2, 3, 4), (5, 6, 7, 8, 9)], ())

    def test_when_the_owner_died_that_took_the_partition_from_a_proven_process(self) -> None:
        first = World(process=1)
        second = World(first.store, process=2)
        first.prove()
        second.ingest(500, 509)
        first.die(510, 512)
        first.ingest(510, 519)
        assert (first.alone, first.marks) == ([tuple(range(510, 520))], ())

    def test_but_not_for_a_mark_of_numbers_that_were_committed_meanwhile(self) -> None:
        world = World()
        world.store.begin_attempt(world.store.read_partition(P), OTHER)
        world.store.commit_batch(commit(world.store.read_partition(P), 0, 9))
        world.ingest(10, 14)
        assert (world.alone, world.ranges) == ([], [(0, 9), (10, 14)])

    def test_while_a_different_process_has_left_a_mark_in_the_stream_within_half_an_hour(self) -> None:
        world = World()
        mark = world.die(7, 9, place=partition("1"))
        world.ingest(0, 499)
        world.ingest(500, 509)
        assert [run[0] for run in world.alone] == [0, 500], "what a child tried is no proof for the events after it"
        world.clock.advance(WINDOW.total_seconds())
        world.ingest(510, 519)
        assert ([run[0] for run in world.alone], world.marks) == ([0, 500], (mark,))

    def test_but_not_for_a_mark_that_a_process_beside_it_has_set_since_it_began(self) -> None:
        world = World()
        world.ingest(0, 4)
        world.clock.advance(1)
        world.die(0, 9, place=partition("1"))
        world.ingest(5, 9)
        assert world.alone == []

    def test_when_it_comes_again_to_a_process_that_has_written_nothing_of_the_partition(self) -> None:
        world = World()
        world.ingest(0, 4, is_retry=True)
        world.ingest(5, 9, is_retry=True)
        world.ingest(15, 19)  # 10 to 14 are read back
        assert world.alone == [(0, 1, 2, 3, 4)]
        world = World(world.store, process=8)
        world.ingest(25, 29)
        assert world.alone == [(20, 21, 22, 23, 24)]

    def test_for_half_an_hour_after_an_event_that_kills(self) -> None:
        world = World()
        world.prove()
        world.die(500, 500)
        killer = batch([event(500, "kill")])
        ingest_batch(replace(killer, retries=1), world.means)
        world.calls()
        world.ingest(510, 519)
        assert [run[0] for run in world.alone] == [500, 501, 510]
        world.clock.advance(WINDOW.total_seconds())
        world.calls()
        world.ingest(520, 529)
        assert ([run[0] for run in world.alone], world.calls()) == ([500, 501, 510], ["advance_checkpoint"])

    def test_and_its_killer_is_a_letter_and_the_rest_is_committed_by_the_same_invocation(self) -> None:
        world = World()
        world.die(0, 5)
        given = [event(number, "kill" if number in (1, 4) else "reading a") for number in range(6)]
        report = ingest_batch(batch(given), world.means)
        assert world.ranges == [(0, 1), (2, 4), (5, 5)] and len(report.commits) == 3
        assert [
            (kept.sequence_number, kept.error_class, kept.status, kept.error_type, kept.error)
            for kept in world.store.letters()
        ] == [
            (number, "crash", "exhausted", "core.errors.ProcessDied", "its process ended by SIGSEGV")
            for number in (1, 4)
        ]

    def test_until_each_number_under_the_mark_of_a_different_process_is_committed(self) -> None:
        world = World()
        world.store.begin_attempt(world.store.read_partition(P), OTHER)
        ingest_batch(
            batch([event(number, "kill" if number in (1, 4) else "reading a") for number in range(6)]), world.means
        )
        world.clock.advance(WINDOW.total_seconds())  # what follows is no longer tried in a child for these killers
        world.ingest(6, 12)
        world.ingest(13, 14)
        assert [kept.sequence_number for kept in world.store.letters()] == [1, 4]
        assert [run[-1] for run in world.alone] == [1, 4, 5, 12]

    def test_and_events_that_hang_for_long_are_left_to_the_next_invocation_one_by_one(self) -> None:
        world = World()
        world.seconds = LONGEST + 1
        world.die(0, 5)
        given = batch([event(number, "kill" if number in (1, 4) else "reading a") for number in range(6)])
        for ranges in ([(0, 1)], [(0, 1), (2, 4)]):
            with pytest.raises(InfrastructureFault, match=r"^events that hang took 241 s; the next try goes on"):
                ingest_batch(replace(given, retries=1), world.means)
            assert world.ranges == ranges
        ingest_batch(replace(given, retries=2), world.means)
        assert world.ranges == [(0, 1), (2, 4), (5, 5)]


KILLERS = batch([event(number, "kill" if number in (1, 4) else "reading a") for number in range(6)])


class TestAVerdict:
    def dead(self) -> MemoryStore:
        """Return the store of a process that died after its verdict on event 1, before the letter was committed."""
        world = World()
        world.store.begin_attempt(world.store.read_partition(P), OTHER)
        world.noted.out = {"open_checkpoint"}
        with pytest.raises(StoreUnavailable):
            ingest_batch(KILLERS, world.means)
        assert [(mark.tried, mark.verdict) for mark in world.marks if mark.verdict] == [
            (span(1, 1), "its process ended by SIGSEGV")
        ]
        return world.store

    def test_outlives_its_process_and_is_committed_without_a_child(self) -> None:
        world = World(store=self.dead(), process=8)
        world.meanwhile = lambda: pytest.fail("a child for what is known") if not world.ranges else None
        ingest_batch(KILLERS, world.means)
        assert [kept.sequence_number for kept in world.store.letters()] == [1, 4]
        assert (world.alone, world.ranges) == ([(2, 3, 4), (5,)], [(0, 1), (2, 4), (5, 5)])

    def test_is_one_on_its_version_of_the_transform(self) -> None:
        world = World(store=self.dead(), process=8)
        ingest_batch(KILLERS, replace(world.means, transform=replace(PLAIN, version="mended/2")))
        assert world.alone[0] == (0, 1)

    def test_and_its_mark_are_gone_with_the_last_number(self) -> None:
        world = World(store=self.dead(), process=8)
        ingest_batch(KILLERS, world.means)
        assert [mark.tried for mark in world.marks] == [OTHER.tried]
        world.ingest(6, 9)
        assert world.marks == ()

    def test_on_an_event_that_left_the_hub_or_has_a_different_key_stops_the_others_of_its_range_once(self) -> None:
        world = World(store=self.dead(), process=8)
        asked = AttemptRequest("replay", world.store.read_partition(P), span(0, 5), Isolation())
        with pytest.raises(RunChanged), world.means.journal.attempt(asked, PLAIN):
            pass
        with world.means.journal.attempt(asked, PLAIN):
            pass
        assert asked.isolation.killed == {1: "its process ended by SIGSEGV"}


class TestSuspectsInHand:
    def test_are_left_to_the_attempt_that_has_them(self) -> None:
        world, faults = World(), list[str]()
        world.store.begin_attempt(world.store.read_partition(P), OTHER)

        def meanwhile() -> None:
            world.meanwhile = lambda: pytest.fail("a second child")
            assert world.means.journal.has_in_hand(world.store.read_partition(P), EPOCH)
            with pytest.raises(ChildNotFree, match="another attempt tries events 0 to 4") as fault:
                world.ingest(0, 4)
            faults.append(str(fault.value))

        world.meanwhile = meanwhile
        world.ingest(0, 4)
        assert (len(faults), world.ranges) == (1, [(0, 4)])
        assert not world.means.journal.has_in_hand(world.store.read_partition(P), EPOCH)

    def test_are_those_of_another_process_too_for_a_while(self) -> None:
        world = World()
        world.ingest(0, 4)
        state = world.store.read_partition(P)
        world.store.begin_attempt(state, OTHER)
        assert world.means.journal.has_in_hand(state, EPOCH - timedelta(seconds=1))
        assert not world.means.journal.has_in_hand(state, EPOCH)
        world.store.begin_attempt(state, replace(OTHER, attempt_id=NOBODY))
        assert not world.means.journal.has_in_hand(state, EPOCH - timedelta(seconds=1)), "nobody has it"

    def test_are_not_tried_when_another_owner_has_written_them_meanwhile(self) -> None:
        world = World()
        world.store.begin_attempt(world.store.read_partition(P), OTHER)
        world.meanwhile = lambda: world.ranges or world.store.commit_batch(commit(world.store.read_partition(P), 0, 4))
        world.ingest(0, 9)
        assert world.alone == [(), (5, 6, 7, 8, 9)]
        assert world.ranges == [(0, 4), (5, 9)]


class TestDeathsWithARangeInHand:
    def test_are_counted_and_from_the_third_one_on_its_events_are_tried_one_at_a_time(self) -> None:
        world = World()
        world.store.begin_attempt(world.store.read_partition(P), replace(OTHER, deaths=ALONE - 1))
        world.ingest(0, 9)
        assert world.alone == [(number,) for number in range(10)]
        assert (len(world.ranges), world.marks) == (10, ())

    def test_name_the_event_that_was_tried_alone(self) -> None:
        world = World()
        state = world.store.read_partition(P)
        for tried in (span(0, 9), span(3, 3)):
            world.store.begin_attempt(state, replace(OTHER, tried=tried, deaths=ALONE))
        world.ingest(0, 9)
        assert [(kept.sequence_number, kept.error_class) for kept in world.store.letters()] == [(3, "crash")]
        assert (3,) not in world.alone

    def test_stay_counted_when_an_attempt_ends_by_a_fault(self) -> None:
        world = World()
        world.store.begin_attempt(world.store.read_partition(P), replace(OTHER, deaths=1))
        for _ in range(3):
            world.noted.out = {"open_checkpoint"}
            with pytest.raises(StoreUnavailable):
                world.ingest(0, 9)
            world.noted.out = set()
            assert [(mark.attempt_id, mark.deaths) for mark in world.marks] == [(NOBODY, 1)]


class TestAnAttemptThatEndsByAnException:
    def test_takes_its_mark_back(self) -> None:
        world = World()
        with pytest.raises(KeyboardInterrupt):
            world.ingest(0, 4, rows_of=raising(KeyboardInterrupt()))
        assert world.mark is None
        world.ingest(0, 4)
        assert world.alone == []

    def test_is_no_death_while_the_store_cannot_be_reached(self) -> None:
        world = World()
        world.noted.out = {"open_checkpoint", "end_attempt"}
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                world.ingest(0, 4)
        assert world.mark is not None
        world.noted.out = set()
        world.ingest(0, 9)
        assert (world.ranges, world.alone) == ([(0, 9)], [])

    def test_is_no_death_for_others_once_the_store_can_be_reached_again(self) -> None:
        world = World(process=1)
        other = World(world.store, process=2)
        world.noted.out = {"open_checkpoint", "end_attempt"}
        with pytest.raises(StoreUnavailable):
            world.ingest(0, 4)
        world.noted.out = set()
        ingest_batch(batch(events(0, 4, "reading a"), partition("1")), world.means)
        other.ingest(0, 4)
        assert (other.alone, world.marks) == ([], ())

    def test_is_taken_back_by_one_of_the_attempts_that_run_side_by_side_afterwards(self) -> None:
        world = World()
        world.noted.out = {"open_checkpoint", "end_attempt"}
        with pytest.raises(StoreUnavailable):
            world.ingest(0, 4)
        world.noted.out = set()
        beside = [partition("1")]

        def run(script: Script, rehearse: bool = False) -> Outcome:
            if script.steps[0].statement == "end_attempt" and beside:
                ingest_batch(batch(events(0, 4, "reading a"), beside.pop()), world.means)
            return world.store.database.run(script, rehearse)

        world.noted.run = run  # type: ignore[method-assign]
        world.ingest(0, 4)
        assert (beside, world.marks, world.ranges) == ([], (), [(0, 4), (0, 4)])

    def test_leaves_no_mark_of_numbers_that_a_different_owner_has_written(self) -> None:
        world = World(process=1)
        other = World(world.store, process=2)
        world.die(0, 9)
        calls: list[int] = []

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            if not calls:
                world.store.commit_batch(commit(world.store.read_partition(P), 0, 9))
            calls.append(event.sequence_number)
            return ()

        world.ingest(0, 9, rows_of=rows_of)
        assert (world.ranges, world.marks) == ([(0, 9)], ())
        other.ingest(10, 19)
        assert other.alone == []

    @pytest.mark.parametrize("is_proven", [True, False])
    def test_counts_as_a_death_when_memory_ran_out(self, is_proven: bool) -> None:
        world, first = World(), 500 * is_proven
        if is_proven:
            world.prove()
        with pytest.raises(MemoryError):
            world.ingest(first, first + 4, rows_of=raising(MemoryError()))
        assert (world.mark is None) == is_proven
        world.ingest(first, first + 9)
        assert [run[0] for run in world.alone] == [first]
        world.clock.advance(WINDOW.total_seconds())
        world.ingest(first + 10, first + 19)
        assert len(world.alone) == 1


MARK = AttemptMark(P.partition_id, span(2**62, 2**62 + 9), UUID(int=7), EPOCH, 3, "killing/ü")


def marks(store: Store, of: Partition = P) -> list[AttemptMark]:
    return [mark for mark in store.read_marks(store.read_partition(P)) if mark.partition_id == of.partition_id]


def test_a_mark_stands_as_it_was_set(store: Store) -> None:
    state = store.read_partition(P)
    killer = replace(MARK, tried=span(7, 7), verdict="its process ended by SIGSEGV, \ud800 and " + "x" * 3_000)
    assert marks(store) == []
    store.begin_attempt(state, MARK)
    store.begin_attempt(state, killer)
    found, mark = marks(store)
    assert mark == MARK
    assert found.verdict is not None and len(found.verdict) == 2_000
    assert replace(found, verdict=None) == replace(killer, verdict=None)
    assert marks(store, partition("1")) == []


def test_the_marks_of_all_partitions_of_a_stream_are_read_in_order(store: Store) -> None:
    other, elsewhere = store.read_partition(partition("1")), store.read_partition(partition(group="other"))
    for state, last in ((other, 4), (store.read_partition(P), 9), (store.read_partition(P), 8), (elsewhere, 7)):
        store.begin_attempt(state, replace(MARK, partition_id=state.partition.partition_id, tried=span(0, last)))
    found = [(mark.partition_id, mark.tried.last) for mark in store.read_marks(other)]
    assert found == [("0", 8), ("0", 9), ("1", 4)]


def test_a_mark_takes_the_place_of_the_one_with_the_same_last_number(store: Store) -> None:
    state = store.read_partition(P)
    newer = AttemptMark(P.partition_id, span(3, 4), UUID(int=8), EPOCH + timedelta(hours=1), 4, "killing/2", "it hung")
    store.begin_attempt(state, replace(MARK, tried=span(0, 4)))
    store.begin_attempt(state, newer)
    assert marks(store) == [newer]


def test_only_the_process_that_set_a_mark_takes_it_back(store: Store) -> None:
    state, last = store.read_partition(P), MARK.tried.last
    store.begin_attempt(state, MARK)
    other = replace(MARK, partition_id=partition("1").partition_id)
    store.begin_attempt(store.read_partition(partition("1")), other)
    store.end_attempt(state, last, UUID(int=8))
    assert marks(store) == [MARK]
    for _ in range(2):
        store.end_attempt(state, last, MARK.attempt_id)
        assert marks(store) == []
    assert marks(store, partition("1")) == [other]


def test_a_marked_commit_deletes_the_marks_that_end_in_it_and_another_leaves_them(store: Store) -> None:
    ends = (2, 5, 9, 10)
    state = store.anchor_partition(store.read_partition(P), SequenceNumber(0), EPOCH + timedelta(days=1))
    for place in (state, store.read_partition(partition("1"))):
        for last in ends:
            store.begin_attempt(place, replace(MARK, tried=span(0, last)))
    store.commit_batch(commit(state, 0, 4))
    assert [mark.tried.last for mark in marks(store)] == [2, 5, 9, 10]
    store.commit_batch(replace(commit(store.read_partition(P), 5, 9), is_marked=True))
    assert [mark.tried.last for mark in marks(store)] == [2, 10]
    store.clear_attempts(state, span(0, 10))
    assert marks(store) == []
    assert [mark.tried.last for mark in marks(store, partition("1"))] == [2, 5, 9, 10]

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
from core.model.events import BATCH_EVENTS, Event, EventBatch, Partition, SequenceNumber, span
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
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import MemoryStore, Store

P = partition()
OTHER = AttemptMark(P.partition_id, span(0, 9), UUID(int=99), EPOCH, 0, "test/1")
KILLERS = batch([event(number, "kill" if number in (1, 4) else "reading a") for number in range(6)])
SEGFAULT = "its process ended by SIGSEGV"


class World:
    """A store and a machine, and one process with a journal and a memory over them."""

    def __init__(self, store: MemoryStore | None = None, process: int = 7, mark: AttemptMark | None = None) -> None:
        self.store = store or MemoryStore()
        self.noted = NotedDatabase(self.store.database)
        self.clock = FakeClock()
        self.seconds = 0.0  # of the children that an event kills
        self.alone: list[tuple[int, ...]] = []  # the numbers of each run that was tried in a child
        self.meanwhile: Callable[[], object] = lambda: None  # what others do while an attempt waits for a child
        journal = StoredJournal(Store(self.noted), stamps(process, self.clock), self.in_child)
        gap_reading = GapReading(MemoryHub({"0": events(0, 599, "reading a")}))
        memory = Store(self.noted, Memory(timedelta(seconds=60)))
        self.means = Ingestion(memory, PLAIN, stamps(), gap_reading, journal=journal)
        if mark:
            self.store.begin_attempt(self.state, mark)

    @contextmanager
    def in_child(self, transform: Transform, look_again: Callable[[], None]) -> Iterator[Transform]:
        tried: list[int] = []
        self.meanwhile()

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            tried.append(event.sequence_number)
            if event.body == b"kill":
                raise EventKilled(event.sequence_number, SEGFAULT, self.seconds)
            return transform.rows_of(event, references)

        try:
            yield replace(transform, rows_of=rows_of)
        finally:
            self.alone.append(tuple(tried))

    def take(self, given: EventBatch, **changed: Any) -> None:
        ingest_batch(given, replace(self.means, **changed))

    def ingest(self, first: int, last: int, *, is_retry: bool = False, rows_of: Any = None, of: Partition = P) -> None:
        transform = PLAIN if rows_of is None else Transform("test/1", rows_of)
        self.take(replace(batch(events(first, last, "reading a"), of), retries=int(is_retry)), transform=transform)

    def prove(self) -> None:
        for first in range(0, BATCH_EVENTS, 250):
            self.ingest(first, first + 249)

    def marked(self, first: int, last: int, **how: Any) -> list[AttemptMark | None]:
        """Ingest events. Return the newest mark that stood at each of them."""
        seen: list[AttemptMark | None] = []

        def rows_of(event: Event, references: References) -> Iterable[Row]:
            seen.append(self.marks[-1] if self.marks else None)
            return (reading(),)

        self.ingest(first, last, rows_of=rows_of, **how)
        return seen

    def fail(self, first: int, last: int, *out: str) -> None:
        """Try events while these calls get no answer."""
        self.noted.out = {"open_checkpoint", *out}
        with pytest.raises(StoreUnavailable):
            self.ingest(first, last)
        self.noted.out = set()

    def calls(self) -> list[str]:
        """Return the calls since this was last asked."""
        made = list(self.noted.calls)
        self.noted.calls.clear()
        return made

    def die(self, first: int, last: int, place: Partition = P) -> AttemptMark:
        mark = replace(OTHER, partition_id=place.partition_id, tried=span(first, last), begun_at=self.clock.now())
        self.store.begin_attempt(self.store.read_partition(place), mark)
        return mark

    @property
    def state(self) -> Any:
        return self.store.read_partition(P)

    @property
    def marks(self) -> tuple[AttemptMark, ...]:
        return self.store.read_marks(self.state)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        return [(one.first, one.last) for one in self.store.ledger()]

    @property
    def letters(self) -> list[tuple[Any, ...]]:
        return [(one.sequence_number, one.error_class, one.status, one.error) for one in self.store.letters()]


@pytest.fixture
def world() -> World:
    return World()


def raising(error: BaseException) -> Any:
    def rows_of(event: Event, references: References) -> Iterable[Row]:
        raise error

    return rows_of


def test_a_suspicious_batch_leaves_a_mark_before_the_transform_is_asked_and_its_commit_deletes_it(world: World) -> None:
    (first, *_) = world.marked(0, 4)
    assert first is not None
    assert (first.tried, first.transform_version, world.marks) == (span(0, 4), "test/1", ())

    def references(event: Event) -> Iterable[Any]:
        assert world.marks
        return ()

    world.take(batch(events(5, 9)), transform=replace(PLAIN, references_of=references))
    assert world.ranges == [(0, 4), (5, 9)]


def test_suspicious_are_the_first_batches_of_a_partition_a_retry_and_each_piece_of_a_gap(world: World) -> None:
    for first in range(0, BATCH_EVENTS, 100):
        mark = world.marked(first, first + 99)[0]
        assert mark is not None and mark.tried.last == first + 99
    for first, is_retry, marked in ((500, False, False), (505, True, True), (510, False, False)):
        seen = world.marked(first, first + 4, is_retry=is_retry)
        assert [one is not None for one in seen] == [marked] * 5, first
    seen = world.marked(520, 524)  # 515 to 519 are read back
    assert [one and one.tried for one in seen] == [span(515, 519)] * 5 + [span(520, 524)] * 5


def test_a_suspicious_batch_costs_two_calls_and_the_others_cost_none(world: World) -> None:
    world.ingest(0, 499)
    first = world.calls()
    for number in range(100, 110):
        world.ingest(number * 5, number * 5 + 4)
    assert world.calls() == ["advance_checkpoint"] * 10
    without = World()
    without.means = replace(without.means, journal=Ingestion(without.store, PLAIN, stamps()).journal)
    without.ingest(0, 499)
    assert sorted([*without.calls(), "read_marks", "begin_attempt"]) == sorted(first)


def test_a_batch_runs_in_a_child_until_the_numbers_under_the_mark_of_a_different_process_are_written() -> None:
    world = World(mark=OTHER)
    world.ingest(0, 4)
    assert (world.alone, world.marks) == ([(0, 1, 2, 3, 4)], (OTHER,))
    world.ingest(5, 9)
    assert (world.alone, world.marks) == ([(0, 1, 2, 3, 4), (5, 6, 7, 8, 9)], ())
    written = World(mark=OTHER)
    written.store.commit_batch(commit(written.state, 0, 9))
    written.ingest(10, 14)
    assert (written.alone, written.ranges) == ([], [(0, 9), (10, 14)])
    proven = World(process=1)
    proven.prove()
    World(proven.store, process=2).ingest(500, 509)  # it took the partition over
    proven.die(510, 512)
    proven.ingest(510, 519)
    assert (proven.alone, proven.marks) == ([tuple(range(510, 520))], ())


def test_a_batch_runs_in_a_child_for_half_an_hour_after_a_death_in_its_stream_before_its_process_began() -> None:
    world = World()
    mark = world.die(7, 9, place=partition("1"))
    world.ingest(0, 499)
    world.ingest(500, 509)
    assert [run[0] for run in world.alone] == [0, 500], "what a child tried is no proof for the events after it"
    world.clock.advance(WINDOW.total_seconds())
    world.ingest(510, 519)
    assert ([run[0] for run in world.alone], world.marks) == ([0, 500], (mark,))
    beside = World()
    beside.ingest(0, 4)
    beside.clock.advance(1)
    beside.die(0, 9, place=partition("1"))
    beside.ingest(5, 9)
    assert beside.alone == [], "a process that lives beside it has set the mark"


def test_a_batch_that_comes_again_runs_in_a_child_in_a_process_that_has_written_nothing_of_the_partition() -> None:
    world = World()
    world.ingest(0, 4, is_retry=True)
    world.ingest(5, 9, is_retry=True)
    world.ingest(15, 19)  # 10 to 14 are read back
    assert world.alone == [(0, 1, 2, 3, 4)]
    world = World(world.store, process=8)
    world.ingest(25, 29)
    assert world.alone == [(20, 21, 22, 23, 24)]


def test_a_batch_runs_in_a_child_for_half_an_hour_after_an_event_that_kills(world: World) -> None:
    world.prove()
    world.die(500, 500)
    world.take(replace(batch([event(500, "kill")]), retries=1))
    world.ingest(510, 519)
    assert [run[0] for run in world.alone] == [500, 501, 510]
    world.clock.advance(WINDOW.total_seconds())
    world.calls()
    world.ingest(520, 529)
    assert ([run[0] for run in world.alone], world.calls()) == ([500, 501, 510], ["advance_checkpoint"])


def test_a_killer_is_a_letter_and_the_rest_is_committed_by_the_same_invocation() -> None:
    world = World(mark=OTHER)
    world.take(KILLERS)
    assert world.ranges == [(0, 1), (2, 4), (5, 5)]
    assert world.letters == [(number, "crash", "exhausted", SEGFAULT) for number in (1, 4)]
    assert {one.error_type for one in world.store.letters()} == {"core.errors.ProcessDied"}
    world.clock.advance(WINDOW.total_seconds())  # what follows is no longer tried in a child for these killers
    world.ingest(6, 12)
    world.ingest(13, 14)
    assert [run[-1] for run in world.alone] == [1, 4, 5, 12], "until each number under the mark is committed"


def test_events_that_hang_for_long_are_left_to_the_next_invocation_one_by_one(world: World) -> None:
    world.seconds = LONGEST + 1
    world.die(0, 5)
    for ranges in ([(0, 1)], [(0, 1), (2, 4)]):
        with pytest.raises(InfrastructureFault, match=r"^events that hang took 241 s; the next try goes on"):
            world.take(replace(KILLERS, retries=1))
        assert world.ranges == ranges
    world.take(replace(KILLERS, retries=2))
    assert world.ranges == [(0, 1), (2, 4), (5, 5)]


def after_a_verdict() -> World:
    world = World(mark=OTHER)
    world.noted.out = {"open_checkpoint"}
    with pytest.raises(StoreUnavailable):
        world.take(KILLERS)
    assert [(mark.tried, mark.verdict) for mark in world.marks if mark.verdict] == [(span(1, 1), SEGFAULT)]
    return World(store=world.store, process=8)


def test_a_verdict_outlives_its_process_and_is_committed_without_a_child() -> None:
    heir = after_a_verdict()
    heir.meanwhile = lambda: pytest.fail("a child for what is known") if not heir.ranges else None
    heir.take(KILLERS)
    assert [number for number, *_ in heir.letters] == [1, 4]
    assert (heir.alone, heir.ranges) == ([(2, 3, 4), (5,)], [(0, 1), (2, 4), (5, 5)])
    assert [mark.tried for mark in heir.marks] == [OTHER.tried]
    heir.ingest(6, 9)
    assert heir.marks == ()


def test_a_verdict_on_an_event_that_left_the_hub_or_has_a_different_key_stops_the_others_of_its_range_once() -> None:
    heir = after_a_verdict()
    asked = AttemptRequest("replay", heir.state, span(0, 5), Isolation())
    with pytest.raises(RunChanged), heir.means.journal.attempt(asked, PLAIN):
        pass
    with heir.means.journal.attempt(asked, PLAIN):
        pass
    assert asked.isolation.killed == {1: SEGFAULT}
    heir.take(KILLERS, transform=replace(PLAIN, version="mended/2"))
    assert heir.alone[1] == (0, 1), "it is one on its version of the transform"


def test_suspects_in_hand_are_left_to_the_attempt_that_has_them() -> None:
    world, faults = World(mark=OTHER), list[str]()

    def meanwhile() -> None:
        world.meanwhile = lambda: pytest.fail("a second child")
        assert world.means.journal.has_in_hand(world.state, EPOCH)
        with pytest.raises(ChildNotFree, match="another attempt tries events 0 to 4") as fault:
            world.ingest(0, 4)
        faults.append(str(fault.value))

    world.meanwhile = meanwhile
    world.ingest(0, 4)
    assert (len(faults), world.ranges) == (1, [(0, 4)])
    assert not world.means.journal.has_in_hand(world.state, EPOCH)
    before = EPOCH - timedelta(seconds=1)
    assert world.means.journal.has_in_hand(world.state, before), "of another process too, for a while"
    world.store.begin_attempt(world.state, replace(OTHER, attempt_id=NOBODY))
    assert not world.means.journal.has_in_hand(world.state, before)


def test_suspects_are_not_tried_when_another_owner_has_written_them_meanwhile() -> None:
    world = World(mark=OTHER)
    world.meanwhile = lambda: world.ranges or world.store.commit_batch(commit(world.state, 0, 4))
    world.ingest(0, 9)
    assert (world.alone, world.ranges) == ([(), (5, 6, 7, 8, 9)], [(0, 4), (5, 9)])
    late = World()
    late.die(0, 9)

    def rows_of(event: Event, references: References) -> Iterable[Row]:
        if not late.ranges:
            late.store.commit_batch(commit(late.state, 0, 9))
        return ()

    late.ingest(0, 9, rows_of=rows_of)
    assert (late.ranges, late.marks) == ([(0, 9)], ()), "an attempt leaves no mark of them"


def test_from_the_third_death_on_events_are_tried_one_at_a_time_and_the_next_death_names_its_event() -> None:
    world = World(mark=replace(OTHER, deaths=ALONE - 1))
    world.ingest(0, 9)
    assert world.alone == [(number,) for number in range(10)]
    assert (len(world.ranges), world.marks) == (10, ())
    named = World(mark=replace(OTHER, deaths=ALONE))
    named.store.begin_attempt(named.state, replace(OTHER, tried=span(3, 3), deaths=ALONE))
    named.ingest(0, 9)
    assert [one[:2] for one in named.letters] == [(3, "crash")]
    assert (3,) not in named.alone


def test_an_attempt_that_ends_by_an_exception_is_no_death_even_while_the_store_cannot_be_reached(world: World) -> None:
    with pytest.raises(KeyboardInterrupt):
        world.ingest(0, 4, rows_of=raising(KeyboardInterrupt()))
    assert world.marks == ()
    for _ in range(3):
        world.fail(0, 4, "end_attempt")
    assert world.marks
    world.ingest(0, 9)
    assert (world.ranges, world.alone) == ([(0, 9)], [])
    counted = World(mark=replace(OTHER, deaths=1))
    for _ in range(3):
        counted.fail(0, 9)
        assert [(mark.attempt_id, mark.deaths) for mark in counted.marks] == [(NOBODY, 1)]


def test_a_mark_that_could_not_be_taken_back_is_so_once_the_store_answers_and_by_one_attempt(world: World) -> None:
    world.fail(0, 4, "end_attempt")
    beside = [partition("1")]

    def run(script: Script, rehearse: bool = False) -> Outcome:
        if script.steps[0].statement == "end_attempt" and beside:
            world.ingest(0, 4, of=beside.pop())
        return world.store.database.run(script, rehearse)

    world.noted.run = run  # type: ignore[method-assign]
    world.ingest(0, 4, of=partition("2"))
    assert (beside, world.marks, world.ranges) == ([], (), [(0, 4), (0, 4)])
    other = World(world.store, process=2)
    other.ingest(0, 4)
    assert other.alone == []


@pytest.mark.parametrize("is_proven", [True, False])
def test_an_attempt_counts_as_a_death_when_memory_ran_out(world: World, is_proven: bool) -> None:
    first = 500 * is_proven
    if is_proven:
        world.prove()
    with pytest.raises(MemoryError):
        world.ingest(first, first + 4, rows_of=raising(MemoryError()))
    assert (not world.marks) == is_proven
    world.ingest(first, first + 9)
    assert [run[0] for run in world.alone] == [first]
    world.clock.advance(WINDOW.total_seconds())
    world.ingest(first + 10, first + 19)
    assert len(world.alone) == 1


MARK = AttemptMark(P.partition_id, span(2**62, 2**62 + 9), UUID(int=7), EPOCH, 3, "killing/ü")


def marks(store: Store, of: Partition = P) -> list[AttemptMark]:
    return [mark for mark in store.read_marks(store.read_partition(P)) if mark.partition_id == of.partition_id]


def ends(store: Store, of: Partition = P) -> list[int]:
    return [mark.tried.last for mark in marks(store, of)]


def test_a_mark_stands_as_it_was_set_until_one_with_the_same_last_number_takes_its_place(store: Store) -> None:
    state = store.read_partition(P)
    killer = replace(MARK, tried=span(7, 7), verdict=f"{SEGFAULT}, \ud800 and " + "x" * 3_000)
    assert marks(store) == []
    store.begin_attempt(state, MARK)
    store.begin_attempt(state, killer)
    found, mark = marks(store)
    assert mark == MARK
    assert found.verdict is not None and len(found.verdict) == 2_000
    assert replace(found, verdict=None) == replace(killer, verdict=None)
    newer = AttemptMark(P.partition_id, span(3, 7), UUID(int=8), EPOCH + timedelta(hours=1), 4, "killing/2", "it hung")
    store.begin_attempt(state, newer)
    assert marks(store) == [newer, MARK]
    for other, last in ((partition("1"), 4), (P, 8), (partition(group="other"), 7)):
        own = replace(MARK, partition_id=other.partition_id, tried=span(0, last))
        store.begin_attempt(store.read_partition(other), own)
    in_order = [(mark.partition_id, mark.tried.last) for mark in store.read_marks(state)]
    assert in_order == [("0", 7), ("0", 8), ("0", MARK.tried.last), ("1", 4)]


def test_only_the_process_that_set_a_mark_takes_it_back_and_a_commit_deletes_those_that_end_in_it(store: Store) -> None:
    state = store.anchor_partition(store.read_partition(P), SequenceNumber(0), EPOCH + timedelta(days=1))
    beside = partition("1")
    for place in (state, store.read_partition(beside)):
        for last in (2, 5, 9, 10):
            own = replace(MARK, partition_id=place.partition.partition_id, tried=span(0, last))
            store.begin_attempt(place, own)
    store.end_attempt(state, SequenceNumber(2), UUID(int=8))
    store.commit_batch(commit(state, 0, 4))
    assert ends(store) == [2, 5, 9, 10]
    for _ in range(2):
        store.end_attempt(state, SequenceNumber(10), MARK.attempt_id)
        assert ends(store) == [2, 5, 9]
    store.commit_batch(replace(commit(store.read_partition(P), 5, 9), is_marked=True))
    assert ends(store) == [2]
    store.clear_attempts(state, span(0, 10))
    assert (ends(store), ends(store, beside)) == ([], [2, 5, 9, 10])

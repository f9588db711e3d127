"""core/ingest/ingest.py: read, decide, write once; and every way in which the store can fail meanwhile."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import pytest

from core.errors import (
    CheckpointConflict,
    CommitOutcomeUnknown,
    DataRefused,
    StoreFault,
    StoreUnavailable,
    StreamIncarnationChanged,
)
from core.ingest.gaps import GapReading
from core.ingest.ingest import CONFLICT_LIMIT, RECURRENT, Ingestion, IngestReport, ingest_batch
from core.ingest.stalled_partitions import SilenceCheck
from core.model.commits import PartitionStop
from core.model.events import Event, EventBatch, SequenceNumber, Span
from core.model.letters import Backoff, LetterPolicy
from core.model.ports import Clock
from core.model.transforms import Transform
from core.store.database import Waiting
from core.store.memory import Memory
from examples.home_security.transform import SensorReading
from tests.fakes.builders import NOON, FakeClock, batch, event, events, ids, partition, stamps
from tests.fakes.faulty_database import Fault, FaultyStore
from tests.fakes.kept import KeptLetter, KeptRow
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store


def ingest(store: Store, *given: Event, seed: int = 0) -> IngestReport:
    """From a hub that holds just these events: what is missing among them is absent."""
    return ingest_batch(batch(given), Ingestion(store, PLAIN, stamps(seed), GapReading(MemoryHub({"0": given}))))


def readings(first: int, last: int) -> tuple[Event, ...]:
    return events(first, last, "reading a")


def numbers(kept: list[KeptRow]) -> list[int]:
    return [one.sequence_number for one in kept]


def ranges(store: MemoryStore) -> list[tuple[int, int]]:
    return [(one.first, one.last) for one in store.ledger()]


def gap(first: int, last: int) -> Span:
    return Span(SequenceNumber(first), SequenceNumber(last))


class TestTheNormalWay:
    def test_a_batch_is_one_commit(self) -> None:
        store = MemoryStore()
        report = ingest(store, event(0, "reading a"), event(1, "quiet"), event(2, "poison"), event(3, "double a"))
        (kept,) = store.ledger()
        assert (kept.first, kept.last) == (0, 3)
        assert (kept.written, kept.filtered, kept.dead_lettered, kept.rows_written) == (2, 1, 1, 3)
        assert numbers(store.rows(SensorReading)) == [0, 3]
        assert (len(report.commits), report.redelivered, report.gaps) == (1, 0, ())

    def test_a_commit_carries_the_stamps_and_names_its_invocation_and_transform(self) -> None:
        clock = FakeClock()
        clock.advance(7)
        (commit,) = ingest_batch(batch(readings(0, 1)), Ingestion(MemoryStore(), PLAIN, stamps(5, clock))).commits
        assert commit.commit_id == next(iter(ids(5)))
        assert commit.committed_at == clock.now()
        assert (commit.invocation_id, commit.transform_version) == ("invocation-1", "plain/1")

    def test_a_redelivered_batch_writes_nothing(self) -> None:
        store = MemoryStore()
        ingest(store, *readings(0, 4))
        report = ingest(store, *readings(0, 4))
        assert (report.commits, report.redelivered, ranges(store)) == ((), 5, [(0, 4)])

    def test_only_the_new_part_of_a_batch_is_committed(self) -> None:
        store = MemoryStore()
        ingest(store, *readings(0, 4))
        report = ingest(store, *readings(3, 7))
        assert (report.redelivered, ranges(store)) == (2, [(0, 4), (5, 7)])
        assert numbers(store.rows(SensorReading)) == list(range(8))

    def test_another_incarnation_stops_the_partition_and_writes_nothing(self) -> None:
        store = MemoryStore()
        ingest(store, *readings(0, 4))
        with pytest.raises(StreamIncarnationChanged):
            ingest(store, event(0, "reading a", at=event(99).enqueued_at))
        assert ranges(store) == [(0, 4)]
        (stop,) = store.read_partition(partition()).stops
        assert (stop.reason, stop.attempts) == ("incarnation", 1)
        assert "event 0 was enqueued after the checkpoint at 4" in stop.detail

    def test_memory_that_runs_out_fails_the_batch_and_writes_nothing(self) -> None:
        def transform(event: Event, references: object) -> list[object]:
            raise MemoryError

        store = MemoryStore()
        with pytest.raises(MemoryError):
            bad = Transform("test/1", transform)  # type: ignore[arg-type]
            ingest_batch(batch(readings(0, 4)), Ingestion(store, bad, stamps()))
        assert store.ledger() == []


class TestLetters:
    """The due times and the contents of a batch's letters."""

    def letters(self, chance: float = 1.0, policy: LetterPolicy | None = None) -> list[KeptLetter]:
        store, clock = MemoryStore(), FakeClock()
        own = replace(stamps(0, clock), chance=lambda: chance)
        means = Ingestion(store, PLAIN, own, letters=policy or LetterPolicy())
        ingest_batch(batch([event(0, "bug"), event(1, "poison"), event(2, "look a")]), means)
        return store.letters()

    @pytest.mark.parametrize(("chance", "seconds"), [(0.0, 0), (0.5, 15), (1.0, 30)])
    def test_wait_for_the_first_pause_as_chance_has_it(self, chance: float, seconds: float) -> None:
        bug, poison, look = self.letters(chance)
        assert bug.due_at == look.due_at == bug.failed_at + timedelta(seconds=seconds)
        assert (poison.status, poison.due_at) == ("exhausted", None)

    def test_wait_as_long_as_the_policy_says(self) -> None:
        bug, _, _ = self.letters(policy=LetterPolicy(Backoff(base=timedelta(seconds=7))))
        assert bug.due_at == bug.failed_at + timedelta(seconds=7)

    def test_keep_their_bodies_or_leave_them_to_the_hub(self) -> None:
        assert [(kept.body, kept.body_kept) for kept in self.letters()][:2] == [(b"bug", True), (b"poison", True)]
        without = self.letters(policy=LetterPolicy(keep_bodies=False))
        assert {(kept.body, kept.body_kept) for kept in without} == {(b"", False)}

    def test_draw_a_chance_each_and_nobody_else_does(self) -> None:
        drawn: list[float] = []

        def draw() -> float:
            drawn.append(0.5)
            return drawn[-1]

        own = replace(stamps(), chance=draw)
        ingest_batch(batch(readings(0, 9)), Ingestion(MemoryStore(), PLAIN, own))
        assert drawn == []
        ingest_batch(
            batch([event(0, "bug"), event(1, "bug"), event(2, "poison")]), Ingestion(MemoryStore(), PLAIN, own)
        )
        assert len(drawn) == 2


class TestReferences:
    def test_missing_references_become_waiting_letters_and_the_rest_is_committed(self) -> None:
        store = MemoryStore()
        ingest(store, event(0, "home a 1"))
        ingest(store, event(1, "look a"), event(2, "look b"), event(3, "reading c"), event(4, "look b"))
        assert numbers(store.rows(SensorReading)) == [1, 3]
        assert [(kept.sequence_number, kept.error_class, kept.status) for kept in store.letters()] == [
            (2, "reference", "waiting"),
            (4, "reference", "waiting"),
        ]

    def test_references_are_read_for_new_events_only(self) -> None:
        store = MemoryStore()
        ingest(store, event(0, "look a"))
        watched = FaultyStore(store)
        ingest(watched, event(0, "look a"), event(1, "quiet"))
        assert watched.calls == ["read_partition", "commit_batch"]

    def test_all_references_of_a_batch_are_one_call(self) -> None:
        watched = FaultyStore(MemoryStore())
        ingest(watched, *(event(number, f"look home-{number}") for number in range(50)))
        calls = ["read_partition", "anchor_partition", "read_partition", "read_references", "commit_batch"]
        assert watched.calls == calls


@dataclass
class World:
    """A store in which events 0 to 4 are committed, and the faults of the commits to come."""

    store: MemoryStore

    def ingest(self, *faults: Fault | None, given: EventBatch | None = None) -> IngestReport:
        faulty = FaultyStore(self.store, on_commit=faults)
        return ingest_batch(given or batch(readings(5, 9)), Ingestion(faulty, PLAIN, stamps(1)))


@pytest.fixture
def world() -> World:
    store = MemoryStore()
    ingest(store, *readings(0, 4))
    return World(store)


class TestConflicts:
    def test_after_a_conflict_only_what_the_rival_left_is_committed(self) -> None:
        store = MemoryStore()

        def rival(inner: Store, _: object) -> None:
            ingest(inner, *readings(0, 2), seed=9)

        report = ingest(FaultyStore(store, on_commit=[Fault.RIVAL], rival=rival), *readings(0, 4))
        assert ranges(store) == [(0, 2), (3, 4)]
        assert (report.redelivered, len(report.commits)) == (3, 1)
        assert numbers(store.rows(SensorReading)) == list(range(5))

    def test_when_the_rival_took_all_nothing_is_left(self, world: World) -> None:
        report = world.ingest(Fault.RIVAL)
        assert (report.commits, report.redelivered) == ((), 5)
        assert [kept.invocation_id for kept in world.store.ledger()] == ["invocation-1", "rival"]

    def test_a_state_that_the_rival_wrote_is_seen_by_the_new_plan(self) -> None:
        store = MemoryStore()

        def rival(inner: Store, _: object) -> None:
            ingest(inner, event(0, "home a 1"), seed=9)

        faulty = FaultyStore(store, on_commit=[None, Fault.RIVAL], rival=rival)
        owner = faulty.remembering(timedelta(hours=1))
        other = partition("1")
        ingest_batch(batch([event(0, "home a 0")], other), Ingestion(owner, PLAIN, stamps(2)))
        ingest(owner, event(0, "home a 1"), event(1, "look a"))
        (kept,) = store.rows(SensorReading)
        assert kept.row == SensorReading("a", "sensorTrue", "look", None, 1, event(1).enqueued_at)

    def test_conflicts_without_end_go_to_the_host(self) -> None:
        class AlwaysBehind(FaultyStore):
            def commit_batch(self, commit: object) -> int:
                self.calls.append("commit_batch")
                raise CheckpointConflict(partition(), None)

        watched = AlwaysBehind(MemoryStore())
        with pytest.raises(CheckpointConflict):
            ingest(watched, *readings(0, 4))
        assert watched.calls.count("commit_batch") == CONFLICT_LIMIT


class TestLostAnswers:
    def test_a_commit_that_was_made_after_all_is_not_made_again(self, world: World) -> None:
        report = world.ingest(Fault.UNANSWERED)
        assert ranges(world.store) == [(0, 4), (5, 9)]
        assert (len(report.commits), report.redelivered) == (1, 0)

    def test_a_commit_that_does_not_stand_is_made_again(self, world: World) -> None:
        report = world.ingest(Fault.LOST)
        assert ranges(world.store) == [(0, 4), (5, 9)]
        assert (len(report.commits), report.redelivered) == (1, 0)

    def test_a_commit_that_was_made_is_followed_by_the_rest_of_the_batch(self) -> None:
        store = MemoryStore()
        report = ingest(FaultyStore(store, on_commit=[Fault.UNANSWERED]), *readings(0, 2), *readings(5, 6))
        assert ranges(store) == [(0, 2), (3, 6)]
        assert (len(report.commits), report.redelivered, report.gaps) == (2, 0, (gap(3, 4),))

    def test_answers_that_stay_lost_go_to_the_host_and_leave_nothing_twice(self, world: World) -> None:
        with pytest.raises(CommitOutcomeUnknown):
            world.ingest(*[Fault.LOST] * 9)
        assert ranges(world.store) == [(0, 4)]
        assert world.ingest().redelivered == 0
        assert ranges(world.store) == [(0, 4), (5, 9)]

    def test_a_report_names_only_commits_of_its_own(self, world: World) -> None:
        (commit,) = world.ingest(Fault.UNANSWERED).commits
        checkpoint = world.store.read_partition(partition()).checkpoint
        assert checkpoint is not None
        assert commit.commit_id == checkpoint.commit_id


class TestOutages:
    def test_a_store_that_stays_away_fails_the_batch_and_writes_nothing(self, world: World) -> None:
        with pytest.raises(StoreUnavailable):
            world.ingest(Fault.NOT_REACHED)
        assert ranges(world.store) == [(0, 4)]
        assert world.store.letters() == []

    def test_a_store_that_cannot_be_read_fails_the_batch(self) -> None:
        for faults in ([Fault.NOT_REACHED], [None, Fault.NOT_REACHED]):
            store = MemoryStore()
            with pytest.raises(StoreUnavailable):
                ingest(FaultyStore(store, on_read=faults), event(0, "look a"))
            assert store.ledger() == []

    def test_a_short_outage_is_waited_out_within_the_call(self) -> None:
        clock, store = FakeClock(), MemoryStore()
        faulty = FaultyStore(
            store, on_commit=[Fault.NOT_REACHED] * 3, on_read=[Fault.NOT_REACHED, None, Fault.NOT_REACHED]
        )
        patient = faulty.patient(timedelta(seconds=20), Waiting(clock.monotonic, clock.sleep, lambda: 1.0))
        report = ingest(patient, event(0, "look a"), event(1, "reading a"))
        assert (len(report.commits), len(clock.slept)) == (1, 5)
        assert ranges(store) == [(0, 1)]


def test_every_plan_has_an_id_of_its_own() -> None:
    seen: list[UUID] = []

    def new_id() -> UUID:
        seen.append(UUID(int=len(seen)))
        return seen[-1]

    own: Callable[[], UUID] = new_id
    store = FaultyStore(MemoryStore(), on_commit=[Fault.LOST, Fault.LOST])
    ingest_batch(batch(readings(0, 4)), Ingestion(store, PLAIN, Clock(FakeClock().now, own)))
    assert len(set(seen)) == len(seen) == 3


def test_the_gap_before_a_commit_whose_answer_was_lost_is_reported() -> None:
    store = FaultyStore(MemoryStore(), on_commit=[None, Fault.UNANSWERED])
    report = ingest(store, *events(0, 2, "quiet"), *events(5, 6, "quiet"))
    assert (report.gaps, report.absent) == ((gap(3, 4),), 2)


def test_conflicts_that_are_not_in_a_row_do_not_add_up() -> None:
    given = [event(number, "reading a" if number % 10 else "huge a") for number in range(60)]
    store = FaultyStore(MemoryStore(), on_commit=[Fault.LOST, None, None, None] * 40)
    assert sum(commit.events for commit in ingest(store, *given).commits) == 60
    assert store.calls.count("commit_batch") > 3 * CONFLICT_LIMIT


LOG_OF_20 = events(0, 19, "reading a")
DETAIL = "the partition failed {} times in a row, last on the database; nothing was dropped: "


class Failing:
    """A partition whose first five events are committed."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), FakeClock()
        self.ingest(self.store, 0, 4)

    def ingest(self, store: Store, first: int, last: int, retries: int = 0) -> None:
        given = replace(batch(LOG_OF_20[first : last + 1]), retries=retries)
        ingest_batch(given, Ingestion(store, PLAIN, stamps(first, self.clock)))

    def fail(self, retries: int, *faults: Fault) -> StoreFault:
        faulty = FaultyStore(self.store, on_commit=faults or [Fault.NOT_REACHED])
        with pytest.raises((StoreUnavailable, CommitOutcomeUnknown)) as caught:
            self.ingest(faulty, 5, 9, retries)
        return caught.value

    def stops(self) -> tuple[PartitionStop, ...]:
        return self.store.read_partition(partition()).stops


@pytest.fixture
def failing() -> Failing:
    return Failing()


def test_from_the_fifth_failure_in_a_row_on_the_partition_is_stopped_at_its_checkpoint_and_then_goes_on(
    failing: Failing,
) -> None:
    for retries in range(5):
        assert failing.stops() == ()
        failing.fail(retries)
    assert [stop.reason for stop in failing.stops()] == ["store"]
    assert failing.store.read_partition(partition()).next_number == 5
    failing.ingest(failing.store, 5, 9)
    assert (failing.stops(), failing.store.read_partition(partition()).next_number) == ((), 10)


def test_a_fault_that_repeats_is_recorded_with_its_count_and_its_last_words(failing: Failing) -> None:
    for retries in range(RECURRENT + 2):
        fault = failing.fail(retries)
    assert failing.stops() == (PartitionStop("store", DETAIL.format(RECURRENT + 2) + str(fault), 3, NOON),)


def test_the_count_goes_on_with_the_next_batch_of_which_the_host_begins_to_count_anew(failing: Failing) -> None:
    for retries in range(9):
        failing.fail(retries)
    for retries in range(3):
        fault = failing.fail(retries)
    assert failing.stops() == (PartitionStop("store", DETAIL.format(12) + str(fault), 8, NOON),)


def test_answers_that_are_lost_again_and_again_are_such_a_fault(failing: Failing) -> None:
    fault = failing.fail(RECURRENT, *[Fault.LOST] * CONFLICT_LIMIT)
    assert isinstance(fault, CommitOutcomeUnknown)
    assert [stop.reason for stop in failing.stops()] == ["store"]


def test_a_commit_that_is_refused_even_without_rows_is_such_a_fault(failing: Failing) -> None:
    failing.store.sql("CREATE TRIGGER full BEFORE INSERT ON batch_ledger BEGIN SELECT RAISE(ABORT, 'it is full'); END")
    for retries in range(RECURRENT):
        with pytest.raises(DataRefused):
            failing.ingest(failing.store, 5, 9, retries)
    assert [(stop.reason, stop.attempts, stop.detail[-10:]) for stop in failing.stops()] == [("store", 1, "it is full")]
    failing.store.sql("DROP TRIGGER full")
    failing.ingest(failing.store, 5, 9, RECURRENT)
    assert failing.stops() == ()


def test_the_first_commit_of_the_partition_ends_the_record_and_no_other_stop(failing: Failing) -> None:
    failing.fail(RECURRENT)
    failing.store.note_stop(failing.store.read_partition(partition()), "outage", "half of it", NOON)
    remembering = Store(failing.store.database, Memory(timedelta(minutes=1)))
    failing.ingest(remembering, 5, 9)
    assert failing.stops() == ()
    failing.ingest(remembering, 10, 14)


def test_a_store_that_cannot_be_written_leaves_the_fault_as_it_is(failing: Failing) -> None:
    faulty = FaultyStore(failing.store, on_commit=[Fault.NOT_REACHED], on_read=[None, Fault.NOT_REACHED])
    with pytest.raises(StoreUnavailable):
        failing.ingest(faulty, 5, 9, RECURRENT)
    assert failing.stops() == ()


def test_the_check_of_silent_partitions_ends_a_record_that_a_different_owner_left(failing: Failing) -> None:
    hub = MemoryHub({"0": LOG_OF_20})
    means = Ingestion(failing.store, PLAIN, stamps(9, failing.clock), GapReading(hub))
    check = SilenceCheck(means, timedelta(hours=1))
    assert list(check.run("timer-1")) == []
    failing.fail(RECURRENT)
    assert list(check.run("timer-2")) == []
    assert [stop.reason for stop in failing.stops()] == ["store"]  # nothing was committed since
    state = replace(failing.store.read_partition(partition()), stops=())  # an owner that does not know of the stop
    remembering = Store(failing.store.database, Memory(timedelta(minutes=1)))
    assert remembering._memory is not None
    remembering._memory.remember(state)
    failing.ingest(remembering, 5, 9)
    assert [stop.reason for stop in failing.stops()] == ["store"]
    assert list(check.run("timer-3")) == []
    assert failing.stops() == ()

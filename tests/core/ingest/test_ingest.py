"""core/ingest/ingest.py: read, decide, write once, every way in which the store can fail, and the order of keys."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from core import errors
from core.errors import CheckpointConflict, CommitOutcomeUnknown, HeldLettersFull, StoreFault, StoreUnavailable
from core.ingest.batch_log import BatchLines
from core.ingest.ingest import CONFLICT_LIMIT, RECURRENT, IngestReport
from core.ingest.stalled_partitions import SilenceCheck
from core.letters.retry import Keeper
from core.model.commits import PartitionStop
from core.model.events import Event, PartitionId, SequenceNumber, span
from core.model.letters import Backoff, LetterPolicy, LetterPosition
from core.model.transforms import Transform
from core.settle.partition_store import MOST_OPEN_KEYS
from core.store.memory import Memory
from examples.home_security.transform import SensorReading
from tests.core.ingest.conftest import HOLDING, World, keyed
from tests.fakes.builders import NOON, STREAM, event, events, ids, partition
from tests.fakes.faulty_database import Fault, FaultyStore, NotedDatabase
from tests.fakes.kept import KeptLetter
from tests.fakes.plain_transform import PLAIN
from tests.fakes.replaying import discard
from tests.fakes.store import Store


def readings(first: int, last: int) -> tuple[Event, ...]:
    return events(first, last, "reading a")


def numbers(world: World) -> list[int]:
    return [one.sequence_number for one in world.store.rows(SensorReading)]


@pytest.fixture
def five() -> World:
    """A world in which events 0 to 4 are committed."""
    world = World(readings(0, 19))
    world.deliver(0, 4)
    return world


def test_a_batch_is_one_commit_with_the_stamps_and_names_of_its_invocation(world: World) -> None:
    world.clock.advance(7)
    report = world.take(event(0, "reading a"), event(1, "quiet"), event(2, "poison"), event(3, "double a"))
    ((commit,), (kept,)) = report.commits, world.store.ledger()
    assert (kept.first, kept.last) == (0, 3)
    assert (kept.written, kept.filtered, kept.dead_lettered, kept.rows_written) == (2, 1, 1, 3)
    assert (numbers(world), report.redelivered, report.gaps) == ([0, 3], 0, ())
    assert (commit.commit_id, commit.committed_at) == (next(iter(ids(1))), world.clock.now())
    assert (commit.invocation_id, commit.transform_version) == ("invocation-1", "plain/1")


def test_a_redelivered_batch_writes_nothing(five: World) -> None:
    report = five.deliver(0, 4)
    assert (report.commits, report.redelivered, five.ranges()) == ((), 5, [(0, 4, 0)])
    report = five.deliver(3, 7)
    assert (report.redelivered, five.ranges()) == (2, [(0, 4, 0), (5, 7, 0)])
    assert numbers(five) == list(range(8))


def test_another_incarnation_stops_the_partition_and_writes_nothing(five: World) -> None:
    with pytest.raises(errors.StreamIncarnationChanged):
        five.take(event(0, "reading a", at=event(99).enqueued_at))
    ((stop,), ranges) = five.stops, five.ranges()
    assert (stop.reason, stop.attempts, ranges) == ("incarnation", 1, [(0, 4, 0)])
    assert "event 0 was enqueued after the checkpoint at 4" in stop.detail


def test_memory_that_runs_out_fails_the_batch_and_writes_nothing(world: World) -> None:
    def transform(event: Event, references: object) -> list[object]:
        raise MemoryError

    with pytest.raises(MemoryError):
        world.take(*readings(0, 4), transform=Transform("test/1", transform))  # type: ignore[arg-type]
    assert world.ranges() == []


def letters(chance: float = 1.0, policy: LetterPolicy | None = None) -> list[KeptLetter]:
    world = World(letters=policy or LetterPolicy())
    drawn: Iterator[float] = iter([chance] * 2)  # one each for those that are tried again, and no more
    bodies = ["bug", "poison", "look a", "reading a"]
    given = [event(number, body) for number, body in enumerate(bodies)]
    world.take(*given, clock=replace(world.means.clock, chance=lambda: next(drawn)))
    return world.store.letters()


@pytest.mark.parametrize(
    ("chance", "backoff", "seconds"),
    [(0.0, Backoff(), 0), (0.5, Backoff(), 15), (1.0, Backoff(), 30), (1.0, Backoff(base=timedelta(seconds=7)), 7)],
)
def test_letters_wait_for_the_first_pause_of_the_policy_as_chance_has_it(
    chance: float, backoff: Backoff, seconds: float
) -> None:
    bug, poison, look = letters(chance, LetterPolicy(backoff))
    assert bug.due_at == look.due_at == bug.failed_at + timedelta(seconds=seconds)
    assert (poison.status, poison.due_at) == ("exhausted", None)
    assert [(one.body, one.body_kept) for one in (bug, poison)] == [(b"bug", True), (b"poison", True)]


def test_letters_may_leave_their_bodies_to_the_hub() -> None:
    assert {(kept.body, kept.body_kept) for kept in letters(policy=LetterPolicy(keep_bodies=False))} == {(b"", False)}


def test_missing_references_become_waiting_letters_and_the_rest_is_committed(world: World) -> None:
    world.take(event(0, "home a 1"))
    watched = world.faulty()
    log = [event(1, "look a"), event(2, "look b"), event(3, "reading c"), event(4, "look b")]
    world.take(*log, store=watched)
    assert watched.calls == ["read_partition", "read_references", "commit_batch"], "all keys are one call"
    assert numbers(world) == [1, 3]
    assert [(kept.sequence_number, kept.error_class, kept.status) for kept in world.store.letters()] == [
        (2, "reference", "waiting"),
        (4, "reference", "waiting"),
    ]
    again = world.faulty()
    world.take(*log, event(5, "quiet"), store=again)
    assert again.calls == ["read_partition", "commit_batch"], "only new events need references"


def test_after_a_conflict_only_what_the_rival_left_is_committed(world: World) -> None:
    def rival(inner: Store, _: object) -> None:
        world.take(event(0, "home a 1"), *readings(1, 2))

    owner = world.faulty(None, Fault.RIVAL, rival=rival).remembering(timedelta(hours=1))
    world.take(event(0, "home a 0"), of="1", store=owner)
    report = world.take(event(0, "home a 1"), *readings(1, 3), event(4, "look a"), store=owner)
    assert (world.ranges(), report.redelivered, len(report.commits)) == ([(0, 2, 0), (3, 4, 0)], 3, 1)
    assert numbers(world) == list(range(1, 5))
    kept = world.store.rows(SensorReading)[-1].row
    assert isinstance(kept, SensorReading) and kept.sensor_id == "sensorTrue", "the state that the rival wrote"


def test_conflicts_without_end_go_to_the_host(world: World) -> None:
    class AlwaysBehind(FaultyStore):
        def commit_batch(self, commit: object) -> int:
            self.calls.append("commit_batch")
            raise CheckpointConflict(partition(), None)

    watched = AlwaysBehind(world.store)
    with pytest.raises(CheckpointConflict):
        world.take(*readings(0, 4), store=watched)
    assert watched.calls.count("commit_batch") == CONFLICT_LIMIT


@pytest.mark.parametrize("fault", [Fault.UNANSWERED, Fault.LOST])
def test_a_commit_that_was_made_after_all_is_not_made_again(five: World, fault: Fault) -> None:
    report = five.deliver(5, 9, store=five.faulty(fault))
    ((commit,), checkpoint) = report.commits, five.store.read_partition(partition()).checkpoint
    assert (five.ranges(), report.redelivered) == ([(0, 4, 0), (5, 9, 0)], 0)
    assert checkpoint is not None and commit.commit_id == checkpoint.commit_id, "only commits of its own"


@pytest.mark.parametrize("faults", [(Fault.UNANSWERED,), (None, Fault.UNANSWERED)])
def test_a_commit_without_an_answer_is_followed_by_the_rest(world: World, faults: tuple[Fault | None, ...]) -> None:
    report = world.take(*readings(0, 2), *readings(5, 6), store=world.faulty(*faults))
    assert world.ranges() == [(0, 2, 0), (3, 6, 2)]
    assert (len(report.commits), report.redelivered, report.gaps, report.absent) == (2, 0, (span(3, 4),), 2)


def test_answers_that_stay_lost_go_to_the_host_and_leave_nothing_twice(five: World) -> None:
    seen: list[UUID] = []

    def new_id() -> UUID:
        seen.append(five.means.clock.new_id())
        return seen[-1]

    with pytest.raises(CommitOutcomeUnknown):
        five.deliver(5, 9, store=five.faulty(*[Fault.LOST] * 9), clock=replace(five.means.clock, new_id=new_id))
    assert len(set(seen)) == len(seen) == CONFLICT_LIMIT, "every plan has an id of its own"
    assert five.ranges() == [(0, 4, 0)]
    assert five.deliver(5, 9).redelivered == 0
    assert five.ranges() == [(0, 4, 0), (5, 9, 0)]


@pytest.mark.parametrize(
    "faults",
    [{"on_commit": [Fault.NOT_REACHED]}, {"on_read": [Fault.NOT_REACHED]}, {"on_read": [None, Fault.NOT_REACHED]}],
)
def test_a_store_that_stays_away_fails_the_batch_and_writes_nothing(world: World, faults: Any) -> None:
    with pytest.raises(StoreUnavailable):
        world.take(event(0, "look a"), store=FaultyStore(world.store, **faults))
    assert (world.ranges(), world.store.letters()) == ([], [])


DETAIL = "the partition failed {} times in a row, last on the database; nothing was dropped: "


def fail(world: World, retries: int, *faults: Fault) -> StoreFault:
    with pytest.raises((StoreUnavailable, CommitOutcomeUnknown)) as caught:
        world.deliver(5, 9, store=world.faulty(*faults or [Fault.NOT_REACHED]), retries=retries)
    return caught.value


def test_from_the_fifth_failure_in_a_row_on_the_partition_is_stopped_there_and_then_goes_on(five: World) -> None:
    for retries in range(RECURRENT - 1):
        fail(five, retries)
        assert [*five.stops] == []
    for retries in range(RECURRENT - 1, RECURRENT + 2):
        fault = fail(five, retries)
    assert [*five.stops] == [PartitionStop("store", DETAIL.format(RECURRENT + 2) + str(fault), 3, NOON)]
    for retries in range(3):  # of the next batch the host begins to count anew
        fault = fail(five, retries)
    assert [*five.stops] == [PartitionStop("store", DETAIL.format(RECURRENT + 5) + str(fault), 6, NOON)]
    assert five.next_number == 5
    five.deliver(5, 9)
    assert (five.stops, five.next_number) == ((), 10)


def test_answers_that_are_lost_again_and_again_are_such_a_fault(five: World) -> None:
    with pytest.raises(StoreUnavailable):  # a store that takes no stop leaves the fault as it is
        faulty = five.faulty(Fault.NOT_REACHED, on_read=[None, Fault.NOT_REACHED])
        five.deliver(5, 9, store=faulty, retries=RECURRENT)
    assert [*five.stops] == []
    assert isinstance(fail(five, RECURRENT, *[Fault.LOST] * CONFLICT_LIMIT), CommitOutcomeUnknown)
    assert [stop.reason for stop in five.stops] == ["store"]


def test_a_commit_that_is_refused_even_without_rows_is_such_a_fault(five: World) -> None:
    five.store.sql("CREATE TRIGGER full BEFORE INSERT ON batch_ledger BEGIN SELECT RAISE(ABORT, 'it is full'); END")
    for retries in range(RECURRENT):
        with pytest.raises(errors.DataRefused):
            five.deliver(5, 9, retries=retries)
    assert [(stop.reason, stop.attempts, stop.detail[-10:]) for stop in five.stops] == [("store", 1, "it is full")]
    five.store.sql("DROP TRIGGER full")
    five.deliver(5, 9, retries=RECURRENT)
    assert five.stops == ()


def test_the_first_commit_of_the_partition_ends_the_record_whoever_left_it(five: World) -> None:
    fail(five, RECURRENT)
    five.store.note_stop(five.store.read_partition(partition()), "outage", "half of it", NOON)
    remembering = Store(five.store.database, Memory(timedelta(minutes=1)))
    five.deliver(5, 9, store=remembering)
    assert five.stops == ()
    five.deliver(10, 14, store=remembering)


def test_the_check_of_silent_partitions_ends_a_record_that_a_different_owner_left(five: World) -> None:
    check = SilenceCheck(five.means, timedelta(hours=1))
    assert list(check.run("timer-1")) == []
    fail(five, RECURRENT)
    assert list(check.run("timer-2")) == []
    assert [stop.reason for stop in five.stops] == ["store"]  # nothing was committed since
    remembering = Store(five.store.database, Memory(timedelta(minutes=1)))
    assert remembering._memory is not None
    remembering._memory.remember(replace(five.store.read_partition(partition()), stops=()))  # it knows of no stop
    five.deliver(5, 9, store=remembering)
    assert [stop.reason for stop in five.stops] == ["store"]
    assert list(check.run("timer-3")) == []
    assert five.stops == ()


class Holding(World):
    """A process that remembers and holds keys, over a database that notes its calls."""

    def __init__(self, **policy: Any) -> None:
        super().__init__(letters=replace(HOLDING, **policy))
        self.noted = NotedDatabase(self.store.database)
        self.start_process()

    def start_process(self) -> None:
        self.means = replace(self.means, store=Store(self.noted).remembering(timedelta(minutes=1)))

    def held(self, *given: Event, **changed: Any) -> tuple[IngestReport, int, list[str]]:
        """The report of a batch, the number of its held events, and the calls."""
        self.noted.calls.clear()
        report = self.take(*given, **changed)
        return report, sum(commit.settled.held for commit in report.commits), self.noted.calls

    def discard(self, *numbers: int) -> None:
        positions = [LetterPosition(PartitionId("0"), SequenceNumber(number)) for number in numbers]
        keeper = Keeper(STREAM, self.store, PLAIN, lambda *_: None, self.means.clock, self.means.letters)
        assert len(discard(positions, keeper, "somebody", "why")) == len(numbers)


def test_only_events_of_keys_with_an_open_letter_are_asked_about_and_held() -> None:
    world = Holding()
    world.take(*keyed(0, 4))
    assert world.held(*keyed(5, 9))[1:] == (0, ["advance_checkpoint"]), "no letter is open"
    world.take(event(10, "poison", key="k"))
    report, held, calls = world.held(*keyed(11, 14))
    assert (held, calls) == (4, ["find_open_letters", "count_held", "advance_checkpoint"])
    assert BatchLines(1).add(report, 0.0, NOON)[0].facts["held"] == 4
    others = [*keyed(15, 18, key="other"), *keyed(19, 20, key=None)]
    assert world.held(*others)[1:] == (0, ["advance_checkpoint"])
    world.start_process()
    assert world.held(*keyed(21, 21))[1] == 1, "a process reads the open keys when it begins"
    world.discard(*range(10, 15), 21)
    assert world.held(*keyed(22, 23))[1] == 0
    assert world.held(*keyed(24, 25))[2] == ["advance_checkpoint"]
    world.take(event(26, "poison", key="k"))
    assert world.held(*keyed(27, 28), letters=LetterPolicy())[1:] == (0, ["advance_checkpoint"]), "without the policy"


@pytest.mark.slow
def test_every_key_is_asked_about_when_too_many_are_open_to_remember() -> None:
    world = Holding()
    world.take(event(0, "poison", key="k"))
    columns = "stream_id, partition_id, offset_token, enqueued_at, properties, body, error_class, error_type, error"
    columns += ", fingerprint, cause, transform_version, status, attempts, failed_at"
    world.store.sql(
        "WITH RECURSIVE n (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n WHERE number <= ?)"
        f" INSERT INTO event_hub_dead_letter (sequence_number, partition_key, {columns})"
        f" SELECT -number, 'key ' || number, {columns} FROM n, event_hub_dead_letter",
        MOST_OPEN_KEYS,
    )
    world.start_process()
    assert world.held(*keyed(1, 1), event(2, "reading a", key="new"))[1] == 1
    assert world.held(event(3, "reading a", key="new"))[2] == ["find_open_letters", "advance_checkpoint"]


def test_the_limit_of_held_letters_commits_the_events_before_it_whatever_their_keys() -> None:
    world = Holding(held_limit=3)
    with pytest.raises(HeldLettersFull, match=r"event 7 .* 3 letters are held already \(HELD_LIMIT\)"):
        log = [*keyed(0, 0), *keyed(1, 1, "poison"), *keyed(2, 3), *keyed(4, 5, key="q"), *keyed(6, 9)]
        world.take(*log)
    assert (world.next_number, [stop.reason for stop in world.stops]) == (7, ["held"])
    assert all(ledger.balanced for ledger in world.store.read_ledgers())


def test_a_partition_goes_on_by_itself_when_held_letters_are_settled_and_its_stop_is_cleared() -> None:
    world, log = Holding(held_limit=2), [*keyed(0, 0, "poison"), *keyed(1, 4)]
    with pytest.raises(HeldLettersFull):
        world.take(*log)
    world.discard(0)
    with pytest.raises(HeldLettersFull):
        world.take(*log)
    (stop,) = world.stops
    assert (world.next_number, stop.reason, stop.attempts) == (4, "held", 2)
    world.discard(1, 2)
    assert world.take(*log).redelivered == 4
    assert (world.next_number, world.stops) == (5, ())


def test_runs_that_are_cut_for_a_refused_row_keep_the_order() -> None:
    world = Holding()
    log = [*keyed(0, 3), *keyed(4, 4, "huge a"), *keyed(5, 9), *keyed(10, 12, key="q")]
    report = world.take(*log)
    assert len(report.commits) > 1
    assert [one.status for one in world.store.letters()] == ["waiting", *["held"] * 5]
    assert sum(commit.settled.written for commit in report.commits) == 7


def test_a_batch_that_is_cut_shows_no_event_the_state_that_a_later_event_writes() -> None:
    world = Holding(held_limit=1)
    world.take(event(0, "home h 0", key="h"), event(1, "bug", key="a"))
    bodies = {2: ("look h", "b"), 3: ("quiet", "a"), 4: ("home h 1", "h"), 5: ("quiet", "a")}
    with pytest.raises(HeldLettersFull):
        world.take(*(event(number, body, key=key) for number, (body, key) in bodies.items()))
    (seen,) = [kept.row for kept in world.store.rows(SensorReading) if kept.sequence_number == 2]
    assert isinstance(seen, SensorReading)
    assert seen.sensor_id == "sensorFalse"

"""core/ingest/ingest.py: a fault of the database that repeats on a partition is recorded until a commit."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.errors import CommitOutcomeUnknown, DataRefused, StoreFault, StoreUnavailable
from core.ingest.gaps import GapReading
from core.ingest.ingest import CONFLICT_LIMIT, RECURRENT, Ingestion, ingest_batch
from core.ingest.stalled_partitions import SilenceCheck
from core.model.commits import PartitionStop
from core.store.memory import Memory
from tests.fakes.builders import NOON, FakeClock, batch, events, partition, stamps
from tests.fakes.faulty_database import Fault, FaultyStore
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store

LOG = events(0, 19, "reading a")
DETAIL = "the partition failed {} times in a row, last on the database; nothing was dropped: "


class World:
    """A partition whose first five events are committed."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), FakeClock()
        self.ingest(self.store, 0, 4)

    def ingest(self, store: Store, first: int, last: int, retries: int = 0) -> None:
        given = replace(batch(LOG[first : last + 1]), retries=retries)
        ingest_batch(given, Ingestion(store, PLAIN, stamps(first, self.clock)))

    def fail(self, retries: int, *faults: Fault) -> StoreFault:
        faulty = FaultyStore(self.store, on_commit=faults or [Fault.NOT_REACHED])
        with pytest.raises((StoreUnavailable, CommitOutcomeUnknown)) as caught:
            self.ingest(faulty, 5, 9, retries)
        return caught.value

    def stops(self) -> tuple[PartitionStop, ...]:
        return self.store.read_partition(partition()).stops


@pytest.fixture
def world() -> World:
    return World()


def test_from_the_fifth_failure_in_a_row_on_the_partition_is_stopped_at_its_checkpoint_and_then_goes_on(
    world: World,
) -> None:
    for retries in range(5):
        assert world.stops() == ()
        world.fail(retries)
    assert [stop.reason for stop in world.stops()] == ["store"]
    assert world.store.read_partition(partition()).next_number == 5
    world.ingest(world.store, 5, 9)
    assert (world.stops(), world.store.read_partition(partition()).next_number) == ((), 10)


def test_a_fault_that_repeats_is_recorded_with_its_count_and_its_last_words(world: World) -> None:
    for retries in range(RECURRENT + 2):
        fault = world.fail(retries)
    assert world.stops() == (PartitionStop("store", DETAIL.format(RECURRENT + 2) + str(fault), 3, NOON),)


def test_the_count_goes_on_with_the_next_batch_of_which_the_host_begins_to_count_anew(world: World) -> None:
    for retries in range(9):
        world.fail(retries)
    for retries in range(3):
        fault = world.fail(retries)
    assert world.stops() == (PartitionStop("store", DETAIL.format(12) + str(fault), 8, NOON),)


def test_answers_that_are_lost_again_and_again_are_such_a_fault(world: World) -> None:
    fault = world.fail(RECURRENT, *[Fault.LOST] * CONFLICT_LIMIT)
    assert isinstance(fault, CommitOutcomeUnknown)
    assert [stop.reason for stop in world.stops()] == ["store"]


def test_a_commit_that_is_refused_even_without_rows_is_such_a_fault(world: World) -> None:
    world.store.sql("CREATE TRIGGER full BEFORE INSERT ON batch_ledger BEGIN SELECT RAISE(ABORT, 'it is full'); END")
    for retries in range(RECURRENT):
        with pytest.raises(DataRefused):
            world.ingest(world.store, 5, 9, retries)
    assert [(stop.reason, stop.attempts, stop.detail[-10:]) for stop in world.stops()] == [("store", 1, "it is full")]
    world.store.sql("DROP TRIGGER full")
    world.ingest(world.store, 5, 9, RECURRENT)
    assert world.stops() == ()


def test_the_first_commit_of_the_partition_ends_the_record_and_no_other_stop(world: World) -> None:
    world.fail(RECURRENT)
    world.store.note_stop(world.store.read_partition(partition()), "outage", "half of it", NOON)
    remembering = Store(world.store.database, Memory(timedelta(minutes=1)))
    world.ingest(remembering, 5, 9)
    assert world.stops() == ()
    world.ingest(remembering, 10, 14)


def test_a_store_that_cannot_be_written_leaves_the_fault_as_it_is(world: World) -> None:
    faulty = FaultyStore(world.store, on_commit=[Fault.NOT_REACHED], on_read=[None, Fault.NOT_REACHED])
    with pytest.raises(StoreUnavailable):
        world.ingest(faulty, 5, 9, RECURRENT)
    assert world.stops() == ()


def test_the_check_of_silent_partitions_ends_a_record_that_a_different_owner_left(world: World) -> None:
    hub = MemoryHub({"0": LOG})
    means = Ingestion(world.store, PLAIN, stamps(9, world.clock), GapReading(hub))
    check = SilenceCheck(means, timedelta(hours=1))
    assert list(check.run("timer-1")) == []
    world.fail(RECURRENT)
    assert list(check.run("timer-2")) == []
    assert [stop.reason for stop in world.stops()] == ["store"]  # nothing was committed since
    state = replace(world.store.read_partition(partition()), stops=())  # an owner that does not know of the stop
    remembering = Store(world.store.database, Memory(timedelta(minutes=1)))
    assert remembering._memory is not None
    remembering._memory.remember(state)
    world.ingest(remembering, 5, 9)
    assert [stop.reason for stop in world.stops()] == ["store"]
    assert list(check.run("timer-3")) == []
    assert world.stops() == ()

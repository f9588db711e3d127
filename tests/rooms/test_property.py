"""However the samples of a room are cut into batches, delivered again, and met by faults: the tables of one pass."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InfrastructureFault
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import Event
from core.transforms.loading import Room
from tests.fakes.builders import batch, partition, stamps
from tests.fakes.faulty_database import Fault, FaultyStore, Killed
from tests.fakes.memory_store import MemoryStore
from tests.fakes.one_pass import assert_equals_one_pass
from tests.fakes.rooms import Rooms
from tests.rooms.found import PARTITIONS, transform_of

FAULTS = [None, None, Fault.NOT_REACHED, Fault.UNANSWERED, Fault.LOST, Fault.RIVAL, Fault.KILLED, Fault.KILLED_AFTER]


@dataclass(frozen=True)
class Delivery:
    """Events of one partition: the first lies `back` events before the end of those that are committed."""

    place: int
    back: int
    length: int


DELIVERIES = st.lists(
    st.builds(Delivery, st.integers(0, PARTITIONS - 1), st.integers(0, 12), st.integers(1, 40)), max_size=30
)


@pytest.mark.slow
@given(deliveries=DELIVERIES, faults=st.lists(st.sampled_from(FAULTS), max_size=30))
def test_any_delivery_with_any_crash_ends_as_one_pass_would(
    room: Room, rooms: Rooms, logs: dict[str, list[Event]], deliveries: list[Delivery], faults: list[Fault | None]
) -> None:
    transform, store = transform_of(room), MemoryStore(rooms=rooms)
    faulty, own = FaultyStore(store, on_commit=faults), stamps()
    whole = [Delivery(place, 0, 1_000) for place in range(PARTITIONS)] * (len(faults) + 1)
    for one in [*deliveries, *whole]:
        log, of = logs.get(str(one.place), []), partition(str(one.place))
        checkpoint = store.read_partition(of).checkpoint
        first = max(0, (checkpoint.sequence_number + 1 if checkpoint else 0) - one.back)
        if not log[first : first + one.length]:
            continue
        try:
            ingest_batch(batch(log[first : first + one.length], of), Ingestion(faulty, transform, own))
        except (InfrastructureFault, Killed):
            continue  # the host delivers the events again
    assert_equals_one_pass(store, logs, transform=transform)
    assert [books.balanced for books in store.read_ledgers()] == [True] * len(logs)

"""A world with a hub that is recreated or failed over, a store, and a process between them."""

import threading
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from core.errors import StreamIncarnationChanged
from core.incarnations.hub_check import HubVerification
from core.incarnations.next_incarnation import Incarnations
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, IngestReport, ingest_batch
from core.ingest.stalled_partitions import SilenceCheck
from core.model.commits import PartitionStop
from core.model.events import Event
from core.settle.partition_store import Partitions
from examples.home_security.transform import SensorReading
from tests.fakes.builders import EPOCH, FakeClock, batch, event, partition, stamps
from tests.fakes.incarnations import opening
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store

OLD, NEW = EPOCH - timedelta(days=1), EPOCH + timedelta(hours=1)
REFUSED = "recreated, restored or failed over"


def log(first: int, last: int, body: str = "reading old", since: datetime = EPOCH) -> list[Event]:
    """Events, each enqueued as many seconds after a time as its number says."""
    return [event(number, body, at=since + timedelta(seconds=number)) for number in range(first, last + 1)]


def renewed(first: int, last: int) -> list[Event]:
    """Events of a recreated hub."""
    return log(first, last, "reading new", NEW)


class World:
    """A hub of two partitions, a store, and a process that remembers what it has read."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.hub = MemoryHub({"0": [], "1": []})
        self.hub.made_at = OLD
        self.base = MemoryStore()
        self.start_process()

    def start_process(self) -> None:
        self.store: Store = self.base.remembering(timedelta(seconds=60), self.clock.monotonic)
        self.means = self._means(self.store)
        self.silence = SilenceCheck(self._means(self.base), timedelta(seconds=60))

    def _means(self, store: Store) -> Ingestion:
        verified = HubVerification(self.hub, self.clock.monotonic, threading.RLock())
        return Ingestion(store, PLAIN, stamps(1, self.clock), GapReading(self.hub), incarnations=verified)

    def deliver(self, events: list[Event], id: str = "0") -> IngestReport:
        """Publish events that the hub does not hold yet, and hand them over."""
        self.hub.publish(id, [one for one in events if one.sequence_number not in self.hub.held[id]])
        return ingest_batch(batch(events, partition(id)), self.means)

    def refuse(self, events: list[Event], id: str = "0") -> str:
        """Return the message of the stop."""
        before = (self.base.rows(SensorReading), self.base.ledger())
        with pytest.raises(StreamIncarnationChanged, match=REFUSED) as stop:
            self.deliver(events, id)
        assert (self.base.rows(SensorReading), self.base.ledger()) == before
        return str(stop.value)

    def recreate(self, *events: Event) -> None:
        """Recreate the hub, with these events in partition 0."""
        self.hub.recreate_hub(NEW)
        self.hub.publish("0", events)

    def open_next(self, first: int = 0) -> None:
        """Open the next incarnation as an operator does, in a separate process."""
        made = replace(opening(self.base, first), hub_created_at=self.hub.made_at)
        Incarnations(self.base.database, Partitions(self.base.database)).open_incarnation(made)

    @property
    def stops(self) -> tuple[PartitionStop, ...]:
        return self.base.read_partition(partition()).stops

    def ranges(self) -> list[tuple[int, int]]:
        return [(kept.first, kept.last) for kept in self.base.ledger()]

    def asked(self, call: str) -> int:
        """Count the requests of a kind since the last time, and forget them."""
        count = self.hub.asked.count(call)
        self.hub.asked.clear()
        return count

    def bodies(self) -> dict[tuple[int, str], set[str]]:
        """Return whose rows each stream and partition has: `old` or `new`."""
        found: dict[tuple[int, str], set[str]] = {}
        for row in self.base.rows(SensorReading):
            home = row.row.home_id  # type: ignore[attr-defined]
            found.setdefault((row.stream_id, row.partition_id), set()).add(home)
        return found


@pytest.fixture
def world() -> World:
    return World()

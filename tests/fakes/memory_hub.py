"""A hub in memory that keeps the promises of HubReader: logs that grow, retention, and outages on demand."""

from collections.abc import Callable, Generator, Iterable, Mapping
from datetime import datetime, timedelta

from core.errors import HubUnreachable
from core.model.events import Event, Partition, PartitionId, SequenceNumber
from core.model.ports import BEFORE_FIRST, Extent, OffsetRefused, Place
from tests.fakes.builders import EPOCH, partition

Fails = Callable[[], bool]


class MemoryHub:
    """A HubReader over logs in memory. `fails` says before each answer and event whether the hub is out of reach."""

    def __init__(self, logs: Mapping[str, Iterable[Event]], fails: Fails = lambda: False) -> None:
        self.held: dict[str, dict[SequenceNumber, Event]] = {}
        self.last: dict[str, int] = {}
        self.last_at: dict[str, datetime] = {}
        for id, log in logs.items():
            self.recreate(id)
            self.publish(id, log)
        self.fails = fails
        self.asked: list[str] = []
        self.made_at = EPOCH - timedelta(days=1)

    def recreate(self, partition_id: str) -> None:
        """Make a partition empty, as if it never had an event."""
        self.held[partition_id], self.last[partition_id], self.last_at[partition_id] = {}, -1, EPOCH

    def recreate_hub(self, made_at: datetime) -> None:
        self.made_at = made_at
        for id in self.held:
            self.recreate(id)

    def publish(self, partition_id: str, events: Iterable[Event]) -> None:
        for event in events:
            self.held[partition_id][event.sequence_number] = event
            self.last[partition_id], self.last_at[partition_id] = event.sequence_number, event.enqueued_at

    def expire_before(self, partition_id: str, number: int) -> None:
        for gone in [one for one in self.held[partition_id] if one < number]:
            del self.held[partition_id][gone]

    def lose(self, partition_id: str, *numbers: int) -> None:
        for number in numbers:
            del self.held[partition_id][SequenceNumber(number)]

    def partitions(self) -> tuple[Partition, ...]:
        self._answer("partitions")
        return tuple(partition(id) for id in self.held)

    def created_at(self) -> datetime:
        self._answer("created_at")
        return self.made_at

    def extent(self, partition: Partition) -> Extent:
        self._answer("extent")
        id = partition.partition_id
        last = self.last[id]
        return Extent(SequenceNumber(min(self.held[id], default=last + 1)), SequenceNumber(last), self.last_at[id])

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        self._answer("first_at")
        self._refuse_offset(partition, place)
        return next((event for event in self._log(partition.partition_id) if _is_at(event, place)), None)

    def find_event(self, partition: Partition, sequence_number: SequenceNumber) -> Event | None:
        self._answer("find_event")
        return self.held[partition.partition_id].get(sequence_number)

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        self._answer("read_range")
        id = partition.partition_id
        for number in sorted(self.held[id]):
            event = self.held[id].get(number)  # it may have left the hub since the read began
            if event is not None and first <= number <= last:
                if self.fails():
                    raise HubUnreachable("the hub does not answer")
                yield event

    def _refuse_offset(self, partition: Partition, place: Place) -> None:
        if isinstance(place, str) and place != BEFORE_FIRST:
            last = max((int(event.offset) for event in self._log(partition.partition_id)), default=-1)
            if not place.isdecimal() or int(place) > last:
                raise OffsetRefused(partition, place)

    def _log(self, partition_id: PartitionId) -> list[Event]:
        log = self.held[partition_id]
        return [log[number] for number in sorted(log)]

    def _answer(self, call: str) -> None:
        self.asked.append(call)
        if self.fails():
            raise HubUnreachable("the hub does not answer")


def _is_at(event: Event, place: Place) -> bool:
    if isinstance(place, datetime):
        return event.enqueued_at >= place
    return int(event.offset) >= int(place) if isinstance(place, str) else event.sequence_number >= place

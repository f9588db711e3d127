"""The hub reader: extents, single events and ranges, through a separate consumer group and the SDK's sync client.

The trigger's readers hold an epoch in their consumer group, which admits no other reader.
"""

import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from core.errors import HubRefused, HubUnreachable
from core.model.events import BATCH_EVENTS, Event, Partition, PartitionId, SequenceNumber, Span
from core.model.ports import BEFORE_FIRST, Extent, HubReader, OffsetRefused, Place
from core.remote.hub.client import LINK_TIMEOUT, link_fault, open_sync_client
from core.remote.hub.events import to_event
from core.remote.hub.host_values import why_undeliverable
from core.remote.hub.links import ManagementLink, ReceivingLink
from core.settings import Settings

KEEP = 2.0  # seconds to remember the ends: Event Hubs answers at most 50 such calls a second for a whole namespace


def read_ends(hub: HubReader) -> Mapping[PartitionId, int]:
    """Return the last sequence number of each partition (-1: none yet), or raise HubUnreachable."""
    try:
        return {one.partition_id: hub.extent(one).last for one in hub.partitions()}
    except (HubRefused, HubUnreachable) as error:
        raise HubUnreachable(f"the hub did not answer: {error}") from error


Made = TypeVar("Made")
QUIET = 1.0  # seconds without an event; then the extent is read again
RENEWED = 30.0  # seconds after which the partitions are read again: a hub may get more
TRIES = 3  # times in a row that a link may break; then the hub counts as unreachable
_WRONG_OFFSET = ("argument-error", "argument-out-of-range", "invalid-offset")  # parts of the hub's error conditions
HUB, GROUP = "EVENTHUB_NAME", "HUB_READER_CONSUMER_GROUP"  # the setting that a refusal names


class SdkHubReader:
    """A HubReader with one client for the whole process, connected on first use. Any thread may call it.

    `convert` makes an event of the SDK's: the trigger's events look different from the worker's. `now` is the clock of
    the deadlines, and `monotonic` gives the seconds of the known partitions.
    """

    def __init__(
        self,
        settings: Settings,
        convert: Callable[[Any], Event] = to_event,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._now = now
        self._monotonic = monotonic
        self._convert = convert
        self._lock = threading.Lock()
        self._kept: tuple[Any, ManagementLink] | None = None
        self._ids: list[PartitionId] = []
        self._ids_read_at = 0.0

    def partitions(self) -> tuple[Partition, ...]:
        return tuple(map(self._settings.stream.partition, self.partition_ids()))

    def partition_ids(self) -> list[PartitionId]:
        """Return the ids of the partitions, read again after RENEWED seconds: always the one list, which changes."""
        if not self._ids or self._monotonic() - self._ids_read_at >= RENEWED:
            with self._faults(HUB):
                self._note_ids(self._client().get_partition_ids())
        return self._ids

    def created_at(self) -> datetime:
        with self._faults(HUB):
            found = self._client().get_eventhub_properties()
        self._note_ids(found["partition_ids"])  # a recreated hub may have more or fewer
        created_at: datetime = found["created_at"]
        return created_at.astimezone(UTC)

    def extent(self, partition: Partition) -> Extent:
        with self._faults(HUB):
            found = self._client().get_partition_properties(self._id_of(partition))
        last = SequenceNumber(found["last_enqueued_sequence_number"])
        beginning = last + 1 if found["is_empty"] else found["beginning_sequence_number"]
        return Extent(SequenceNumber(beginning), last, found["last_enqueued_time_utc"].astimezone(UTC))

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        extent = self.extent(partition)
        is_after = place > extent.last_enqueued_at if isinstance(place, datetime) else False
        if extent.beginning > extent.last or is_after or (isinstance(place, int) and place > extent.last):
            return None
        deadline = time.monotonic() + LINK_TIMEOUT
        with _refusing_offsets(partition, place), self._link(partition, place, 1) as link:
            while not (arrived := link.receive()):
                if time.monotonic() > deadline:
                    raise HubUnreachable(f"{partition}: no event at {place} in {LINK_TIMEOUT:g} s")
        return self._convert(arrived[0])

    def find_event(self, partition: Partition, sequence_number: SequenceNumber) -> Event | None:
        found = self.first_at(partition, sequence_number)
        return found if found is not None and found.sequence_number == sequence_number else None

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        def is_late() -> bool:
            return self._now() >= deadline

        following, tries = first, 0
        while following <= last and (held := self._held(partition, Span(following, last))) is not None:
            try:
                with self._link(partition, held.first, min(BATCH_EVENTS, held.length)) as link:
                    for event in _events(link, is_late, self._convert):
                        if event is None:  # quiet: the hub may hold no more of them
                            break
                        if event.sequence_number > last:
                            return
                        yield event
                        following, tries = SequenceNumber(event.sequence_number + 1), 0
                        if event.sequence_number >= held.last:
                            break
            except HubUnreachable:
                tries += 1
                if tries == TRIES or is_late():
                    raise

    def suspect(self, partition: Partition, first: SequenceNumber) -> str | None:
        """Return a clause about the first event of a batch, from a number on, that the trigger cannot deliver."""
        held = self._held(partition, Span(first, SequenceNumber(first + BATCH_EVENTS - 1)))
        if held is None:
            return None
        with self._link(partition, held.first, held.length) as link:
            for event in _events(link, lambda: False, lambda found: found):
                if event is None or event.sequence_number > held.last:
                    return None
                if (why := why_undeliverable(event)) is not None:
                    return f"event {event.sequence_number:,} cannot be delivered: {why}"
                if event.sequence_number == held.last:
                    return None
        return None

    def check_access(self) -> None:
        """Open one link, so that a wrong consumer group is reported now and not at the first gap."""
        partition = self.partitions()[0]
        deadline = time.monotonic() + LINK_TIMEOUT
        with self._link(partition, BEFORE_FIRST, 1) as link:
            while not link.is_ready:
                link.receive()
                if time.monotonic() > deadline:
                    raise HubUnreachable(f"{partition}: the hub did not answer in {LINK_TIMEOUT:g} s")

    def close(self) -> None:
        with self._lock:
            kept, self._kept = self._kept, None
        if kept is not None:
            client, management = kept
            management.close()
            client.close()

    def _note_ids(self, ids: Iterable[str]) -> None:
        self._ids[:] = map(PartitionId, ids)
        self._ids_read_at = self._monotonic()

    def _held(self, partition: Partition, wanted: Span) -> Span | None:
        """Return the part of a range that the hub may still hold."""
        extent = self.extent(partition)
        return wanted.overlap(Span(extent.beginning, extent.last))

    def _client(self) -> Any:
        with self._lock:
            if self._kept is None:
                client = open_sync_client(self._settings, self._settings.reader_group, retry_backoff_factor=0)
                self._kept = (client, ManagementLink(client))
            return self._kept[0]

    @contextmanager
    def _link(self, partition: Partition, place: Place, count: int) -> Iterator[ReceivingLink]:
        id = self._id_of(partition)
        with (
            self._faults(GROUP),
            closing(ReceivingLink(self._client(), self._settings.reader_group, id, place, count)) as link,
        ):
            yield link

    def _id_of(self, partition: Partition) -> PartitionId:
        hub = self._settings.stream.event_hub
        if partition.event_hub != hub:
            raise HubRefused(f"EVENTHUB_NAME: {partition} is not a partition of {hub}")
        return partition.partition_id

    @contextmanager
    def _faults(self, setting: str) -> Iterator[None]:
        from azure.eventhub.exceptions import EventHubError

        try:
            yield
        except (EventHubError, OSError) as error:
            raise link_fault(self._settings, self._settings.reader_group, setting, error) from error


@contextmanager
def _refusing_offsets(partition: Partition, place: Place) -> Iterator[None]:
    """Raise OffsetRefused instead of a fault of the hub whose error condition says that the offset is wrong."""
    try:
        yield
    except (HubUnreachable, HubRefused) as fault:
        if isinstance(place, str) and any(word in str(fault.__cause__).lower() for word in _WRONG_OFFSET):
            raise OffsetRefused(partition, place) from fault
        raise


def _events(link: ReceivingLink, is_late: Callable[[], bool], convert: Callable[[Any], Made]) -> Iterator[Made | None]:
    """Yield the events that arrive, and None after QUIET seconds. Raises HubUnreachable when the time is up."""
    heard_at = time.monotonic()
    while True:
        arrived = link.receive()
        yield from map(convert, arrived)
        now = time.monotonic()
        if arrived or not link.is_ready:
            heard_at = now
        if is_late():
            raise HubUnreachable("the hub did not send all events of a range in time")
        if now - heard_at > QUIET:
            yield None

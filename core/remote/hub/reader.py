"""The hub reader: extents, single events and ranges, through a consumer group of its own and the SDK's sync client.

The trigger's readers hold an epoch on their group, beside which no other reader is let in.
"""

import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any

from core.errors import HubRefused, HubUnreachable
from core.model.events import Event, Partition, PartitionId
from core.model.hub import Extent, Place
from core.model.spans import SequenceNumber
from core.remote.hub.client import open_client, sync_credential
from core.remote.hub.events import to_event
from core.remote.hub.faults import first_line, named
from core.remote.hub.links import BEGINNING, Link, open_link
from core.remote.hub.management import Management, keep_management_open
from core.settings import Settings

PIECE = 500  # events that a link asks for at once
QUIET = 1.0  # seconds without an event after which the hub is asked whether it still has any
SINGLE = 20.0  # seconds for one event
TRIES = 3  # in a row that a link may break before the hub counts as unreachable
HUB, GROUP = "EVENTHUB_NAME", "HUB_READER_CONSUMER_GROUP"  # the setting that a refusal names


class SdkHubReader:
    """See HubReader. One client for the whole process, connected on first use; any thread may ask."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._kept: tuple[Any, Management | None] | None = None
        self._ids: tuple[PartitionId, ...] = ()

    def partitions(self) -> tuple[Partition, ...]:
        """See HubReader."""
        if not self._ids:
            with self._faults(HUB):
                self._ids = tuple(map(PartitionId, self._client().get_partition_ids()))
        return tuple(map(self._settings.stream.partition, self._ids))

    def extent(self, partition: Partition) -> Extent:
        """See HubReader."""
        with self._faults(HUB):
            found = self._client().get_partition_properties(self._id_of(partition))
        last = SequenceNumber(found["last_enqueued_sequence_number"])
        beginning = last + 1 if found["is_empty"] else found["beginning_sequence_number"]
        return Extent(SequenceNumber(beginning), last, found["last_enqueued_time_utc"].astimezone(UTC))

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        """See HubReader; an offset must be one that the hub gave."""
        extent = self.extent(partition)
        if extent.beginning > extent.last or _lies_behind(place, extent):
            return None
        deadline = time.monotonic() + SINGLE
        with self._link(partition, place, 1) as link:
            while not (arrived := link.receive()):
                if time.monotonic() > deadline:
                    raise HubUnreachable(f"{partition}: no event at {place} in {SINGLE:g} s")
        return to_event(arrived[0])

    def find_event(self, partition: Partition, sequence_number: SequenceNumber) -> Event | None:
        """See HubReader."""
        found = self.first_at(partition, sequence_number)
        return found if found is not None and found.sequence_number == sequence_number else None

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        """See HubReader; a link that breaks is opened again behind the last event."""
        following, tries = first, 0
        while following <= last and (span := self._held(partition, following, last)) is not None:
            try:
                with self._link(partition, span[0], min(PIECE, span[1] - span[0] + 1)) as link:
                    for event in _events(link, deadline):
                        if event is None:  # quiet: does the hub still hold any of them?
                            break
                        if event.sequence_number > last:
                            return
                        yield event
                        following, tries = SequenceNumber(event.sequence_number + 1), 0
                        if event.sequence_number >= span[1]:
                            break
            except HubUnreachable:
                tries += 1
                if tries == TRIES or datetime.now(UTC) >= deadline:
                    raise

    def check_access(self) -> None:
        """Open one link, so that a wrong consumer group is told at once and not when the first gap is found."""
        partition = self.partitions()[0]
        deadline = time.monotonic() + SINGLE
        with self._link(partition, BEGINNING, 1) as link:
            while not link.is_ready:
                link.receive()
                if time.monotonic() > deadline:
                    raise HubUnreachable(f"{partition}: the hub did not answer in {SINGLE:g} s")

    def close(self) -> None:
        """Let go of every connection that is kept."""
        with self._lock:
            kept, self._kept = self._kept, None
        if kept is not None:
            client, management = kept
            if management is not None:
                management.close()
            client.close()

    def _held(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber
    ) -> tuple[SequenceNumber, SequenceNumber] | None:
        """The part of a range that the hub may still hold."""
        extent = self.extent(partition)
        begin, end = max(first, extent.beginning), min(last, extent.last)
        return (begin, end) if begin <= end else None

    def _client(self) -> Any:
        with self._lock:
            if self._kept is None:
                client = self._open_client()
                self._kept = (client, keep_management_open(client))
            return self._kept[0]

    def _open_client(self) -> Any:
        from azure.eventhub import EventHubConsumerClient

        group = self._settings.reader_group
        try:
            return open_client(
                self._settings,
                EventHubConsumerClient,
                sync_credential,
                consumer_group=group,
                retry_total=0,
                retry_backoff_factor=0,
            )
        except ValueError as error:
            raise HubRefused(f"EVENTHUB: {first_line(error)}") from error

    @contextmanager
    def _link(self, partition: Partition, place: Place, count: int) -> Iterator[Link]:
        id = self._id_of(partition)
        with (
            self._faults(GROUP),
            closing(open_link(self._client(), self._settings.reader_group, id, place, count)) as link,
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
            raise named(self._settings, self._settings.reader_group, setting, error) from error


def _lies_behind(place: Place, extent: Extent) -> bool:
    if isinstance(place, datetime):
        return place > extent.last_enqueued_at
    return isinstance(place, int) and place > extent.last


def _events(link: Link, deadline: datetime) -> Iterator[Event | None]:
    """What arrives, and None when nothing did for a while; HubUnreachable when the time is up."""
    heard_at = time.monotonic()
    while True:
        arrived = link.receive()
        yield from map(to_event, arrived)
        now = time.monotonic()
        if arrived or not link.is_ready:
            heard_at = now
        if datetime.now(UTC) >= deadline:
            raise HubUnreachable("the hub did not give all events of a range in time")
        if now - heard_at > QUIET:
            yield None

"""The reads of the hub besides the trigger's batches: the ends of a partition, single events, and ranges."""

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from core.errors import HubledgerError
from core.model.events import Event, Partition
from core.model.spans import SequenceNumber

# A place in a partition: a number, an offset (a text, never compared), or the first event enqueued from a time on.
Place = SequenceNumber | str | datetime

BEFORE_FIRST = "-1"  # the offset before the first event that the hub holds


class OffsetRefused(HubledgerError):
    """The hub does not accept an offset: it is after the last event, or not in the hub's form."""

    def __init__(self, partition: object, offset: str) -> None:
        super().__init__(f"{partition}: the hub does not accept the offset {offset}: copy one of an event of this hub")
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Extent:
    """The ends of a partition: the hub holds no event before `beginning`; `last` is the newest number (-1: none yet).

    `beginning` is `last` + 1 when the hub holds no event.
    """

    beginning: SequenceNumber
    last: SequenceNumber
    last_enqueued_at: datetime


class HubReader(Protocol):
    """Reads the hub through a separate consumer group. Several threads may call every method.

    Any method may raise HubUnreachable or HubRefused; the latter names the setting that has to change.
    """

    def partitions(self) -> tuple[Partition, ...]:
        """Return all partitions of the hub, as the trigger's consumer group sees them."""

    def created_at(self) -> datetime:
        """Return the time at which the hub was created: a hub that is recreated has a new one."""

    def extent(self, partition: Partition) -> Extent:
        """Return the ends of a partition at this moment."""

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        """Return the first event at or after a place, or None while the hub has no such event.

        Raises OffsetRefused for an offset that the hub does not accept.
        """

    def find_event(self, partition: Partition, sequence_number: SequenceNumber) -> Event | None:
        """Return the event of exactly this number, or None when the hub does not hold it."""

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        """Yield the events of a range in order; after the last one, numbers that are not yielded are not in the hub.

        Close the generator if you stop before its end.
        """

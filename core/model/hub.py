"""What the hub can be asked beside the batches that it hands over: how far it reaches, and single events and ranges."""

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from core.model.events import Event, Partition
from core.model.spans import SequenceNumber

# A place in a partition: a number, an offset (a text, never compared), or the time from which events were enqueued.
Place = SequenceNumber | str | datetime


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a partition reaches: nothing below `beginning` is held, and `last` was given last (-1: none ever was).

    `beginning` is `last` + 1 where the hub holds nothing at all.
    """

    beginning: SequenceNumber
    last: SequenceNumber
    last_enqueued_at: datetime


class HubReader(Protocol):
    """Reads the hub through a consumer group of its own. Every method may be called from several threads.

    Any of them may raise HubUnreachable or HubRefused; the latter names the setting that has to change.
    """

    def partitions(self) -> tuple[Partition, ...]:
        """All partitions of the hub, as the trigger's consumer group sees them."""
        ...

    def extent(self, partition: Partition) -> Extent:
        """How far it reaches at this moment."""
        ...

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        """The first event at or behind a place, or None while the hub has none there."""
        ...

    def find_event(self, partition: Partition, sequence_number: SequenceNumber) -> Event | None:
        """The event of exactly this number, or None when the hub does not hold it."""
        ...

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        """The events of a range in order; whatever of it did not come when this ends is not in the hub.

        Close the generator when you stop before its end.
        """
        ...

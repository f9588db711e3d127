"""The two ports of the business: the reader of the hub, and the clock with ids and chance."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol
from uuid import UUID

from core.errors import HubledgerError
from core.model.events import Event, Partition, SequenceNumber


@dataclass(frozen=True, slots=True)
class Clock:
    """Gives the time (aware UTC), new ids, and chance (0 to 1) for backoff. By default every pause is the longest."""

    now: Callable[[], datetime]
    new_id: Callable[[], UUID]
    chance: Callable[[], float] = lambda: 1.0


def parse_instant(text: str) -> datetime:
    """Return the time that a text in RFC 3339 names, in UTC.

    Raises ValueError for a time without a zone or outside of UTC.
    """
    moment = datetime.fromisoformat(text)
    return in_utc(moment)


def utc_text(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC with six digits. ValueError as `in_utc` raises it."""
    return f"{in_utc(moment).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def in_utc(moment: datetime) -> datetime:
    """Return a time in UTC. ValueError for one without a zone, or outside of the years 1 to 9999 there."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{moment.isoformat()} is not in the years 1 to 9999 of UTC") from error


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
    """The ends of a partition: the hub holds no event before `beginning`. `last` is the newest number (-1: none yet).

    `beginning` is `last` + 1 when the hub holds no event.
    """

    beginning: SequenceNumber
    last: SequenceNumber
    last_enqueued_at: datetime


class HubReader(Protocol):
    """Reads the hub through a separate consumer group. Several threads may call every method.

    Any method may raise HubUnreachable or HubRefused. HubRefused names the setting that has to change.
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
        """Yield the events of a range in order. After the last one, numbers that are not yielded are not in the hub.

        Close the generator if you stop before its end.
        """

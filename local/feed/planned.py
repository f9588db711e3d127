"""The parts of every story: minutes of one sender, with events whose outcome is known beforehand."""

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

WRITTEN, FILTERED, POISON, REFERENCE = "written", "filtered", "poison", "reference"
CRASH, REFUSAL = "crash", "refused"
LETTERS = (POISON, REFERENCE, CRASH, REFUSAL)
FIRST_INSTANT = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z in microseconds
MINUTE = 60_000_000  # microseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

E = TypeVar("E", bound=tuple[Any, ...])


class PlannedEvent(NamedTuple, Generic[E]):
    """A body to publish, and its expected outcome, followed by the expected content of its rows."""

    body: bytes
    expected: E


class Minute(NamedTuple, Generic[E]):
    """The events that one sender publishes at once, in this order, under its own partition key, if it has one."""

    partition_key: str | None
    events: list[PlannedEvent[E]]


class Zone(NamedTuple):
    """A time zone without summer time, so that its name fixes its offset."""

    name: str
    offset: timezone


ZONES = (
    Zone("Etc/UTC", UTC),
    Zone("Africa/Lagos", timezone(timedelta(hours=1))),
    Zone("America/Phoenix", timezone(timedelta(hours=-7))),
    Zone("Asia/Kolkata", timezone(timedelta(hours=5, minutes=30))),
    Zone("Asia/Tokyo", timezone(timedelta(hours=9))),
)


def instant_text(microseconds: int, zone: Zone) -> str:
    """Return an instant on the clocks of a zone: ISO 8601 with its offset."""
    return (_EPOCH + timedelta(microseconds=microseconds)).astimezone(zone.offset).isoformat()


def story_of(next_minute: Callable[[float], Minute[E]], events: int | None) -> Iterator[Minute[E]]:
    """Yield minutes with exactly so many events, or without end.

    `next_minute` takes the number of events that may still be published.
    """
    left: float = math.inf if events is None else events
    while left > 0:
        minute = next_minute(left)
        left -= len(minute.events)
        yield minute


def with_duplicates(events: list[PlannedEvent[E]], share: float, room: float, chance: Random) -> list[PlannedEvent[E]]:
    """Repeat some events, each directly after itself; the limit of the whole list is `room`."""
    for position in range(len(events) - 1, -1, -1):
        if chance.random() < share and len(events) < room:
            events.insert(position, events[position])
    return events


def walk(senders: int, chance: Random) -> tuple[int, int]:
    """Return a stride and a start that visit each sender once a round, in a different order than the names."""
    start, stride = chance.randrange(senders), 1 + int(senders * 0.618)
    while math.gcd(stride, senders) != 1:
        stride += 1
    return stride, start

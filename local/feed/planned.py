"""What every story is made of: minutes of one sender, and in them events of which it is known what they must become."""

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

WRITTEN, FILTERED, POISON, REFERENCE = "written", "filtered", "poison", "reference"
LETTERS = (POISON, REFERENCE)
FIRST_INSTANT = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z in microseconds
MINUTE = 60_000_000  # microseconds

E = TypeVar("E", bound=tuple[Any, ...])


class PlannedEvent(NamedTuple, Generic[E]):
    """A body to publish, and what must become of it: first the outcome, then what its rows must say."""

    body: bytes
    expected: E


class Minute(NamedTuple, Generic[E]):
    """What one sender publishes at once, in this order, under its own partition key."""

    partition_key: str
    events: list[PlannedEvent[E]]


def told(next_minute: Callable[[float], Minute[E]], events: int | None) -> Iterator[Minute[E]]:
    """A story of exactly so many events, or without end; `next_minute` hears how many may still be published."""
    left: float = math.inf if events is None else events
    while left > 0:
        minute = next_minute(left)
        left -= len(minute.events)
        yield minute


def with_duplicates(events: list[PlannedEvent[E]], share: float, room: float, chance: Random) -> list[PlannedEvent[E]]:
    """Some events once more, each after itself, and no more than `room` altogether."""
    for position in range(len(events) - 1, -1, -1):
        if chance.random() < share and len(events) < room:
            events.insert(position, events[position])
    return events


def walk(senders: int, chance: Random) -> tuple[int, int]:
    """A stride and a start that visit each sender once a round, not in the order of their names."""
    start, stride = chance.randrange(senders), 1 + int(senders * 0.618)
    while math.gcd(stride, senders) != 1:
        stride += 1
    return stride, start

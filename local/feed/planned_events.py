"""Planned events: minutes of one sender with known outcomes, and the faults of real senders."""

import math
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from local.feed.event_file import FileEvent

Fault = Callable[[str], bytes]

UNKNOWN_KINDS = ("smoke", "water_leak", "thermostat", "doorbell")


def truncated(body: str) -> bytes:
    """Cut the body in half, like a sender that dies while it writes."""
    return body[: len(body) // 2].encode()


def not_utf8(body: str) -> bytes:
    return body.replace('"sensor_id":"', '"sensor_id":"\xfc', 1).encode("latin-1")


def empty(body: str) -> bytes:
    """Leave out the whole body."""
    return b""


def not_a_number(body: str) -> bytes:
    """Write NaN, as some encoders do. JSON does not know it."""
    return body.replace('"observed_at"', '"ppm":NaN,"observed_at"', 1).encode()


def not_an_object(body: str) -> bytes:
    return f"[{body}]".encode()


def wrong_case(body: str) -> bytes:
    """Write the kind in capitals, which makes it an unknown kind."""
    return re.sub('"kind":"([a-z_]+)"', lambda found: found[0].upper().replace("KIND", "kind"), body).encode()


def missing_field(body: str) -> bytes:
    return re.sub('"sensor_id":"[^"]*",', "", body).encode()


def extra_field(body: str) -> bytes:
    """Add a field of a different version of the form."""
    return body.replace("{", '{"firmware":"4.2",', 1).encode()


def wrong_type(body: str) -> bytes:
    """Write a number in place of a text."""
    return re.sub('"sensor_id":"[^"]*"', '"sensor_id":7', body).encode()


def wrong_value(body: str) -> bytes:
    """Write a state that no switch has, or a negative concentration."""
    return re.sub('"state":"[a-z]+"', '"state":"ajar"', re.sub('"ppm":', '"ppm":-', body)).encode()


def without_zone(body: str) -> bytes:
    """Leave out the offset of the local time."""
    return re.sub(r'(T[0-9:.]+)[^"]*"}', r'\1"}', body).encode()


def not_a_date(body: str) -> bytes:
    return re.sub(r'"(\d{4})-\d\d-\d\dT', r'"\1-02-30T', body).encode()


def out_of_range(body: str) -> bytes:
    """Write the time of a clock that was never set. The outcome is certain only where the home is registered."""
    return re.sub(r'"\d{4}-(\d\d)-\d\dT', r'"1970-\1-01T', body).encode()


MALFORMED: tuple[Fault, ...] = (
    truncated,
    not_utf8,
    empty,
    not_a_number,
    not_an_object,
    wrong_case,
    missing_field,
    extra_field,
    wrong_type,
    wrong_value,
    without_zone,
    not_a_date,
)
MALFORMED_WHEN_REGISTERED: tuple[Fault, ...] = (*MALFORMED, out_of_range)


def malformed(body: str, faults: tuple[Fault, ...], chance: Random) -> bytes:
    return chance.choice(faults)(body)


def unknown_kind(body: str, chance: Random) -> bytes:
    return re.sub('"kind":"[a-z_]+"', f'"kind":"{chance.choice(UNKNOWN_KINDS)}"', body).encode()


WRITTEN, FILTERED, POISON, REFERENCE = "written", "filtered", "poison", "reference"
CRASH, REFUSAL = "crash", "refused"
LETTERS = (POISON, REFERENCE, CRASH, REFUSAL)
FIRST_INSTANT = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z in microseconds
MINUTE = 60_000_000  # microseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

E = TypeVar("E", bound=tuple[Any, ...])


class PlannedEvent(NamedTuple, Generic[E]):
    """A body to publish, and its expected outcome, followed by the expected content of its rows. An event of a file may
    have `sent` properties."""

    body: bytes
    expected: E
    sent: FileEvent | None = None


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
    """Repeat some events, each directly after itself. The limit of the whole list is `room`."""
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

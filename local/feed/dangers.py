"""Dangers in a story: events that kill the process, whose rows the database refuses, or that no trigger delivers.

Each kind fails in one of the trigger's ways: binding fails, the reader stops, or the event is dropped in silence.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle, islice
from random import Random
from typing import Any

from core.model.events import Event
from core.model.rows import ReferenceKey, References, Row
from examples.home_security import transform as home_security
from examples.home_security.transform import Home, HomeAlert, SensorReading
from local.event_hubs.codec import Described, Raw, Symbol, ULong, encode
from local.event_hubs.sections import APPLICATION_PROPERTIES, DATA, MESSAGE_ANNOTATIONS, SEQUENCE, VALUE
from local.feed.homes import EXPECT_POISON, Expected, HomeScript
from local.feed.planned_events import CRASH, REFUSAL, WRITTEN, Minute, PlannedEvent

__all__ = ["VERSION", "Home", "HomeAlert", "SensorReading", "references", "transform"]

VERSION = "home_security_in_chaos/1"
KILLING, REFUSED = b"!kill", b"!refuse"  # bodies begin with these
DEADLY = 86  # the exit code of a process that an event has killed
TOO_LARGE = 2**63  # for every column of whole numbers


def references(event: Event) -> Iterable[ReferenceKey]:
    return () if event.body.startswith(b"!") else home_security.references(event)


def transform(event: Event, references: References) -> Iterable[Row]:
    """Return the rows of home_security. End the process for a killing body."""
    if event.body.startswith(KILLING):
        print(f"event {event.sequence_number} kills its process", file=sys.stderr, flush=True)
        os._exit(DEADLY)
    if event.body.startswith(REFUSED):
        return (SensorReading("home", "co-1", "carbon_monoxide", None, TOO_LARGE, event.enqueued_at),)
    return home_security.transform(event, references)


PARTITION_KEY = Symbol("x-opt-partition-key")
DECIMAL64 = Raw(b"\x84\x31\xc0\x00\x00\x00\x00\x00\x01")

Reading = PlannedEvent[Expected]


class WireBody(bytes):
    """The body of an event as the app's reader gives it. `sections` are the body and properties of its message."""

    sections: bytes

    def __new__(cls, body: bytes, *sections: bytes) -> "WireBody":
        made = super().__new__(cls, body)
        made.sections = b"".join(sections)
        return made


def message_of(body: WireBody, key: str | None, properties: dict[str, float]) -> bytes:
    """Return the encoded message of a body, with its partition key and further properties."""
    head = b"" if key is None else section(MESSAGE_ANNOTATIONS, {PARTITION_KEY: key})
    return head + (section(APPLICATION_PROPERTIES, properties) if properties else b"") + body.sections


def section(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))


def text(reading: Reading, mark: str) -> Reading:
    """Put a text where the data should be, as a JMS TextMessage has it: a letter."""
    return PlannedEvent(WireBody(f'"{mark}"'.encode(), section(VALUE, mark)), EXPECT_POISON)


def sequence(reading: Reading, mark: str) -> Reading:
    """Put a sequence where the data should be: a letter."""
    return PlannedEvent(WireBody(f'["{mark}",1]'.encode(), section(SEQUENCE, [mark, 1])), EXPECT_POISON)


def fields(reading: Reading, mark: str) -> Reading:
    """Put the fields of the reading into a map, as a JMS MapMessage has them: the reading's rows."""
    return PlannedEvent(WireBody(reading.body, section(VALUE, json.loads(reading.body))), reading.expected)


def map_property(reading: Reading, mark: str) -> Reading:
    """Give the reading a map as a property: its rows."""
    return _with_property(reading, {"mark": mark})


def short_decimal(reading: Reading, mark: str) -> Reading:
    """Give the reading a decimal of 64 bits as a property: its rows."""
    return _with_property(reading, DECIMAL64)


def _with_property(reading: Reading, value: Any) -> Reading:
    properties = section(APPLICATION_PROPERTIES, {"undeliverable": value})
    return PlannedEvent(WireBody(reading.body, properties, section(DATA, reading.body)), reading.expected)


KINDS = (text, map_property, short_decimal, sequence, fields)

REFUSED_EVENTS = 5  # of a story

Danger = Callable[[PlannedEvent[Expected], str], PlannedEvent[Expected]]
"""Make a dangerous event of a reading; the text occurs once in a story."""


def killing(reading: PlannedEvent[Expected], mark: str) -> PlannedEvent[Expected]:
    return PlannedEvent(KILLING + f" {mark}".encode(), Expected(CRASH))


def refused(reading: PlannedEvent[Expected], mark: str) -> PlannedEvent[Expected]:
    return PlannedEvent(REFUSED + f" {mark}".encode(), Expected(REFUSAL))


def dangers_of(killers: int | None, undeliverable: int) -> list[Danger]:
    """Return so many dangers of each kind, and with a number of killers some refused events too."""
    own = [] if killers is None else [killing] * killers + [refused] * REFUSED_EVENTS
    return [*own, *islice(cycle(KINDS), undeliverable)]


def with_dangers(
    minutes: Iterator[Minute[Expected]], script: HomeScript, dangers: Sequence[Danger]
) -> Iterator[Minute[Expected]]:
    """Replace some readings of a bounded story, each in a separate part, by the dangers in any order."""
    chance, waiting = Random(f"dangers {script.seed}"), list(dangers)
    chance.shuffle(waiting)
    part = (script.events or 0) / max(1, len(waiting))
    due = [int(part * (place + 0.1 + 0.6 * chance.random())) for place in range(len(waiting))]
    published = 0
    for minute in minutes:
        published += len(minute.events)
        expected = minute.events[-1].expected
        is_reading = expected.outcome == WRITTEN and expected.kind != "registration"
        if due and published > due[0] and is_reading:
            due.pop(0)
            minute.events[-1] = waiting.pop(0)(minute.events[-1], f"{minute.partition_key} {published}")
        yield minute

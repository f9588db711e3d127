"""Readings in messages that Azure's trigger cannot deliver, with the outcome that the app's own reader leads to.

Each kind fails in one of the trigger's ways: binding fails, the reader stops, or the event is dropped in silence.
"""

import json
from typing import Any

from local.event_hubs.codec import Described, Raw, Symbol, ULong, encode
from local.event_hubs.sections import APPLICATION_PROPERTIES, DATA, MESSAGE_ANNOTATIONS, SEQUENCE, VALUE
from local.feed.home_rule import EXPECT_POISON, Expected
from local.feed.planned import PlannedEvent

PARTITION_KEY = Symbol("x-opt-partition-key")
DECIMAL64 = Raw(b"\x84\x31\xc0\x00\x00\x00\x00\x00\x01")

Reading = PlannedEvent[Expected]


class WireBody(bytes):
    """The body of an event as the app's reader gives it; `sections` are the body and properties of its message."""

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
    """Return an encoded section of a message."""
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

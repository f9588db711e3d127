"""The port between the Event Hubs trigger and a hub (the SDK's, or one in memory for tests).

The rules were measured with the real host, and local/README.md has them in words. Of all that is found in a message,
the worst counts. A value that the host cannot read is one for which the app has words.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any, Protocol

from core.remote.hub.amqp_values import NotReadable
from core.remote.hub.host_values import why_unreadable
from local.event_hubs import sections as of_message
from local.event_hubs.codec import NULL, DecodeError, Symbol, encode, skip
from local.event_hubs.sections import items, sections

MOST_NESTED = 64  # levels: 30 are delivered, 200 are not
PARTITION_KEY = encode(Symbol("x-opt-partition-key"))
_MAPS, _COMPOUNDS, _ARRAYS = (0xC1, 0xD1), (0xC0, 0xC1, 0xD0, 0xD1), {0xE0: 3, 0xF0: 9}  # the place of a constructor
_PLAIN = frozenset(
    b"\x40\x41\x42\x43\x44\x45\x50\x51\x52\x53\x54\x55\x56\x70\x71\x72\x80\x81\x82\x83\x98\xa0\xa1\xa3\xb0\xb1\xb3"
)
_SHORT_DECIMALS, _CHAR, _DESCRIBED = (0x74, 0x84), 0x73, 0
_STRING, _SYMBOL, _BINARY, _TIME = b"\xa1\xb1", b"\xa3\xb3", b"\xa0\xb0", b"\x83"
_ID = b"\x43\x44\x53\x80\x98" + _BINARY + _STRING
# The constructors of the fields of the section of properties; an address is decoded as it is, and must be a string.
_FIELDS = (_ID, _BINARY, None, _STRING, None, _ID, _SYMBOL, _SYMBOL, _TIME, _TIME, _STRING, b"\x43\x52\x70", _STRING)


class Delivery(IntEnum):
    """The end of an event in the trigger, from good to bad."""

    DELIVERED = 0
    BINDING_FAILS = 1  # at every try, before the function
    READER_STOPS = 2  # and opens again, on the same event
    DROPPED = 3  # in silence, with the events that were received with it


def delivery_of(message: bytes) -> Delivery:
    """Return the end of a message that a hub hands out."""
    try:
        each = list(sections(message))
        rules = _BESIDE_DATA if any(one.code == of_message.DATA for one in each) else _RULES
        found = [rules[code](message[body:end]) for code, _, body, end in each if code in rules]
    except (DecodeError, NotReadable, LookupError, struct.error):
        return Delivery.DROPPED
    return max(found, default=Delivery.DELIVERED)


def _of_annotations(encoded: bytes) -> Delivery:
    each = items(encoded, 0)
    keys = [value for name, value in zip(each[::2], each[1::2], strict=False) if name == PARTITION_KEY]
    is_bound = not keys or keys[-1][0] in _STRING + NULL
    return max(_of_items(each), Delivery.DELIVERED if is_bound else Delivery.BINDING_FAILS)


def _of_map(encoded: bytes) -> Delivery:
    return _of_items(items(encoded, 0))


def _of_items(each: Sequence[bytes]) -> Delivery:
    if len(each) % 2:
        return Delivery.DROPPED
    return max(map(_of_property, each[1::2]), default=Delivery.DELIVERED)


def _of_property(encoded: bytes) -> Delivery:
    return Delivery.DELIVERED if encoded[0] in _PLAIN else max(_of_value(encoded), _alone(encoded))


def _alone(encoded: bytes) -> Delivery:
    """Return the end of a value without those in it."""
    return Delivery.READER_STOPS if why_unreadable(encoded) else Delivery.DELIVERED


def _of_value(encoded: bytes, depth: int = 0) -> Delivery:
    """Return the end of a value by the kinds of values in it."""
    code = encoded[0]
    if depth > MOST_NESTED or code in _SHORT_DECIMALS:
        return Delivery.DROPPED
    if code == _DESCRIBED:
        return _of_value(encoded[skip(encoded, 1) :], depth + 1)
    if code == _CHAR:
        return _alone(encoded)
    if code in _ARRAYS:
        elements = encoded[_ARRAYS[code] :]
        return Delivery.DROPPED if elements and elements[0] in _SHORT_DECIMALS else Delivery.DELIVERED
    if code not in _COMPOUNDS:
        skip(encoded, 0)
        return Delivery.DELIVERED
    each = items(encoded, 0)
    if code in _MAPS and len(each) % 2:
        return Delivery.DROPPED
    return max((_of_value(one, depth + 1) for one in each), default=Delivery.DELIVERED)


def _of_fields(encoded: bytes) -> Delivery:
    """Return the end of the section of properties, whose decoder refuses a field of a wrong type."""
    found = Delivery.DELIVERED
    for allowed, part in zip(_FIELDS, items(encoded, 0), strict=False):
        if part != NULL and part[0] not in (_STRING if allowed is None else allowed):
            found = max(found, Delivery.READER_STOPS if allowed is None else Delivery.DROPPED)
    return found


_RULES: Mapping[int, Callable[[bytes], Delivery]] = {
    of_message.MESSAGE_ANNOTATIONS: _of_annotations,
    of_message.PROPERTIES: _of_fields,
    of_message.APPLICATION_PROPERTIES: _of_map,
    of_message.SEQUENCE: lambda _: Delivery.BINDING_FAILS,
    of_message.VALUE: lambda encoded: Delivery.DELIVERED if encoded == NULL else Delivery.BINDING_FAILS,
    of_message.FOOTER: _of_map,
}
_OTHER_BODIES = (of_message.SEQUENCE, of_message.VALUE)  # beside data the host does not look at them
_BESIDE_DATA = {code: rule for code, rule in _RULES.items() if code not in _OTHER_BODIES}


@dataclass(frozen=True, slots=True)
class StartAt:
    """The start of reading: after `offset` (an opaque text, or AMQP's "-1" or "@latest"), or after `enqueued_at`.

    `sequence_number` is that of the event at `offset`, where it is known.
    """

    offset: str | None = None
    enqueued_at: datetime | None = None
    sequence_number: int | None = None


START = StartAt(offset="-1", sequence_number=-1)
END = StartAt(offset="@latest")


@dataclass(frozen=True, slots=True)
class HubEvent:
    """One event of a partition. `enqueued_at` is aware UTC; `system_properties` are JSON, as the message has them.

    An event that does not bind fails its invocation before the function.
    """

    body: bytes
    sequence_number: int
    offset: str
    enqueued_at: datetime
    partition_key: str | None = None
    properties: Mapping[str, Any] | None = field(default_factory=dict)  # as JSON; None: .NET has no values for them
    system_properties: dict[str, Any] = field(default_factory=dict)
    binds: bool = True

    @property
    def position(self) -> StartAt:
        return StartAt(self.offset, None, self.sequence_number)


@dataclass(frozen=True, slots=True)
class HubAddress:
    """A hub and a consumer group; `namespace` is fully qualified and has no port."""

    namespace: str
    hub: str
    consumer_group: str


class ReaderStopped(Exception):
    """The reader cannot read an event; the events that were received with it are lost to this stream."""

    def __init__(self, sequence_number: int, *, is_first: bool) -> None:
        super().__init__(f"the reader stops on event {sequence_number}")
        self.sequence_number = sequence_number
        self.is_first = is_first  # of what was received with it


class EventStream(Protocol):
    """The events of one partition, in order. A stream survives lost connections."""

    async def read(self, limit: int) -> Sequence[HubEvent]:
        """Wait for events and return 1 to `limit` of them. A cancelled read loses none.

        Raises ReaderStopped after the last event that was received before; then the stream has ended.
        """

    async def close(self) -> None:
        """Close the partition."""


class EventSource(Protocol):
    """One hub, read by one consumer group."""

    async def partition_ids(self) -> Sequence[str]:
        """Return the hub's partitions; log and retry while the hub cannot be reached."""

    async def open(self, partition_id: str, start: StartAt) -> EventStream:
        """Begin to read a partition."""

    async def close(self) -> None:
        """Close the connections."""

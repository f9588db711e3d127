"""The frames of AMQP 1.0 (part 2): performatives read into typed values, and frames ready to be written.

azure-eventhub indexes the fields of a performative, so every field is written, trailing nulls included.
"""

import struct
from dataclasses import dataclass
from typing import Any

from local.event_hubs.codec import NULL, DecodeError, Described, Raw, Symbol, ULong, decode, encode, encode_list, skip
from local.event_hubs.errors import AmqpError
from local.event_hubs.sections import items

OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
SASL_MECHANISMS, SASL_INIT, SASL_OUTCOME = 0x40, 0x41, 0x44
ERROR, ACCEPTED, REJECTED = 0x1D, 0x24, 0x25
SOURCE, TARGET = 0x28, 0x29
AMQP_FRAME, SASL_FRAME = 0, 1
MIXED, _SECOND = 2, 1  # the last settle modes of senders and receivers (AMQP 1.0 part 2.8.2, 2.8.3)
AMQP_HEADER, SASL_HEADER = b"AMQP\0\1\0\0", b"AMQP\3\1\0\0"
HEARTBEAT = b"\0\0\0\x08\2\0\0\0"
MAX_FRAME = 65_536
SMALLEST_MAX_FRAME = 512  # AMQP 1.0 part 2.4.1
_LARGEST_ARRIVING = 0xFFFFFFFF

FRAME_HEADER = struct.Struct(">IBBH")
_FIELD_COUNTS = {
    OPEN: 10,
    BEGIN: 8,
    ATTACH: 14,
    FLOW: 11,
    TRANSFER: 11,
    DISPOSITION: 6,
    DETACH: 3,
    END: 1,
    CLOSE: 1,
    ERROR: 3,
    SASL_MECHANISMS: 1,
    SASL_OUTCOME: 2,
}

# The frame of a settled transfer up to its payload. All deliveries share one tag, as settled deliveries may, because
# azure-eventhub stores each distinct tag for ever.
_TRANSFER = struct.Struct(">I 2s H 7s I c I 11s")
TRANSFER_OVERHEAD = _TRANSFER.size
_TRANSFER_START = b"\0\x53\x14\xc0\x16\x0b\x70"
_TRANSFER_LAST = b"\xa0\1\0\x43\x41" + b"\x42" + NULL * 5
_TRANSFER_MORE = b"\xa0\1\0\x43\x41" + b"\x41" + NULL * 5


@dataclass(frozen=True, slots=True)
class Open:
    """The open of a peer: the host it means, if it says so, the size limit of its frames, and the milliseconds of
    silence it accepts, 0 for no limit."""

    hostname: str
    max_frame: int
    idle_timeout: int


@dataclass(frozen=True, slots=True)
class Begin:
    """The begin of a peer."""

    next_outgoing: int
    incoming_window: int


@dataclass(frozen=True, slots=True)
class Terminus:
    """A source or target: its kind (a descriptor), address, filters and encoding."""

    kind: int | None
    address: str
    filters: dict[Any, Any]
    encoded: Raw


@dataclass(frozen=True, slots=True)
class Attach:
    """The attach of a peer, which receives or sends over the link, and the settle modes that it asks for."""

    name: str
    handle: int
    peer_receives: bool
    sender_settles: int
    receiver_settles: int
    source: Terminus
    target: Terminus
    capabilities: tuple[str, ...]
    properties: dict[Any, Any]


@dataclass(frozen=True, slots=True)
class Flow:
    """The flow of a peer. Without a handle it is about the session alone."""

    next_incoming: int
    incoming_window: int
    handle: int | None
    delivery_count: int
    credit: int | None
    drain: bool
    echo: bool


@dataclass(frozen=True, slots=True)
class Transfer:
    """The part of a delivery in one frame. Only the delivery id and format of the first part count."""

    handle: int
    delivery_id: int | None
    message_format: int
    settled: bool
    more: bool
    aborted: bool
    payload: bytes


class Fields:
    """The fields of a performative. Missing ones at the end are null. A field of a wrong type is a DecodeError."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def value(self, index: int) -> Any:
        return self._values[index] if index < len(self._values) else None

    def number(self, index: int, default: int | None = None) -> int:
        """Return a whole number. Without a default the field is mandatory."""
        value = self.value(index)
        if value is None and default is not None:
            return default
        if type(value) is not int or not 0 <= value <= _LARGEST_ARRIVING:
            raise DecodeError(f"field {index} is not a whole number")
        return value

    def number_up_to(self, limit: int, index: int, default: int) -> int:
        value = self.number(index, default)
        if value > limit:
            raise DecodeError(f"field {index} is {value}, not 0 to {limit}")
        return value

    def number_or_none(self, index: int) -> int | None:
        return None if self.value(index) is None else self.number(index)

    def flag(self, index: int) -> bool:
        return self.value(index) is True

    def text(self, index: int) -> str:
        value = self.value(index)
        if not isinstance(value, str):
            raise DecodeError(f"field {index} is not a text")
        return value

    def mapping(self, index: int) -> dict[Any, Any]:
        value = self.value(index)
        if value is not None and not isinstance(value, dict):
            raise DecodeError(f"field {index} is not a map")
        return value or {}


def frame_size(data: bytes, at: int) -> int:
    """Return the size in bytes of the frame that begins at `at`. Raises AmqpError."""
    size: int = FRAME_HEADER.unpack_from(data, at)[0]
    if not FRAME_HEADER.size <= size <= MAX_FRAME:
        limits = f"{FRAME_HEADER.size} to {MAX_FRAME}"
        raise AmqpError("amqp:connection:framing-error", f"a frame of {size} bytes is outside {limits}")
    return size


def read_performative(body: bytes) -> tuple[int, Fields, int]:
    """Return the code and fields of the performative in a frame's body, and the payload's start. Raises DecodeError."""
    described, end = decode(body)
    if not isinstance(described, Described) or type(described.descriptor) is not int:
        raise DecodeError("a frame does not begin with a performative")
    if type(described.value) is not list:
        raise DecodeError("a performative is not a list")
    return described.descriptor, Fields(described.value), end


def read_open(fields: Fields) -> Open:
    hostname = "" if fields.value(1) is None else fields.text(1)
    return Open(hostname, max(SMALLEST_MAX_FRAME, fields.number(2, MAX_FRAME)), fields.number(4, 0))


def read_begin(fields: Fields) -> Begin:
    return Begin(fields.number(1), fields.number(2))


def read_attach(fields: Fields, body: bytes) -> Attach:
    """Read an attach. Its source and target are stored encoded too, because the answer repeats them."""
    encoded = items(body, skip(body, 1))
    return Attach(
        name=fields.text(0),
        handle=fields.number(1),
        peer_receives=fields.flag(2),
        sender_settles=fields.number_up_to(MIXED, 3, MIXED),
        receiver_settles=fields.number_up_to(_SECOND, 4, 0),
        source=_terminus(fields.value(5), encoded[5] if len(encoded) > 5 else Raw(NULL)),
        target=_terminus(fields.value(6), encoded[6] if len(encoded) > 6 else Raw(NULL)),
        capabilities=_texts(fields.value(12)),
        properties=fields.mapping(13),
    )


def _terminus(value: Any, encoded: Raw) -> Terminus:
    if value is None:
        return Terminus(None, "", {}, encoded)
    if not isinstance(value, Described) or type(value.value) is not list:
        raise DecodeError("a source or target is not a described list")
    fields = Fields(value.value)
    if value.descriptor not in (SOURCE, TARGET):
        return Terminus(value.descriptor, "", {}, encoded)
    address = "" if fields.value(0) is None else fields.text(0)
    filters = fields.mapping(7) if value.descriptor == SOURCE else {}
    return Terminus(value.descriptor, address, filters, encoded)


def _texts(value: Any) -> tuple[str, ...]:
    """Return the texts of an array of symbols, which a peer may write as one symbol."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    return tuple(text for text in values if isinstance(text, str))


def read_flow(fields: Fields) -> Flow:
    return Flow(
        next_incoming=fields.number(0, 0),
        incoming_window=fields.number(1),
        handle=fields.number_or_none(4),
        delivery_count=fields.number(5, 0),
        credit=fields.number_or_none(6),
        drain=fields.flag(8),
        echo=fields.flag(9),
    )


def read_transfer(fields: Fields, payload: bytes) -> Transfer:
    return Transfer(
        handle=fields.number(0),
        delivery_id=fields.number_or_none(1),
        message_format=fields.number(3, 0),
        settled=fields.flag(4),
        more=fields.flag(5),
        aborted=fields.flag(9),
        payload=payload,
    )


def composite(code: int, *fields: Any) -> Raw:
    """Encode a described list with every field of its type."""
    encoded = [encode(field) for field in fields]
    encoded += [NULL] * (_FIELD_COUNTS.get(code, 0) - len(fields))
    return Raw(b"\x00" + encode(ULong(code)) + encode_list(encoded))


def frame(performative: bytes, channel: int = 0, kind: int = AMQP_FRAME) -> bytes:
    return FRAME_HEADER.pack(FRAME_HEADER.size + len(performative), 2, kind, channel) + performative


def transfer_frame(channel: int, handle: int, delivery_id: int, payload: bytes, more: bool) -> bytes:
    """Encode the frame, without its payload, of a settled delivery or of a part of one."""
    rest = _TRANSFER_MORE if more else _TRANSFER_LAST
    size = _TRANSFER.size + len(payload)
    return _TRANSFER.pack(size, b"\2\0", channel, _TRANSFER_START, handle, b"\x70", delivery_id, rest)


def describe(error: AmqpError | None) -> Raw | None:
    """Encode an error for a peer. Return None for none."""
    return composite(ERROR, Symbol(error.condition), error.description) if error else None


SERIAL = 0xFFFFFFFF
_HALF = 1 << 31


def difference(first: int, second: int) -> int:
    """Return how far `first` is after `second`, or a negative number when it is before."""
    return ((first - second + _HALF) & SERIAL) - _HALF

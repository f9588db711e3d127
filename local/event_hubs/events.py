"""The events that a hub makes of a publisher's message, each stamped with its place and time.

Bob Jenkins' lookup3 over the key's UTF-8 bytes, as in PartitionResolver.cs of azure-sdk-for-net, which is a port of the
code of the service.
"""

import struct
from typing import Any, NamedTuple

from local.event_hubs.codec import DecodeError, Described, Raw, Symbol, ULong, decode, encode, encode_map
from local.event_hubs.errors import AmqpError, MalformedMessage
from local.event_hubs.sections import DATA, DELIVERY_ANNOTATIONS, HEADER, MESSAGE_ANNOTATIONS, VALUE, items, sections

BATCH_FORMAT = 0x80013700  # Microsoft's message format: every data section is a separate message
_MESSAGE_FORMATS = (0, BATCH_FORMAT)

_SEQUENCE_NUMBER, _OFFSET, _ENQUEUED_TIME, _PARTITION_KEY = (
    encode(Symbol("x-opt-" + name)) for name in ("sequence-number", "offset", "enqueued-time", "partition-key")
)
_STAMPS = frozenset((_SEQUENCE_NUMBER, _OFFSET, _ENQUEUED_TIME))
_SECTION_START = b"\x00\x53" + bytes((MESSAGE_ANNOTATIONS,))
_NULL = 0x40
_OF_NULL = {  # a body of null is an empty one, a value of null is a value, and any different section of null is none
    DATA: encode(Described(ULong(DATA), b"")),
    VALUE: encode(Described(ULong(VALUE), None)),
}
_SEQUENCE_VALUE = struct.Struct(">cq")
_TIME_VALUE = struct.Struct(">cq")


class Event(NamedTuple):
    """An event as its partition stores it. `enqueued_at` is in milliseconds since the Unix epoch.

    `payload` is the whole message, encoded as every reader gets it. An event is a tuple because there are millions.
    """

    sequence_number: int
    offset: int
    enqueued_at: int
    payload: bytes


class Unstamped(NamedTuple):
    """An event before it has a place: its annotations, encoded keys and values in turn, and its other sections."""

    annotations: list[Raw]
    rest: bytes


class Publication(NamedTuple):
    """The events that one message publishes together, its annotations, and the key that chooses their partition."""

    partition_key: str | None
    events: list[Unstamped]
    annotations: list[Raw]


def read_publication(message: bytes, message_format: int) -> Publication:
    """Return the events of a message: one, or those of a batch.

    Raises MalformedMessage for broken bytes, AmqpError amqp:not-implemented for an unknown message format.
    """
    if message_format not in _MESSAGE_FORMATS:
        raise AmqpError("amqp:not-implemented", f"message format {message_format:#x} is not emulated")
    try:
        outer = _split(message)
        events = [outer]
        if message_format == BATCH_FORMAT:  # a message without annotations gets those of the batch
            split = [_split(_binary(message, body)) for code, _, body, _ in sections(message) if code == DATA]
            events = [each if each.annotations else Unstamped(outer.annotations, each.rest) for each in split]
        return Publication(_partition_key(outer.annotations), events, outer.annotations)
    except DecodeError as error:
        raise MalformedMessage(str(error)) from error


def _binary(message: bytes, at: int) -> bytes:
    value: Any = decode(message, at)[0]
    if not isinstance(value, bytes):
        raise DecodeError("a data section does not hold binary")
    return value


def _split(message: bytes) -> Unstamped:
    annotations: list[Raw] = []
    rest = []
    for code, start, body, end in sections(message):
        if code == MESSAGE_ANNOTATIONS:
            annotations = _without_stamps(items(message, body))
        elif code not in (HEADER, DELIVERY_ANNOTATIONS):  # neither reaches a reader
            rest.append(message[start:end] if message[body] != _NULL else _OF_NULL.get(code, b""))
    return Unstamped(annotations, b"".join(rest))


def key_of(encoded: Raw) -> bytes:
    """Return the key of an annotation in one encoding: the length of a symbol may be in one byte or in four."""
    return b"\xa3" + encoded[4:] if encoded.startswith(b"\xb3\x00\x00\x00") else encoded


def _without_stamps(annotations: list[Raw]) -> list[Raw]:
    """Return the annotations without the stamps of an earlier hub, which a forwarded event still has."""
    if len(annotations) % 2:
        raise DecodeError("a map has a key without a value")
    keys = [key_of(each) for each in annotations[::2]]
    if _STAMPS.isdisjoint(keys):
        return annotations
    pairs = zip(annotations[::2], annotations[1::2], strict=True)
    return [each for key, pair in zip(keys, pairs, strict=True) if key not in _STAMPS for each in pair]


def _partition_key(annotations: list[Raw]) -> str | None:
    """Return the partition key. Like the service, ignore a key that is not a string."""
    for name, value in zip(annotations[::2], annotations[1::2], strict=True):
        if key_of(name) == _PARTITION_KEY:
            key = decode(value)[0]
            return key if isinstance(key, str) else None
    return None


def stamp(event: Unstamped, sequence_number: int, offset: int, enqueued_at: int) -> Event:
    """Return the event with its place and time added to its annotations, which stay encoded."""
    stamps = [
        _SEQUENCE_NUMBER,
        _SEQUENCE_VALUE.pack(b"\x81", sequence_number),
        _OFFSET,
        encode(str(offset)),
        _ENQUEUED_TIME,
        _TIME_VALUE.pack(b"\x83", enqueued_at),
    ]
    payload = _SECTION_START + encode_map([*event.annotations, *stamps]) + event.rest
    return Event(sequence_number, offset, enqueued_at, payload)


_MASK = 0xFFFFFFFF
_SEED = 0xDEADBEEF
_MIX_ROTATIONS = ((4, 6, 8), (16, 19, 4))


def partition_index(key: str, count: int) -> int:
    """Return the index, from 0, of the partition that holds a key in a hub of `count` partitions."""
    return abs(key_hash(key)) % count  # C# takes abs(hash % count), where % keeps the sign: the same number


def key_hash(key: str) -> int:
    """Return the hash of a key, a signed 16-bit number."""
    b, c = _lookup3(key.encode())
    folded = (b ^ c) & 0xFFFF
    return folded - 0x10000 if folded & 0x8000 else folded


def _lookup3(key: bytes) -> tuple[int, int]:
    a = b = c = (_SEED + len(key)) & _MASK
    if not key:
        return b, c
    *blocks, last = struct.iter_unpack("<III", key + bytes(-len(key) % 12))
    for x, y, z in blocks:
        a, b, c = _mix((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)
    x, y, z = last
    return _finish((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for first, second, third in _MIX_ROTATIONS:
        a, c = ((a - c) & _MASK) ^ _rotate(c, first), (c + b) & _MASK
        b, a = ((b - a) & _MASK) ^ _rotate(a, second), (a + c) & _MASK
        c, b = ((c - b) & _MASK) ^ _rotate(b, third), (b + a) & _MASK
    return a, b, c


def _finish(a: int, b: int, c: int) -> tuple[int, int]:
    c = ((c ^ b) - _rotate(b, 14)) & _MASK
    a = ((a ^ c) - _rotate(c, 11)) & _MASK
    b = ((b ^ a) - _rotate(a, 25)) & _MASK
    c = ((c ^ b) - _rotate(b, 16)) & _MASK
    a = ((a ^ c) - _rotate(c, 4)) & _MASK
    b = ((b ^ a) - _rotate(a, 14)) & _MASK
    c = ((c ^ b) - _rotate(b, 24)) & _MASK
    return b, c

"""The parts of encoded bytes, found without decoding: the values of a list or map, the sections of a message.

The rules are those of OASIS AMQP 1.0 parts 1.2 (encodings) and 3.2 (message format).
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from local.event_hubs.codec import DecodeError, Raw, decode, read_length, skip

HEADER = 0x70
DELIVERY_ANNOTATIONS = 0x71
MESSAGE_ANNOTATIONS = 0x72
PROPERTIES = 0x73
APPLICATION_PROPERTIES = 0x74
DATA = 0x75
SEQUENCE = 0x76
VALUE = 0x77
FOOTER = 0x78
_LISTS, _MAPS, _BINARIES = b"\x40\x45\xc0\xd0", b"\x40\xc1\xd1", b"\x40\xa0\xb0"  # each or null
_CONSTRUCTORS = {
    HEADER: _LISTS,
    DELIVERY_ANNOTATIONS: _MAPS,
    MESSAGE_ANNOTATIONS: _MAPS,
    PROPERTIES: _LISTS,
    APPLICATION_PROPERTIES: _MAPS,
    DATA: _BINARIES,
    SEQUENCE: _LISTS,
    VALUE: bytes(range(256)),
    FOOTER: _MAPS,
}
_STARTS = frozenset(bytes((0, 0x53, code, first)) for code, firsts in _CONSTRUCTORS.items() for first in firsts)


class Section(NamedTuple):
    """The place of a section in a message: its descriptor, its start, the start of its value, its end."""

    code: int
    start: int
    body: int
    end: int


def items(buffer: bytes, at: int) -> list[Raw]:
    """Return the values in the list or map at `at`, each still encoded. Null has none. Raises DecodeError."""
    end = skip(buffer, at)
    if buffer[at] in b"\x40\x45":
        return []
    if buffer[at] not in (0xC0, 0xC1, 0xD0, 0xD1) or end > len(buffer):
        raise DecodeError(f"no whole list or map at byte {at}")
    try:
        _, start = read_length(buffer[at], buffer, at + 1)
        count, start = read_length(buffer[at], buffer, start)
    except (IndexError, struct.error) as error:
        raise DecodeError(f"no whole list or map at byte {at}") from error
    return list(_cut(buffer, start, count, end))


def _cut(buffer: bytes, at: int, count: int, end: int) -> Iterator[Raw]:
    for _ in range(count):
        after = skip(buffer, at)
        if after > end:
            raise DecodeError(f"the value at byte {at} runs past the end of its list")
        yield Raw(buffer[at:after])
        at = after


def sections(message: bytes) -> Iterator[Section]:
    """Yield the sections of a message in their order. Raises DecodeError for one that is cut or of an unknown kind."""
    at, length = 0, len(message)
    while at < length:
        if message[at : at + 4] in _STARTS:
            code, body = message[at + 2], at + 3
        else:
            code, body = _long_descriptor(message, at)
        end = skip(message, body)
        if end > length:
            raise DecodeError("the message is cut short")
        yield Section(code, at, body, end)
        at = end


def _long_descriptor(message: bytes, at: int) -> tuple[int, int]:
    code, body = decode(message, at + 1)
    if message[at] != 0 or type(code) is not int:
        raise DecodeError("the message is not a sequence of sections")
    if body >= len(message) or message[body] not in _CONSTRUCTORS.get(code, b""):
        raise DecodeError(f"the section {code:#x} at byte {at} is not one of a message")
    return code, body

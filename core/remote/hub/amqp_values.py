"""Read the values of AMQP 1.0 (OASIS part 1, types), each as a Python value that holds it whole.

A timestamp is a datetime in UTC, or its milliseconds where a datetime ends. A char, a symbol and a string are texts. A
string that is not UTF-8 and a symbol that is not ASCII are their bytes. Decimals are Decimal, of any width.
"""

import struct
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from core.model.events import EPOCH
from core.model.property_values import MOST_NESTED, Described

_MILLISECOND = timedelta(milliseconds=1)
NET_LOSS = 4608  # .NET writes the exponent of a decimal with so much too little; it has up to 28 digits after the point
BINARY_NAME = "System.ArraySegment`1[System.Byte]"  # .NET's name of every binary key
_UINT = struct.Struct(">I")
_BROKEN = (LookupError, ValueError, struct.error, TypeError, OverflowError)


class NotReadable(ValueError):
    """The bytes are not AMQP, are not whole, nest too deep, or hold a map that Python has no dict for."""


class Single(float):
    """A float of four bytes: its exact value, and the mark that it has fewer digits."""


class Symbol(str):
    """A symbol."""

    __slots__ = ()


class BrokenText(bytes):
    """The bytes of a string that is not UTF-8."""


class BrokenSymbol(BrokenText):
    """The bytes of a symbol that is not ASCII."""


class Milliseconds(int):
    """A timestamp that no datetime holds."""


def read_value(buffer: bytes, at: int = 0) -> tuple[Any, int]:
    """Return the value at `at` and the position after it. Raises NotReadable when there is none."""
    try:
        return _value(buffer, at, 0)
    except _BROKEN as error:
        raise NotReadable(f"bad AMQP value: {error}") from error


def unmarked(value: Any) -> Any:
    """Return a value without the marks of its type, which only the values of the trigger's JSON follow."""
    plain = _PLAIN.get(type(value))
    return value if plain is None else plain(value)


def text_of(value: Any) -> str:
    """Return the text of bytes as .NET reads it: of the SDK's texts and of broken strings UTF-8, of symbols ASCII."""
    if isinstance(value, BrokenSymbol):
        return value.decode("ascii", "replace").replace("\ufffd", "?")
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def named(key: Any) -> str:
    """Return the name that .NET gives a key of a map."""
    return "<null>" if key is None else BINARY_NAME if type(key) is bytes else text_of(key)


def end_of(buffer: bytes | memoryview, at: int) -> int:
    """Return the position after the value at `at`, by its constructor alone. It may lie after the end."""
    pending = 1
    while pending:
        code = buffer[at]
        if code == 0:  # a descriptor, then the value that it describes
            pending, at = pending + 1, at + 1
            continue
        if code < 0xA0:
            at += 1 + _width(code)
        else:
            size, start = _length(code, buffer, at + 1)
            at = start + size
        pending -= 1
    return at


def items_of(buffer: bytes) -> list[bytes]:
    """Return the encoded keys and values of an encoded map, in turn."""
    count, at = _length(buffer[0], buffer, _length(buffer[0], buffer, 1)[1])
    found = []
    for _ in range(count):
        start, at = at, end_of(buffer, at)
        found.append(buffer[start:at])
    return found


def _value(buffer: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth > MOST_NESTED:
        raise NotReadable(f"the values nest deeper than {MOST_NESTED} levels")
    code = buffer[at]
    if code == 0:
        descriptor, at = _value(buffer, at + 1, depth + 1)
        value, at = _value(buffer, at, depth + 1)
        return Described(descriptor, value), at
    return _of_constructor(code, buffer, at + 1, depth)


def _of_constructor(code: int, buffer: bytes, at: int, depth: int) -> tuple[Any, int]:
    if code < 0xA0:
        end = at + _width(code)
        return _FIXED[code](_taken(buffer, at, end)), end
    size, start = _length(code, buffer, at)
    end = start + size
    content = _taken(buffer, start, end)
    if code < 0xC0:
        return _TEXTS[code & 0xEF](content), end
    count, inside = _length(code, content, 0)
    if count > len(content) - inside:
        raise NotReadable(f"{count} values do not fit into {len(content) - inside} bytes")
    return _COMPOUNDS[code & 0xEF](content, inside, count, depth + 1), end


def _list(content: bytes, at: int, count: int, depth: int) -> list[Any]:
    values = []
    for _ in range(count):
        value, at = _value(content, at, depth)
        values.append(value)
    return values


def _map(content: bytes, at: int, count: int, depth: int) -> dict[Any, Any]:
    """Return the entries. Of equal keys the last one counts, as in .NET and in the SDK."""
    values = _list(content, at, count, depth)
    names = values[::2]
    found = dict(zip(names, values[1::2], strict=True))
    if len(found) < len(names) and len(found) < len({(isinstance(name, str) or type(name), name) for name in names}):
        raise NotReadable("a map has keys that are equal in Python, as 1 and true are")
    return found


def _elements(content: bytes, at: int, count: int, depth: int) -> list[Any]:
    """Return the elements, which share one constructor: perhaps with a descriptor."""
    if not count:
        return []
    descriptors: list[Any] = []
    while content[at] == 0:
        descriptor, at = _value(content, at + 1, depth + len(descriptors) + 1)
        descriptors.append(descriptor)
    code, at = content[at], at + 1
    values = []
    for _ in range(count):
        value, at = _of_constructor(code, content, at, depth)
        for descriptor in reversed(descriptors):
            value = Described(descriptor, value)
        values.append(value)
    return values


def _length(code: int, buffer: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return a size or count and the position after it. Constructors with the bit 0x10 have it in four bytes."""
    return (_UINT.unpack_from(buffer, at)[0], at + 4) if code & 0x10 else (buffer[at], at + 1)


def _taken(buffer: bytes, at: int, end: int) -> bytes:
    if end > len(buffer):
        raise NotReadable("a value runs past the end")
    return buffer[at:end]


def _width(code: int) -> int:
    if code not in _FIXED:
        raise NotReadable(f"no such constructor: {code:#x}")
    return _WIDTHS[code >> 4]


def _unpacked(form: str) -> Callable[[bytes], Any]:
    packing = struct.Struct(">" + form)
    return lambda raw: packing.unpack(raw)[0]


def _timestamp(raw: bytes) -> datetime | int:
    milliseconds = int.from_bytes(raw, signed=True)
    try:
        return EPOCH + milliseconds * _MILLISECOND
    except OverflowError:
        return Milliseconds(milliseconds)


def _decimal(raw: bytes) -> Decimal:
    """Return a number of IEEE 754-2008 with a binary integer as its coefficient, which AMQP prescribes."""
    width = len(raw) * 8
    digits, exponent_bits = 9 * width // 32 - 2, width // 16 + 6
    bits, sign = int.from_bytes(raw), raw[0] >> 7
    if raw[0] & 0x78 == 0x78:
        return Decimal(("-" if sign else "") + ("NaN" if raw[0] & 0x04 else "Infinity"))
    short = 2 if raw[0] & 0x60 == 0x60 else 0  # the exponent begins two bits later, after a coefficient of 100...
    coefficient_bits = width - 1 - short - exponent_bits
    coefficient = bits & ((1 << coefficient_bits) - 1) | (4 << coefficient_bits if short else 0)
    exponent = (bits >> coefficient_bits & ((1 << exponent_bits) - 1)) - 3 * 2 ** (exponent_bits - 3) - digits + 2
    if -NET_LOSS - 28 <= exponent <= -NET_LOSS:
        exponent += NET_LOSS
    if coefficient >= 10**digits:
        coefficient = 0  # as the standard reads a coefficient with too many digits
    return Decimal((sign, tuple(map(int, str(coefficient))), exponent))


def _string(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return BrokenText(raw)


_WIDTHS = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}
_FIXED: dict[int, Callable[[bytes], Any]] = {
    0x40: lambda _: None,
    0x41: lambda _: True,
    0x42: lambda _: False,
    0x43: lambda _: 0,
    0x44: lambda _: 0,
    0x45: lambda _: [],
    0x50: _unpacked("B"),
    0x51: _unpacked("b"),
    0x52: _unpacked("B"),
    0x53: _unpacked("B"),
    0x54: _unpacked("b"),
    0x55: _unpacked("b"),
    0x56: _unpacked("?"),
    0x60: _unpacked("H"),
    0x61: _unpacked("h"),
    0x70: _unpacked("I"),
    0x71: _unpacked("i"),
    0x72: lambda raw: Single(struct.unpack(">f", raw)[0]),
    0x73: lambda raw: chr(int.from_bytes(raw)),
    0x74: _decimal,
    0x80: _unpacked("Q"),
    0x81: _unpacked("q"),
    0x82: _unpacked("d"),
    0x83: _timestamp,
    0x84: _decimal,
    0x94: _decimal,
    0x98: lambda raw: UUID(bytes=raw),
}
_TEXTS: dict[int, Callable[[bytes], Any]] = {
    0xA0: bytes,
    0xA1: _string,
    0xA3: lambda raw: Symbol(raw.decode()) if raw.isascii() else BrokenSymbol(raw),
}
_COMPOUNDS: dict[int, Callable[[bytes, int, int, int], Any]] = {0xC0: _list, 0xC1: _map, 0xE0: _elements}
_PLAIN: dict[type, Callable[[Any], Any]] = {
    Single: float,
    Symbol: str,
    BrokenText: bytes,
    BrokenSymbol: bytes,
    Milliseconds: int,
    list: lambda values: list(map(unmarked, values)),
    dict: lambda found: {unmarked(name): unmarked(each) for name, each in found.items()},
    Described: lambda one: Described(unmarked(one.descriptor), unmarked(one.value)),
}

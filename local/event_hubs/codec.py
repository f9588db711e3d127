"""The AMQP 1.0 type system: read any value, write the values that a server writes.

The rules are those of OASIS AMQP 1.0 part 1 (types).
"""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

NULL = b"\x40"


class UByte(int):
    """An int that is written as a ubyte."""


class UShort(int):
    """An int that is written as a ushort."""


class UInt(int):
    """An int that is written as a uint."""


class ULong(int):
    """An int that is written as a ulong."""


class Short(int):
    """An int that is written as a short."""


class Int(int):
    """An int that is written as an int, not as a long."""


class Timestamp(int):
    """An int that is written as a timestamp, in milliseconds since the Unix epoch."""


class Float(float):
    """A float that is written in four bytes and read from four."""


class Symbol(str):
    """A text that is written as a symbol and read from one."""

    __slots__ = ()


class Array(list[str]):
    """A list that is read from an array, and written as one of strings, or of symbols when its first is a Symbol."""


class Raw(bytes):
    """An encoded value."""


class Described(NamedTuple):
    """A value with a descriptor."""

    descriptor: Any
    value: Any


class DecodeError(ValueError):
    """The bytes are not AMQP, or are not whole."""


_UINT = struct.Struct(">I")
_NUMBER_FORMATS = {
    0x50: "B",
    0x51: "b",
    0x52: "B",
    0x53: "B",
    0x54: "b",
    0x55: "b",
    0x56: "?",
    0x60: "H",
    0x61: "h",
    0x70: "I",
    0x71: "i",
    0x72: "f",
    0x80: "Q",
    0x81: "q",
    0x82: "d",
    0x83: "q",
}
_NUMBERS = {code: struct.Struct(">" + letter) for code, letter in _NUMBER_FORMATS.items()}
_MARKED: dict[int, Callable[[Any], object]] = {0x72: Float, 0x83: Timestamp}
_CONSTANTS: dict[int, object] = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0}
_TEXTS: dict[int, Callable[[bytes], object]] = {
    0xA0: bytes,
    0xA1: bytes.decode,
    0xA3: lambda raw: Symbol(raw.decode("ascii")),
}
_FIXED_WIDTHS = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}
_MAP_CODES = (0xC1, 0xD1)
_BROKEN = (IndexError, struct.error, UnicodeDecodeError, RecursionError)


def decode(buffer: bytes, at: int = 0) -> tuple[Any, int]:
    """Return the value at `at` and the position after it.

    Integers come as int, uuids, chars and decimals as Raw. Raises DecodeError.
    """
    try:
        return _decode(buffer, at)
    except _BROKEN as error:
        raise DecodeError(f"bad AMQP value at byte {at}: {error}") from error


def _decode(buffer: bytes, at: int) -> tuple[Any, int]:
    if buffer[at] == 0:
        descriptor, at = _decode(buffer, at + 1)
        value, at = _decode(buffer, at)
        return Described(descriptor, value), at
    return _decode_body(buffer[at], buffer, at + 1)


def _decode_body(code: int, buffer: bytes, at: int) -> tuple[Any, int]:
    if code in _NUMBERS:
        packing = _NUMBERS[code]
        number = packing.unpack_from(buffer, at)[0]
        return _MARKED[code](number) if code in _MARKED else number, at + packing.size
    if code in _CONSTANTS:
        return _CONSTANTS[code], at
    if code == 0x45:
        return [], at
    if code < 0xA0:  # a uuid, char or decimal stays encoded: the emulator reads none
        end = at + _width(code, at)
        if end > len(buffer):
            raise DecodeError(f"the value at byte {at} runs past the end")
        return Raw(bytes((code,)) + buffer[at:end]), end
    size, start = read_length(code, buffer, at)
    if start + size > len(buffer):
        raise DecodeError(f"the value at byte {at} runs past the end")
    if code < 0xC0:
        if (read := _TEXTS.get(code & 0xEF)) is None:
            raise DecodeError(f"no such constructor: {code:#x}")
        return read(buffer[start : start + size]), start + size
    return _compound_value(code, buffer[: start + size], start), start + size


def _compound_value(code: int, buffer: bytes, at: int) -> list[Any] | dict[Any, Any]:
    """Return the list, map or array whose count is at `at` and which ends with the buffer."""
    count, at = read_length(code, buffer, at)
    if count > len(buffer) - at:  # refuses, among others, an array of four thousand million nulls
        raise DecodeError(f"{count} values do not fit into {len(buffer) - at} bytes")
    values = []
    element = buffer[at] if code >= 0xE0 else 0  # the elements of an array share one constructor
    at += code >= 0xE0
    for _ in range(count):
        value, at = _decode_body(element, buffer, at) if code >= 0xE0 else _decode(buffer, at)
        values.append(value)
    if code not in _MAP_CODES:
        return Array(values) if code >= 0xE0 else values
    try:
        return dict(zip(values[::2], values[1::2], strict=True))
    except (TypeError, ValueError) as error:
        raise DecodeError(f"bad AMQP map: {error}") from error


def read_length(code: int, buffer: bytes, at: int) -> tuple[int, int]:
    """Return a size or count and the position after it. Constructors with the bit 0x10 have it in four bytes."""
    return (_UINT.unpack_from(buffer, at)[0], at + 4) if code & 0x10 else (buffer[at], at + 1)


def _width(code: int, at: int) -> int:
    try:
        return _FIXED_WIDTHS[code >> 4]
    except KeyError:
        raise DecodeError(f"no such constructor at byte {at}: {code:#x}") from None


def skip(buffer: bytes, at: int) -> int:
    """Return the position after the value at `at`, from the constructor of the value alone.

    The position may be past the end of the buffer. Raises DecodeError.
    """
    try:
        return _skip(buffer, at)
    except _BROKEN as error:
        raise DecodeError(f"bad AMQP value at byte {at}: {error}") from error


def _skip(buffer: bytes, at: int) -> int:
    code = buffer[at]
    if code >= 0xA0:
        if code & 0x10:
            return at + 5 + int(_UINT.unpack_from(buffer, at + 1)[0])
        return at + 2 + buffer[at + 1]
    if code == 0:
        return _skip(buffer, _skip(buffer, at + 1))
    return at + 1 + _width(code, at)


def encode(value: Any) -> bytes:
    """Return the encoding of a value. A plain int becomes a long. Raises TypeError for a type without an encoding."""
    encoder = _ENCODERS.get(type(value))
    if encoder is None:
        raise TypeError(f"no AMQP encoding is defined for {type(value).__name__}")
    return encoder(value)


def encode_map(encoded_items: list[bytes]) -> bytes:
    """Return the encoding of a map whose keys and values are given in turn, encoded."""
    return _compound(0xC1, encoded_items)


def encode_list(encoded_items: list[bytes]) -> bytes:
    return _compound(0xC0, encoded_items)


def _variable(code: int, raw: bytes) -> bytes:
    return bytes((code, len(raw))) + raw if len(raw) < 256 else bytes((code | 0x10,)) + _UINT.pack(len(raw)) + raw


def _compound(code: int, encoded: list[bytes]) -> bytes:
    body, count = b"".join(encoded), len(encoded)
    if count < 256 and len(body) < 255:
        return bytes((code, len(body) + 1, count)) + body
    return bytes((code | 0x10,)) + _UINT.pack(len(body) + 4) + _UINT.pack(count) + body


def _array(values: Array) -> bytes:
    element = b"\xb3" if values and isinstance(values[0], Symbol) else b"\xb1"
    body = element + b"".join(_UINT.pack(len(raw)) + raw for raw in (value.encode() for value in values))
    return b"\xf0" + _UINT.pack(len(body) + 4) + _UINT.pack(len(values)) + body


def _number(code: int) -> Callable[[Any], bytes]:
    prefix, packing = bytes((code,)), _NUMBERS[code]
    return lambda value: prefix + packing.pack(value)


def _ulong(value: int) -> bytes:
    """Use the short form where it fits: azure-eventhub reads every descriptor as one of two bytes."""
    return b"\x53" + value.to_bytes(1, "big") if value < 256 else b"\x80" + value.to_bytes(8, "big")


_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda value: NULL,
    bool: lambda value: b"\x41" if value else b"\x42",
    UByte: _number(0x50),
    UShort: _number(0x60),
    UInt: _number(0x70),
    Short: _number(0x61),
    Int: _number(0x71),
    int: _number(0x81),
    Timestamp: _number(0x83),
    ULong: _ulong,
    float: _number(0x82),
    Float: _number(0x72),
    str: lambda value: _variable(0xA1, value.encode()),
    Symbol: lambda value: _variable(0xA3, value.encode("ascii")),
    bytes: lambda value: _variable(0xA0, value),
    Raw: bytes,
    Array: _array,
    list: lambda values: encode_list([encode(each) for each in values]),
    dict: lambda values: encode_map([encode(each) for pair in values.items() for each in pair]),
    Described: lambda value: b"\x00" + encode(value.descriptor) + encode(value.value),
}

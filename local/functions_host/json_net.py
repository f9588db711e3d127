"""Write the values of AMQP as the Functions host does: .NET values of the AMQP library, as Json.NET's JSON.

Sources: `AmqpAnnotatedMessageConverter.TryCreateNetPropertyFromAmqpProperty` (Azure.Core.Amqp), and Json.NET with its
defaults: NaN and infinities are texts, binary is base64, times are ISO 8601 without zeros at the end of the fraction.
"""

import math
import struct
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from local.event_hubs.codec import Described, Float, Raw, Symbol, Timestamp

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NET_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
TICKS_OF_MICROSECOND = 10
URI, DATE_TIME_OFFSET, TIME_SPAN = (f"com.microsoft:{name}" for name in ("uri", "datetime-offset", "timespan"))
_NON_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_DROPPED = object()


class NotConverted(ValueError):
    """The .NET library has no value for this one of AMQP."""


def json_properties(properties: dict[Any, Any]) -> dict[str, Any]:
    """Return decoded application properties as JSON; NotConverted when one of them has no .NET value."""
    converted = {str(name): json_value(value) for name, value in properties.items()}
    return {name: value for name, value in converted.items() if value is not _DROPPED}


def json_value(value: Any) -> Any:
    """Return a value, decoded by our codec, as JSON; NotConverted when it has no .NET value."""
    if isinstance(value, Raw):
        return _raw(value)
    if isinstance(value, Timestamp):
        return _instant(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, Described):
        return _described(value)
    if isinstance(value, list):
        return [json_value(each) for each in value]
    if isinstance(value, dict):
        return {str(name): json_value(each) for name, each in value.items()}
    return str(value) if isinstance(value, str) else value


def _float(value: float) -> Any:
    if not math.isfinite(value):
        return _NON_FINITE[str(float(value))]
    if not isinstance(value, Float):
        return value
    packed = struct.pack(">f", value)
    shortest = (float(f"{value:.{digits}g}") for digits in range(6, 10))
    return next(each for each in shortest if struct.pack(">f", each) == packed)


def _instant(milliseconds: int) -> str:
    try:
        moment = EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError as error:
        raise NotConverted(f"{milliseconds} ms is no DateTime") from error
    return _text_of(moment) + "Z"


def _text_of(moment: datetime) -> str:
    text = moment.replace(tzinfo=None).isoformat()
    return text.rstrip("0") if "." in text else text


def _raw(value: Raw) -> Any:
    """Return a uuid, a char or a decimal."""
    code, content = value[0], bytes(value[1:])
    if code == 0x98:
        return str(UUID(bytes=content))
    if code == 0x73:
        return content.decode("utf-32-be", "replace")
    return float(decimal_of(content))


def decimal_of(content: bytes) -> Decimal:
    """Return an IEEE 754 decimal with a binary coefficient; NotConverted for one that System.Decimal cannot hold."""
    bias, short_bits = {4: (101, 23), 8: (398, 53), 16: (6176, 113)}[len(content)]
    bits = int.from_bytes(content)
    if content[0] & 0x60 == 0x60:
        raise NotConverted("a decimal that is not finite or has a large coefficient")
    exponent = (bits >> short_bits) & ((1 << (len(content) * 8 - 1 - short_bits)) - 1)
    number = Decimal(bits & ((1 << short_bits) - 1)).scaleb(exponent - bias)
    return -number if content[0] & 0x80 else number


def _described(value: Described) -> Any:
    if not isinstance(value.descriptor, Symbol):
        raise NotConverted("a value whose descriptor is no symbol")
    ticks = value.value
    if value.descriptor == URI:
        return str(value.value)
    if value.descriptor == DATE_TIME_OFFSET:
        return _text_of(NET_BEGINNING + timedelta(microseconds=ticks // TICKS_OF_MICROSECOND)) + "+00:00"
    return _span(ticks) if value.descriptor == TIME_SPAN else _DROPPED


def _span(ticks: int) -> str:
    """Return the text of a TimeSpan: [-][days.]hh:mm:ss[.fraction]."""
    seconds, fraction = divmod(abs(ticks), 10_000_000)
    days, seconds = divmod(seconds, 86_400)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return ("-" if ticks < 0 else "") + (f"{days}." if days else "") + text + (f".{fraction:07}" if fraction else "")

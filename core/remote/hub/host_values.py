"""Give the properties of an event the values that the Functions host has for them in its JSON.

The trigger gets this JSON. An event that is read back from the hub must look the same to its transform, because a lost
batch or a replay must not change an outcome. Values that the host has no JSON for stay as they are.

Sources: `AmqpAnnotatedMessageConverter` (Azure.Core.Amqp) converts a property, but nothing inside a list. Json.NET
writes the members of a list by the classes of the AMQP library (Microsoft.Azure.Amqp).

Measured in the Functions host 4.1037 with the Event Hubs extension over the .NET SDK 5.12.2 (docs/adr/0058). An event
that the host drops in silence stops nothing, and has no name here.
"""

import math
import struct
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from core.model.events import EPOCH
from core.model.property_values import Described
from core.remote.hub.amqp_values import (
    BrokenSymbol,
    BrokenText,
    Milliseconds,
    NotReadable,
    Single,
    Symbol,
    items_of,
    read_value,
    text_of,
)
from core.remote.hub.sdk_patches import STAMPS, Encoded, Whole

TICKS = 10_000_000  # of .NET in a second
NORMAL = 2.0**-126  # below it a float of four bytes has fewer digits
LAST_TIME = "9999-12-31T23:59:59.9999999"  # of .NET, which reads times before 1970 as 1970
URI, OFFSET, SPAN = _KNOWN = tuple(f"com.microsoft:{name}" for name in ("uri", "datetime-offset", "timespan"))
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)  # of .NET's ticks
_NON_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def host_values(properties: Mapping[str, Any]) -> dict[str, object]:
    """Return the properties of the host's JSON, without those whose descriptor is a symbol that .NET does not know."""
    unknown = [
        name
        for name, value in properties.items()
        if isinstance(value, Described) and isinstance(value.descriptor, str) and value.descriptor not in _KNOWN
    ]
    return {name: host_value(value) for name, value in properties.items() if name not in unknown}


def host_value(value: Any) -> Any:
    """Return the value that the host's JSON has for a property, an annotation, or a value of a map."""
    if isinstance(value, list):
        return [_inside(each) for each in value]
    if isinstance(value, dict):
        return {text_of(name): host_value(each) for name, each in value.items()}
    if isinstance(value, Symbol | BrokenText):
        return text_of(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, datetime):
        return _time_text(max(value, EPOCH)) + "Z"
    if isinstance(value, Milliseconds):
        return LAST_TIME if value > 0 else _time_text(EPOCH) + "Z"
    if isinstance(value, float | Decimal):
        if not math.isfinite(value):
            return _NON_FINITE[str(float(value))]
        return _shortest(value) if isinstance(value, Single) else float(value)
    if isinstance(value, UUID):
        return str(value)
    return _described_value(value) if isinstance(value, Described) else value


def _inside(value: Any) -> Any:
    """Return the value that the host's JSON has for an element of a list."""
    if isinstance(value, dict):
        return [{"Key": {"Key": _inside(name)}, "Value": _inside(each)} for name, each in value.items()]
    if isinstance(value, Described):
        return {"Descriptor": _inside(value.descriptor), "Value": _inside(value.value)}
    if isinstance(value, bytes) and not isinstance(value, BrokenText):
        return list(value)
    if isinstance(value, Symbol | BrokenSymbol):
        return {"Value": text_of(value), "ValueSize": len(value)}
    return host_value(value)


def _shortest(value: float) -> float:
    """Return the number of the shortest text that a float of four bytes has."""
    exact, fewest = struct.pack(">f", value), 6 if abs(value) >= NORMAL else 1
    return next(one for digits in range(fewest, 10) if struct.pack(">f", one := float(f"{value:.{digits}g}")) == exact)


def _time_text(moment: datetime) -> str:
    text = moment.replace(tzinfo=None).isoformat()
    return text.rstrip("0") if "." in text else text


def _described_value(value: Described) -> Any:
    kind, content = value.descriptor, value.value
    if kind == URI and isinstance(content, str):
        return content
    if kind == OFFSET and isinstance(content, int):
        seconds, fraction = divmod(content, TICKS)
        try:
            text = _time_text(_BEGINNING + timedelta(seconds=seconds))
        except OverflowError:  # .NET reads no such event, so the trigger never gets it
            return value
        return text + (f".{fraction:07}".rstrip("0") if fraction else "") + "+00:00"
    return _span_text(content) if kind == SPAN and isinstance(content, int) else value


def _span_text(ticks: int) -> str:
    seconds, fraction = divmod(abs(ticks), TICKS)
    days, rest = divmod(seconds, 86_400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}" + (f".{fraction:07}" if fraction else "")
    return ("-" if ticks < 0 else "") + (f"{days}." if days else "") + text


CHAR, DESCRIBED, MAPS = 0x73, 0x00, (0xC1, 0xD1)  # constructors
LAST_CHAR, HALVES = 0xFFFF, range(0xD800, 0xE000)
LAST_TICK = 3_155_378_975_999_999_999  # of 31 December 9999


def why_undeliverable(event: Any) -> str | None:
    """Return a clause about an azure.eventhub.EventData that the trigger cannot deliver, or None if none is known."""
    message = event.raw_amqp_message
    if message.body_type == "value" and message.body is not None:
        return "its body is an AMQP value, not data"
    if message.body_type == "sequence":
        return "its body is an AMQP sequence, not data"
    annotations = message.annotations or {}
    if not isinstance(annotations.get(STAMPS[3]), bytes | str | None):
        return "its partition key is no text"
    properties = message.application_properties
    return _why_of_map(properties, "property") or _why_of_map(annotations, "annotation")


def _why_of_map(found: Any, kind: str) -> str | None:
    if not isinstance(found, Encoded | Whole):
        return None
    try:
        reasons = [why_unreadable(raw) for raw in items_of(found.raw)[1::2]]
    except (NotReadable, LookupError, struct.error):
        return None
    return next((f"one {kind} is {reason}" for reason in reasons if reason), None)


def why_unreadable(raw: bytes) -> str | None:
    """Return why the SDK of the host cannot read an encoded value, apart from the values in it, or None when it can.

    Raises NotReadable, LookupError and struct.error for bytes that are no value.
    """
    if raw[0] in MAPS:
        return "a map"
    if raw[0] == CHAR:
        number = int.from_bytes(raw[1:5], "big")  # a char of .NET has two bytes and is no half of a pair
        return "a char that .NET does not have" if number > LAST_CHAR or number in HALVES else None
    if raw[0] != DESCRIBED:
        return None
    described: Described = read_value(raw)[0]
    kind, value = described.descriptor, described.value
    if not isinstance(kind, Symbol | BrokenSymbol):
        return "described by no symbol"
    if kind == URI and not (isinstance(value, str) and value and not any(one in value for one in ("://:", "http://["))):
        return "a URI that .NET cannot read"
    if kind == OFFSET and not (isinstance(value, int) and 0 <= value <= LAST_TICK):
        return "a time that .NET cannot read"
    return None

"""Encode a batch of events as the Event Hubs extension does: the bodies and the trigger's metadata.

Source: `EventHubTriggerBindingStrategy.AddBindingData` (extension 6.5.2 and later) and the host's
`GrpcMessageConversionExtensions`. As there, EnqueuedTimeUtc is UTC without a "Z", and PartitionKeyArray leaves out
the events that have no key.

Sources: `AmqpAnnotatedMessageConverter.TryCreateNetPropertyFromAmqpProperty` (Azure.Core.Amqp), and Json.NET with its
defaults: NaN and infinities are texts, binary is base64, times are ISO 8601 without zeros at the end of the fraction.
The converter does not look into lists: Json.NET writes the library's own objects (Microsoft.Azure.Amqp) that are there.
"""

import json
import math
import struct
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from azure.functions.meta import Datum

from local.event_hubs.codec import NULL, DecodeError, Described, Float, Raw, Symbol, Timestamp, decode
from local.event_hubs.sections import MESSAGE_ANNOTATIONS, PROPERTIES, items, sections
from local.functions_host.event_source import HubAddress, HubEvent
from local.functions_host.invoker import TriggerInputs


@dataclass(frozen=True, slots=True)
class Collection:
    """A typed collection of the worker's protocol. Only the field of its kind is filled."""

    bytes: Sequence[bytes] = ()
    string: Sequence[str] = ()
    sint64: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class TriggerContext:
    """The values that all batches of a partition share. `argument` and `data_type` are the binding's."""

    address: HubAddress
    partition_id: str
    argument: str
    data_type: str


def event_hub_inputs(context: TriggerContext, events: Sequence[HubEvent], *, checkpoints: bool) -> TriggerInputs:
    """Return the function's inputs for a batch. `checkpoints` is True when a host checkpoint follows."""
    bodies = _strings([event.body.decode("utf-8", "replace") for event in events])
    if context.data_type == "BINARY":
        bodies = Datum(Collection(bytes=[event.body for event in events]), "collection_bytes")
    partition = _json(
        {
            "IsCheckpointingAfterInvocation": checkpoints,
            "FullyQualifiedNamespace": context.address.namespace,
            "EventHubName": context.address.hub,
            "ConsumerGroup": context.address.consumer_group,
            "PartitionId": context.partition_id,
        }
    )
    stamps = [_naive_stamp(event.enqueued_at) for event in events]
    metadata = {
        "TriggerPartitionContext": partition,
        "PartitionContext": partition,
        "PartitionKeyArray": _strings([event.partition_key or "" for event in events]),
        "OffsetArray": _strings([str(_number(event.offset)) for event in events]),
        "OffsetStringArray": _strings([event.offset for event in events]),
        "SequenceNumberArray": Datum(
            Collection(sint64=[event.sequence_number for event in events]), "collection_sint64"
        ),
        "EnqueuedTimeUtcArray": _json(stamps),
        "PropertiesArray": _json([event.properties for event in events]),
        "SystemPropertiesArray": _json(list(map(_system_properties, events, stamps))),
    }
    return TriggerInputs({context.argument: bodies}, metadata)


def _system_properties(event: HubEvent, stamp: str) -> dict[str, Any]:
    return {
        **event.system_properties,
        "SequenceNumber": event.sequence_number,
        "Offset": _number(event.offset),
        "OffsetString": event.offset,
        "PartitionKey": event.partition_key,
        "EnqueuedTimeUtc": stamp,
    }


@lru_cache(maxsize=64)
def _naive_stamp(instant: datetime) -> str:
    """Return Json.NET's text of a DateTime of unspecified kind: no zone, no zeros at the end of the fraction."""
    text = instant.replace(tzinfo=None).isoformat()
    return text.rstrip("0") if "." in text else text


def _number(offset: str) -> int:
    """Return the numeric offset, or -1 for an offset that is no number (geo-replication)."""
    return int(offset) if offset.isdecimal() else -1


def _strings(texts: list[str]) -> Any:
    """Return a collection of texts without the empty ones, which the host's conversion skips."""
    return Datum(Collection(string=[text for text in texts if text]), "collection_string")


def _json(value: Any) -> Any:
    return Datum(json.dumps(value), "json")


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NET_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
LAST_DATE_TIME = "9999-12-31T23:59:59.9999999"
TICKS = 10_000_000  # in a second
LIMIT, MOST_DIGITS = 2**96, 28  # of System.Decimal: its coefficient, and its digits after the point
URI, DATE_TIME_OFFSET, TIME_SPAN = (f"com.microsoft:{name}" for name in ("uri", "datetime-offset", "timespan"))
_NON_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_NOT_TEXTS = {0xA1: ("utf-8", "\ufffd"), 0xA3: ("ascii", "?")}  # broken strings and symbols: how .NET reads them
_BINARY = b"\xa0\xb0"
# AmqpMessageProperties in the order that .NET's EventData.SystemProperties has, and those that it keeps when empty.
FIELDS = (
    "message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type", "content-encoding",
    "absolute-expiry-time", "creation-time", "group-id", "group-sequence", "reply-to-group-id",
)  # fmt: skip
_EMPTY = frozenset(("message-id", "to", "reply-to", "correlation-id"))
_TEXT = b"\xa1\xb1\xa3\xb3"
_DROPPED = object()


class NotConverted(ValueError):
    """The .NET library has no value for this one of AMQP."""


def json_properties(encoded: bytes) -> dict[str, Any]:
    """Return an encoded map of properties as JSON. Raises NotConverted when one of them has no .NET value."""
    return _json_map(encoded, _json_of)


def json_annotations(encoded: bytes) -> dict[str, Any]:
    """Return an encoded map of annotations as JSON. One that has no .NET value is its bytes in base64."""
    return _json_map(encoded, _json_or_bytes)


def json_message_properties(message: bytes) -> dict[str, Any]:
    """Return the section of properties as JSON, in .NET's order. {} when the message has none.

    A field that is absent is null, where .NET writes one over an annotation of its name.
    """
    places = {one.code: one.body for one in sections(message)}
    if PROPERTIES not in places:
        return {}
    annotated = places.get(MESSAGE_ANNOTATIONS)
    hidden = set() if annotated is None else set(map(_name, items(message, annotated)[::2]))
    given = items(message, places[PROPERTIES])
    given += [Raw(NULL)] * (len(FIELDS) - len(given))
    found = {name: _json_field(name, raw) for name, raw in zip(FIELDS, given, strict=False)}
    return {name: value for name, value in found.items() if value is not None or name in hidden}


def _json_field(name: str, encoded: bytes) -> Any:
    value = _json_of(encoded) if encoded[0] in _TEXT else decode(encoded)[0]
    if value is None or (value == "" and name not in _EMPTY):
        return None
    if isinstance(value, Timestamp):
        return json_offset(value)
    if isinstance(value, bytes) and not isinstance(value, Raw):
        return {"Length": len(value), "IsEmpty": not value} if name == "user-id" else value.hex().upper()
    return value if name == "group-sequence" else str(json_value(value))


def _json_map(encoded: bytes, json_of: Callable[[bytes], Any]) -> dict[str, Any]:
    each = items(encoded, 0) if encoded != NULL else []
    if len(each) % 2:
        raise NotConverted("a map has a key without a value")
    converted = {_name(name): json_of(value) for name, value in zip(each[::2], each[1::2], strict=True)}
    return {name: value for name, value in converted.items() if value is not _DROPPED}


def _name(encoded: bytes) -> str:
    if encoded[0] in _BINARY:
        return "System.ArraySegment`1[System.Byte]"
    value = _json_of(encoded)
    return "<null>" if value is None else str(value)


def _json_of(encoded: bytes) -> Any:
    try:
        return json_value(decode(encoded)[0])
    except DecodeError as error:
        kind = _NOT_TEXTS.get(encoded[0] & 0xEF)
        if kind is None:
            raise NotConverted(str(error)) from error
        return encoded[5 if encoded[0] & 0x10 else 2 :].decode(kind[0], "replace").replace("\ufffd", kind[1])
    except (ArithmeticError, TypeError) as error:  # a described value of a wrong type or size
        raise NotConverted(str(error)) from error


def _json_or_bytes(encoded: bytes) -> Any:
    try:
        return _json_of(encoded)
    except NotConverted:
        return b64encode(encoded).decode()


def json_value(value: Any) -> Any:
    """Return a value, decoded by our codec, as JSON. Raises NotConverted when it has no .NET value."""
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
        return list(map(_element, value))
    if isinstance(value, dict):
        pairs = ((name, json_value(each)) for name, each in value.items())
        return {str(name): each for name, each in pairs if each is not _DROPPED}
    return str(value) if isinstance(value, str) else value


def _element(value: Any) -> Any:
    """Return an element of a list as JSON."""
    if isinstance(value, dict):
        return [{"Key": {"Key": _element(name)}, "Value": _element(each)} for name, each in value.items()]
    if isinstance(value, Symbol):
        return {"Value": str(value), "ValueSize": len(value)}
    if isinstance(value, Described):
        return {"Descriptor": _element(value.descriptor), "Value": _element(value.value)}
    return json_value(value) if isinstance(value, Raw) or not isinstance(value, bytes) else list(value)


def _float(value: float) -> Any:
    if not math.isfinite(value):
        return _NON_FINITE[str(float(value))]
    if not isinstance(value, Float):
        return value
    packed = struct.pack(">f", value)
    shortest = (float(f"{value:.{digits}g}") for digits in range(6 if abs(value) >= 2**-126 else 1, 10))
    return next(each for each in shortest if struct.pack(">f", each) == packed)


def _instant(milliseconds: int) -> str:
    """Return the text of a DateTime. .NET's begin with 1970 here, and the last one has no zone."""
    try:
        return _naive_stamp(max(EPOCH, EPOCH + timedelta(milliseconds=milliseconds))) + "Z"
    except OverflowError:
        return LAST_DATE_TIME if milliseconds > 0 else _naive_stamp(EPOCH) + "Z"


def json_offset(milliseconds: int) -> str:
    """Return the text of a DateTimeOffset, which .NET has for the times among a message's own properties."""
    return _instant(milliseconds).removesuffix("Z") + "+00:00"


def _raw(value: Raw) -> Any:
    """Return a uuid, a char or a decimal."""
    code, content = value[0], bytes(value[1:])
    if code == 0x98:
        return str(UUID(bytes=content))
    if code == 0x73:
        return content.decode("utf-32-be", "replace")
    return _decimal(content)


def _decimal(content: bytes) -> float:
    """Return a decimal as .NET reads it: its lowest 96 bits, and the lowest 8 bits of the count of its digits."""
    bias, short_bits = {4: (101, 23), 8: (398, 53), 16: (6176, 113)}[len(content)]
    bits = int.from_bytes(content[1:], "big") | (content[0] & 0x7F) << 8 * (len(content) - 1)
    exponent = (bits >> short_bits) - bias
    digits = -exponent & 0xFF if exponent <= 0 else 0
    coefficient = (bits & ((1 << short_bits) - 1)) % LIMIT
    if content[0] & 0x60 == 0x60 or digits > MOST_DIGITS or coefficient * 10 ** max(exponent, 0) >= LIMIT:
        raise NotConverted("a decimal that System.Decimal cannot hold")
    number = float(f"{coefficient}e{exponent if exponent > 0 else -digits}")
    return -number if content[0] & 0x80 else number


def _described(value: Described) -> Any:
    if not isinstance(value.descriptor, Symbol):
        raise NotConverted("a value whose descriptor is no symbol")
    ticks = value.value
    if value.descriptor == URI:
        return str(value.value)
    if value.descriptor == DATE_TIME_OFFSET:
        seconds, fraction = divmod(ticks, TICKS)
        text = (NET_BEGINNING + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
        return text + (f".{fraction:07}".rstrip("0") if fraction else "") + "+00:00"
    return _span(ticks) if value.descriptor == TIME_SPAN else _DROPPED


def _span(ticks: int) -> str:
    """Return the text of a TimeSpan: [-][days.]hh:mm:ss[.fraction]."""
    seconds, fraction = divmod(abs(ticks), TICKS)
    days, seconds = divmod(seconds, 86_400)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return ("-" if ticks < 0 else "") + (f"{days}." if days else "") + text + (f".{fraction:07}" if fraction else "")

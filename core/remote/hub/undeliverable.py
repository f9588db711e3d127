"""Name what keeps the trigger from delivering an event: the host's .NET reads or binds less than AMQP allows.

Measured in the Functions host 4.1037 with the Event Hubs extension over the .NET SDK 5.12.2 (docs/adr/0058). An event
that the host drops in silence stops nothing, and has no name here.
"""

import struct
from typing import Any

from core.model.values import Described
from core.remote.hub.amqp_values import BrokenSymbol, NotReadable, Symbol, items_of, read_value
from core.remote.hub.host_values import OFFSET, URI
from core.remote.hub.wire import STAMPS, Encoded

CHAR, DESCRIBED, MAPS = 0x73, 0x00, (0xC1, 0xD1)  # constructors
LAST_CHAR, HALVES = 0xFFFF, range(0xD800, 0xE000)
LAST_TICK = 3_155_378_975_999_999_999  # of 31 December 9999


def why_undeliverable(event: Any) -> str | None:
    """Return a clause about an azure.eventhub.EventData that the trigger cannot deliver; None when nothing is known."""
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
    if not isinstance(found, Encoded):
        return None
    try:
        reasons = [why_unreadable(raw) for raw in items_of(found.raw)[1::2]]
    except (NotReadable, LookupError, struct.error):
        return None
    return next((f"one {kind} is {reason}" for reason in reasons if reason), None)


def why_unreadable(raw: bytes) -> str | None:
    """Return why the SDK of the host cannot read an encoded value, apart from the values in it; None when it can.

    Raises NotReadable, LookupError and struct.error for bytes that are no value.
    """
    if raw[0] in MAPS:
        return "a map"
    if raw[0] == CHAR:
        return None if _is_char(int.from_bytes(raw[1:5], "big")) else "a char that .NET does not have"
    return _why_described(read_value(raw)[0]) if raw[0] == DESCRIBED else None


def _is_char(number: int) -> bool:
    """Return True when .NET has a char of this number: it has two bytes and is no half of a pair."""
    return number <= LAST_CHAR and number not in HALVES


def _why_described(value: Described) -> str | None:
    if not isinstance(value.descriptor, Symbol | BrokenSymbol):
        return "described by no symbol"
    if value.descriptor == URI and not _is_uri(value.value):
        return "a URI that .NET cannot read"
    if value.descriptor == OFFSET and not (isinstance(value.value, int) and 0 <= value.value <= LAST_TICK):
        return "a time that .NET cannot read"
    return None


def _is_uri(value: object) -> bool:
    return isinstance(value, str) and bool(value) and not any(one in value for one in ("://:", "http://["))

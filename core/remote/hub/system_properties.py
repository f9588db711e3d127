"""Read the system properties of a message from its bytes, as the trigger's JSON has them.

The SDK's own mapping differs: an annotation wins over a property of its name, and ids are bytes or absent.
Measured in the Functions host 4.1037 with the Event Hubs extension over the .NET SDK 5.12.2 (docs/adr/0058).
"""

import struct
from contextlib import suppress
from datetime import datetime
from typing import Any

from core.remote.hub.amqp_values import BrokenText, Milliseconds, NotReadable, items_of, named, read_value, text_of
from core.remote.hub.host_values import host_value, host_values
from core.remote.hub.sdk_patches import ANNOTATIONS, PROPERTIES, STAMPS, sections_of

NULL = b"\x40"
# The fields of AMQP's section of properties, in their order.
FIELDS = (
    "message-id", "user-id", "to", "subject", "reply-to", "correlation-id", "content-type", "content-encoding",
    "absolute-expiry-time", "creation-time", "group-id", "group-sequence", "reply-to-group-id",
)  # fmt: skip
_STAMPS = frozenset(name.decode() for name in STAMPS)
_ABSENT_IF_EMPTY = frozenset(("subject", "content-type", "content-encoding", "group-id", "reply-to-group-id"))


def read_annotations(payload: bytes) -> dict[str, object]:
    """Return the annotations of a message, and over them its properties: a field that it leaves out hides its name.

    The hub's stamps are left out. Nothing of a map that is broken: the trigger cannot deliver such an event.
    """
    found: dict[str, object] = {}
    with suppress(NotReadable, LookupError, TypeError, ValueError, struct.error):
        sections = {one.code: payload[one.value : one.end] for one in sections_of(payload)}
        annotations = value_or_bytes(sections[ANNOTATIONS])
        if not isinstance(annotations, dict):  # one value or more cannot be read
            items = items_of(sections[ANNOTATIONS])
            annotations = {named(value_or_bytes(name)): raw for name, raw in zip(items[::2], items[1::2], strict=True)}
            annotations = {name: value_or_bytes(raw) for name, raw in annotations.items()}
        found = host_values({named(name): value for name, value in annotations.items() if name not in _STAMPS})
        if isinstance(fields := value_or_bytes(sections.get(PROPERTIES, NULL)), list):
            values = fields + [None] * (len(FIELDS) - len(fields))
            found.update((name, field_value(name, value)) for name, value in zip(FIELDS, values, strict=False))
    return {name: value for name, value in found.items() if value is not None}


def value_or_bytes(encoded: bytes) -> Any:
    """Return a value, or its bytes where it cannot be read: the host's JSON has them in base64."""
    try:
        return read_value(encoded)[0]
    except NotReadable:
        return encoded


def field_value(name: str, value: Any) -> object:
    if value is None or (value == "" and name in _ABSENT_IF_EMPTY):
        return None
    if name == "user-id":
        return {"Length": len(value), "IsEmpty": not value}  # of .NET's ReadOnlyMemory, whose bytes the JSON has not
    if isinstance(value, datetime | Milliseconds):
        return host_value(value).removesuffix("Z") + "+00:00"
    if isinstance(value, bytes) and not isinstance(value, BrokenText):
        return value.hex().upper()
    return value if name == "group-sequence" else text_of(value)

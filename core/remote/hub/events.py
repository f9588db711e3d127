"""Convert the SDK's events to ours, with every value of their properties whole. `docs/transforms.md` has the types."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import Any
from uuid import UUID

from core.errors import BatchRefused
from core.model.events import EPOCH, Event, SequenceNumber, WhenAsked
from core.model.property_values import Unread, encode_body, encode_properties
from core.remote.hub.amqp_values import NotReadable, named, read_value, text_of, unmarked
from core.remote.hub.host_values import host_values
from core.remote.hub.sdk_patches import STAMPS, Encoded, Whole
from core.remote.hub.system_properties import read_annotations

_NAMES = str | int | UUID | bytes | None  # keys of properties whose names in .NET are known


def to_event(event: Any, converted: Callable[[Mapping[str, Any]], Mapping[str, object]] = unmarked) -> Event:
    """Convert one azure.eventhub.EventData. Raises BatchRefused when its number, offset or time is missing.

    `converted` converts the properties, whose values are marked. It reads the annotations once: each attribute of the
    SDK's event looks for them again.
    """
    message = event._message  # as the SDK decoded it, and not annotated once more
    found = message.message_annotations or {}
    number, offset, stamp, key = map(found.get, STAMPS)
    if number is None or not isinstance(offset, bytes) or not stamp:
        raise BatchRefused(f"event {number} is incomplete: the hub sent offset {offset!r}, enqueued time {stamp}")
    return Event(
        SequenceNumber(number),
        offset.decode(),
        _instant(stamp),
        None if key is None else text_of(key),
        _properties(message.application_properties, converted),
        body_of(message),
        WhenAsked(read_annotations, found.payload) if type(found) is Whole else None,
    )


def to_host_event(event: Any) -> Event:
    """Convert one azure.eventhub.EventData to the event that the trigger would get."""
    return to_event(event, host_values)


@lru_cache(maxsize=64)  # a hub stamps many events with one time
def _instant(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def _properties(found: Any, converted: Callable[[Mapping[str, Any]], Mapping[str, object]]) -> Mapping[str, object]:
    """Return the properties. Unread when they are no map of names, or hold a value that cannot be read."""
    if not found:
        return {}
    try:
        read = _our_value(found)
        return {} if read is None else converted(_by_names(read))
    except NotReadable:
        return _unread(found)


def _by_names(read: Any) -> Mapping[str, Any]:
    """Return properties by their names. A key that is no text has the name that .NET gives it."""
    if not isinstance(read, dict):
        raise NotReadable("the properties are no map")
    if all(type(name) is str for name in read):
        return read
    if not all(isinstance(name, _NAMES) for name in read):
        raise NotReadable("a key is not a name")
    return {named(key): each for key, each in read.items()}


def body_of(message: Any) -> bytes:
    """Return the data sections of the SDK's message as one body.

    A value becomes JSON, and the elements of all sequences one JSON array.
    """
    if message.data:
        return b"".join(filter(None, message.data))  # JavaScript's client writes a section of null for no body
    if not message.sequence and message.value is None:
        return b""  # the message has no body
    sections = message.sequence or [message.value]
    try:
        read = list(map(_our_value, sections))
        return encode_body(list(chain.from_iterable(read)) if message.sequence else read[0])
    except (NotReadable, TypeError):
        return encode_properties(_unread(*sections)).encode()


def _our_value(found: Any) -> Any:
    """Return a value of our own types. A value that the SDK decoded already is converted as well as possible."""
    return read_value(found.raw)[0] if isinstance(found, Encoded) else plain_value(found)


def _unread(*found: Any) -> Unread:
    raw = b"".join(each.raw if isinstance(each, Encoded) else str(each).encode() for each in found)
    return Unread("amqp", b64encode(raw).decode())


def plain_value(value: Any) -> Any:
    """Return a value that the SDK decoded: its bytes are texts where they are UTF-8."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, Mapping):
        return {text_of(name): plain_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    return value

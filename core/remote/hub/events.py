"""Convert the SDK's events to ours. The SDK has texts as bytes; bytes that are not UTF-8 become U+FFFD, as in .NET."""

from collections.abc import Mapping
from typing import Any

from core.errors import BatchRefused
from core.model.events import Event
from core.model.spans import SequenceNumber


def to_event(event: Any) -> Event:
    """Convert one azure.eventhub.EventData; BatchRefused when its number, offset or time is missing."""
    number, offset, enqueued_at = event.sequence_number, event.offset, event.enqueued_time
    if number is None or offset is None or enqueued_at is None:
        raise BatchRefused(f"event {number} is incomplete: the hub sent offset {offset!r}, enqueued time {enqueued_at}")
    key = event.partition_key
    return Event(
        SequenceNumber(number),
        str(offset),
        enqueued_at,
        None if key is None else text_of(key),
        plain_value(event.properties or {}),
        _body(event),
    )


def _body(event: Any) -> bytes:
    """Return the data sections as one body, or the text of a body of a different AMQP kind."""
    message = event.raw_amqp_message
    if message.body_type.value != "data":
        return str(plain_value(message.body)).encode()
    return b"".join(message.body)


def text_of(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def plain_value(value: Any) -> Any:
    """Return a value in a form that JSON can hold."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, Mapping):
        return {text_of(name): plain_value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    return text_of(value)

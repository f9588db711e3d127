"""Convert the SDK's events to ours, directly from the AMQP message, because every event passes here.

The SDK gives texts as bytes. Like .NET, bytes that are not UTF-8 become U+FFFD.
"""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from azure.eventhub import EventData

from core.remote.hub.events import plain_value, text_of
from local.functions_host.event_source import HubEvent

SEQUENCE_NUMBER = b"x-opt-sequence-number"
OFFSET = b"x-opt-offset"
ENQUEUED_TIME = b"x-opt-enqueued-time"
PARTITION_KEY = b"x-opt-partition-key"
STANDARD = frozenset((SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME, PARTITION_KEY))

# AmqpMessageProperties by the names that .NET's EventData.SystemProperties uses.
PROPERTIES = (
    "message_id", "user_id", "to", "subject", "reply_to", "correlation_id", "content_type", "content_encoding",
    "absolute_expiry_time", "creation_time", "group_id", "group_sequence", "reply_to_group_id",
)  # fmt: skip


def to_hub_event(event: EventData) -> HubEvent:
    """Return the event with its body joined, its texts decoded, and its properties fit for JSON."""
    message = event.raw_amqp_message
    found = message.annotations
    key = found.get(PARTITION_KEY)
    named = _named(message.properties) if message.properties is not None else {}
    if len(found) > (3 if key is None else 4):
        named.update((text_of(name), plain_value(value)) for name, value in found.items() if name not in STANDARD)
    return HubEvent(
        _body(message),
        found[SEQUENCE_NUMBER],
        found[OFFSET].decode(),
        _instant(found[ENQUEUED_TIME]),
        None if key is None else text_of(key),
        plain_value(message.application_properties) if message.application_properties else {},
        named,
    )


def _body(message: Any) -> bytes:
    """Join the data sections; return the text of any other body (AMQP value or sequence)."""
    if message.body_type.value != "data":
        return str(plain_value(message.body)).encode()
    return b"".join(message.body)


@lru_cache(maxsize=64)
def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _named(properties: Any) -> dict[str, Any]:
    values = ((name, getattr(properties, name)) for name in PROPERTIES)
    return {name.replace("_", "-"): plain_value(value) for name, value in values if value}

"""Convert the SDK's events to ours, directly from the AMQP message, because every event passes here.

The SDK gives texts as bytes. Like .NET, bytes that are not UTF-8 become U+FFFD.
"""

import logging
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from azure.eventhub import EventData

from core.remote.hub.events import body_of, plain_value, text_of
from core.remote.hub.wire import Encoded
from local.event_hubs.codec import DecodeError, decode
from local.functions_host.event_source import HubEvent
from local.functions_host.json_net import NotConverted, json_properties, json_value

logger = logging.getLogger("functions_host")

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
    """Return the event as the host has it. Azure cannot bind a body that is no data: local/README.md."""
    message = event.raw_amqp_message
    found = message.annotations
    key = found.get(PARTITION_KEY)
    named = _named(message.properties) if message.properties is not None else {}
    if len(found) > (3 if key is None else 4):
        named.update((text_of(name), _plain(value)) for name, value in found.items() if name not in STANDARD)
    return HubEvent(
        b"".join(message.body) if message.body_type.value == "data" else body_of(message),
        found[SEQUENCE_NUMBER],
        found[OFFSET].decode(),
        _instant(found[ENQUEUED_TIME]),
        None if key is None else text_of(key),
        _properties(message.application_properties) if message.application_properties else {},
        named,
    )


def _properties(found: Any) -> dict[str, Any] | None:
    """Return the properties as the host's JSON; None when .NET has no value for one of them."""
    try:
        return json_properties(decode(found.raw)[0] if isinstance(found, Encoded) else plain_value(found))
    except (AttributeError, NotConverted, DecodeError, RecursionError) as error:
        logger.warning(
            "properties without a .NET value; the function gets null",
            extra={"action": "properties_not_converted", "error": str(error)},
        )
        return None


def _plain(value: Any) -> Any:
    """Return an annotation, decoded by the SDK, as the host's JSON."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else json_value(value)


@lru_cache(maxsize=64)
def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _named(properties: Any) -> dict[str, Any]:
    values = ((name, getattr(properties, name)) for name in PROPERTIES)
    return {name.replace("_", "-"): _plain(value) for name, value in values if value}

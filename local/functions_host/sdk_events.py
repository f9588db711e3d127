"""Convert the SDK's events to ours, directly from the AMQP message, because every event passes here.

The SDK gives texts as bytes. Like .NET, bytes that are not UTF-8 become U+FFFD.
"""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from azure.eventhub import EventData

from core.remote.hub.events import body_of, text_of
from core.remote.hub.wire import Encoded
from local.event_hubs.codec import DecodeError
from local.functions_host.event_source import HubEvent
from local.functions_host.json_net import NotConverted, json_annotations, json_offset, json_properties

logger = logging.getLogger("functions_host")

SEQUENCE_NUMBER = b"x-opt-sequence-number"
OFFSET = b"x-opt-offset"
ENQUEUED_TIME = b"x-opt-enqueued-time"
PARTITION_KEY = b"x-opt-partition-key"
STANDARD = frozenset(name.decode() for name in (SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME, PARTITION_KEY))

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
    if isinstance(found, Encoded):
        named.update(_annotations(found))
    return HubEvent(
        b"".join(filter(None, message.body)) if message.body_type.value == "data" else body_of(message),
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
        return json_properties(found.raw)
    except (NotConverted, DecodeError) as error:
        logger.warning(
            "properties without a .NET value; the function gets null",
            extra={"action": "properties_not_converted", "error": str(error)},
        )
        return None


def _annotations(found: Encoded) -> Iterator[tuple[str, Any]]:
    return ((name, value) for name, value in json_annotations(found.raw).items() if name not in STANDARD)


@lru_cache(maxsize=64)
def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _named(properties: Any) -> dict[str, Any]:
    values = ((name, getattr(properties, name)) for name in PROPERTIES)
    return {name.replace("_", "-"): _of_property(name, value) for name, value in values if value}


def _of_property(name: str, value: Any) -> Any:
    """Return a property of the message, decoded by the SDK, as the host's JSON."""
    if name == "user_id":
        return {"Length": len(value), "IsEmpty": False}  # of .NET's ReadOnlyMemory
    if name.endswith("_time") and isinstance(value, int):
        return json_offset(value)
    return value if name == "group_sequence" else text_of(value)

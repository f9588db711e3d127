"""Convert the SDK's events to ours, directly from the AMQP message, because every event passes here.

The SDK gives texts as bytes. Like .NET, bytes that are not UTF-8 become U+FFFD.
"""

import logging
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from azure.eventhub import EventData

from core.remote.hub.amqp_values import text_of
from core.remote.hub.events import body_of
from core.remote.hub.sdk_patches import Whole
from local.event_hubs.codec import DecodeError
from local.functions_host.event_hub_inputs import (
    NotConverted,
    json_annotations,
    json_message_properties,
    json_offset,
    json_properties,
)
from local.functions_host.event_source import HubEvent

logger = logging.getLogger("functions_host")

SEQUENCE_NUMBER = b"x-opt-sequence-number"
OFFSET = b"x-opt-offset"
ENQUEUED_TIME = b"x-opt-enqueued-time"
PARTITION_KEY = b"x-opt-partition-key"


def to_hub_event(event: EventData) -> HubEvent:
    """Return the event as the host has it. Azure cannot bind a body that is no data: local/README.md."""
    message = event.raw_amqp_message
    annotations = _annotations(message.annotations)
    properties = json_message_properties(message.annotations.payload) if isinstance(message.annotations, Whole) else {}
    return HubEvent(
        body_of(event._message),
        annotations["x-opt-sequence-number"],
        annotations["x-opt-offset"],
        _instant(message.annotations[ENQUEUED_TIME]),
        annotations.get("x-opt-partition-key"),
        _properties(message.application_properties) if message.application_properties else {},
        properties | annotations | properties,  # theirs is the order, and theirs are the values
    )


def _properties(found: Any) -> dict[str, Any] | None:
    """Return the properties as the host's JSON, or None when .NET has no value for one of them."""
    try:
        return json_properties(found.raw)
    except (NotConverted, DecodeError) as error:
        logger.warning(
            "properties without a .NET value; the function gets null",
            extra={"action": "properties_not_converted", "error": str(error)},
        )
        return None


def _annotations(found: Any) -> dict[str, Any]:
    """Return the annotations as the host's JSON, in the order of the message, the hub's stamps among them."""
    named = json_annotations(found.raw) if isinstance(found, Whole) else dict.fromkeys(map(bytes.decode, found))
    named["x-opt-sequence-number"] = found[SEQUENCE_NUMBER]
    named["x-opt-offset"] = found[OFFSET].decode()
    named["x-opt-enqueued-time"] = _stamp(found[ENQUEUED_TIME])
    if (key := found.get(PARTITION_KEY)) is not None:
        named["x-opt-partition-key"] = text_of(key)
    return named


_stamp = lru_cache(maxsize=64)(json_offset)


@lru_cache(maxsize=64)
def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)

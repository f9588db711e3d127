"""Mark the messages that the trigger cannot deliver while the SDK reads them: its events no longer know the kinds of
their values.

The mark is among the delivery annotations, which a hub never sends. The app's own reader in this process ignores it.
"""

from functools import wraps
from importlib import import_module
from typing import Any

from azure.eventhub import EventData

from core.remote.hub.sdk_patches import RECEIVERS, STAMPS, ReadMessage
from local.functions_host.event_source import PARTITION_KEY, Delivery, delivery_of

_DELIVERY = b"delivery"
_STAMPS, _KEY = frozenset(STAMPS), STAMPS[3]
_SHORT_MAP = 0xC1  # the count is in its third byte
_LOOKED_AT = 200  # bytes from the start of a message in which its key is found without reading the sections
_TEXT_KEY = PARTITION_KEY + b"\xa1"


def mark_messages() -> None:
    """Let the SDK's receivers mark messages. It holds for the process; a second call changes nothing."""
    modules: list[Any] = [import_module(name) for name in RECEIVERS]
    for module in modules:
        if not hasattr(module.decode_payload, "marks"):
            module.decode_payload = marking(module.decode_payload)


def marking(read: ReadMessage) -> ReadMessage:
    """Return a function that reads a message with `read`, and marks one that cannot be delivered."""

    @wraps(read)
    def read_message(payload: memoryview) -> Any:
        message = read(payload)
        if _is_plain(message, payload):
            return message
        found = delivery_of(bytes(payload))
        return message if found is Delivery.DELIVERED else message._replace(delivery_annotations={_DELIVERY: found})

    vars(read_message).setdefault("original", read)
    vars(read_message)["marks"] = True
    return read_message


def mark_of(event: EventData) -> Delivery:
    """Return the end that the mark of an event says; an event without a mark is delivered."""
    marks = event.raw_amqp_message.delivery_annotations
    return marks.get(_DELIVERY, Delivery.DELIVERED) if marks else Delivery.DELIVERED


def _is_plain(message: Any, payload: memoryview) -> bool:
    """Return True for data with the hub's stamps alone, as most events are, without reading its sections."""
    _, _, found, properties, own, data, _, _, footer = message
    if not data or properties or own or footer or not found:
        return False
    if payload[3] != _SHORT_MAP or payload[5] != 2 * len(found) or not _STAMPS.issuperset(found):
        return False  # the SDK leaves out annotations that it cannot read, and its count tells
    return _KEY not in found or _TEXT_KEY in bytes(payload[:_LOOKED_AT])

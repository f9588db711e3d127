"""Read the SDK's messages for the trigger: with the types of annotations, and with a mark where Azure cannot deliver.

The SDK's events no longer know the kinds of their values. The mark is among the delivery annotations, which a hub never
sends. The app's own reader in this process ignores both.

The rules of delivery were measured with the real host, and local/README.md has them in words. Of all that is found in a
message, the worst counts. A value that the host cannot read is one for which the app has words.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from importlib import import_module
from typing import Any

from azure.eventhub import EventData

from core.remote.hub.amqp_values import NotReadable
from core.remote.hub.host_values import why_unreadable
from core.remote.hub.sdk_patches import RECEIVERS, ReadMessage, Whole, keep_values_encoded
from local.event_hubs import sections as of_message
from local.event_hubs.codec import NULL, DecodeError, Symbol, encode, skip
from local.event_hubs.sections import items, sections

MOST_NESTED = 64  # levels: 30 are delivered, 200 are not
PARTITION_KEY = encode(Symbol("x-opt-partition-key"))
_MAPS, _COMPOUNDS, _ARRAYS = (0xC1, 0xD1), (0xC0, 0xC1, 0xD0, 0xD1), {0xE0: 3, 0xF0: 9}  # the place of a constructor
_PLAIN = frozenset(
    b"\x40\x41\x42\x43\x44\x45\x50\x51\x52\x53\x54\x55\x56\x70\x71\x72\x80\x81\x82\x83\x98\xa0\xa1\xa3\xb0\xb1\xb3"
)
_SHORT_DECIMALS, _CHAR, _DESCRIBED = (0x74, 0x84), 0x73, 0
_STRING, _SYMBOL, _BINARY, _TIME = b"\xa1\xb1", b"\xa3\xb3", b"\xa0\xb0", b"\x83"
_ID = b"\x43\x44\x53\x80\x98" + _BINARY + _STRING
# The constructors of the fields of the section of properties; an address is decoded as it is, and must be a string.
_FIELDS = (_ID, _BINARY, None, _STRING, None, _ID, _SYMBOL, _SYMBOL, _TIME, _TIME, _STRING, b"\x43\x52\x70", _STRING)


class Delivery(IntEnum):
    """The end of an event in the trigger, from good to bad."""

    DELIVERED = 0
    BINDING_FAILS = 1  # at every try, before the function
    READER_STOPS = 2  # and opens again, on the same event
    DROPPED = 3  # in silence, with the events that were received with it


def delivery_of(message: bytes) -> Delivery:
    """Return the end of a message that a hub hands out."""
    try:
        each = list(sections(message))
        rules = _BESIDE_DATA if any(one.code == of_message.DATA for one in each) else _RULES
        found = [rules[code](message[body:end]) for code, _, body, end in each if code in rules]
    except (DecodeError, NotReadable, LookupError, struct.error):
        return Delivery.DROPPED
    return max(found, default=Delivery.DELIVERED)


def _of_annotations(encoded: bytes) -> Delivery:
    each = items(encoded, 0)
    keys = [value for name, value in zip(each[::2], each[1::2], strict=False) if name == PARTITION_KEY]
    is_bound = not keys or keys[-1][0] in _STRING + NULL
    return max(_of_items(each), Delivery.DELIVERED if is_bound else Delivery.BINDING_FAILS)


def _of_map(encoded: bytes) -> Delivery:
    return _of_items(items(encoded, 0))


def _of_items(each: Sequence[bytes]) -> Delivery:
    if len(each) % 2:
        return Delivery.DROPPED
    return max(map(_of_property, each[1::2]), default=Delivery.DELIVERED)


def _of_property(encoded: bytes) -> Delivery:
    return Delivery.DELIVERED if encoded[0] in _PLAIN else max(_of_value(encoded), _alone(encoded))


def _alone(encoded: bytes) -> Delivery:
    """Return the end of a value without those in it."""
    return Delivery.READER_STOPS if why_unreadable(encoded) else Delivery.DELIVERED


def _of_value(encoded: bytes, depth: int = 0) -> Delivery:
    """Return the end of a value by the kinds of values in it."""
    code = encoded[0]
    if depth > MOST_NESTED or code in _SHORT_DECIMALS:
        return Delivery.DROPPED
    if code == _DESCRIBED:
        return _of_value(encoded[skip(encoded, 1) :], depth + 1)
    if code == _CHAR:
        return _alone(encoded)
    if code in _ARRAYS:
        elements = encoded[_ARRAYS[code] :]
        return Delivery.DROPPED if elements and elements[0] in _SHORT_DECIMALS else Delivery.DELIVERED
    if code not in _COMPOUNDS:
        skip(encoded, 0)
        return Delivery.DELIVERED
    each = items(encoded, 0)
    if code in _MAPS and len(each) % 2:
        return Delivery.DROPPED
    return max((_of_value(one, depth + 1) for one in each), default=Delivery.DELIVERED)


def _of_fields(encoded: bytes) -> Delivery:
    """Return the end of the section of properties, whose decoder refuses a field of a wrong type."""
    found = Delivery.DELIVERED
    for allowed, part in zip(_FIELDS, items(encoded, 0), strict=False):
        if part != NULL and part[0] not in (_STRING if allowed is None else allowed):
            found = max(found, Delivery.READER_STOPS if allowed is None else Delivery.DROPPED)
    return found


_RULES: Mapping[int, Callable[[bytes], Delivery]] = {
    of_message.MESSAGE_ANNOTATIONS: _of_annotations,
    of_message.PROPERTIES: _of_fields,
    of_message.APPLICATION_PROPERTIES: _of_map,
    of_message.SEQUENCE: lambda _: Delivery.BINDING_FAILS,
    of_message.VALUE: lambda encoded: Delivery.DELIVERED if encoded == NULL else Delivery.BINDING_FAILS,
    of_message.FOOTER: _of_map,
}
_OTHER_BODIES = (of_message.SEQUENCE, of_message.VALUE)  # beside data the host does not look at them
_BESIDE_DATA = {code: rule for code, rule in _RULES.items() if code not in _OTHER_BODIES}


_DELIVERY = b"delivery"


def mark_undeliverable() -> None:
    """Let all receivers of this process read messages for the trigger. A second call changes nothing."""
    keep_values_encoded()
    for module in map(import_module, RECEIVERS):
        own: Any = module
        if not hasattr(own.decode_payload, "annotated"):
            own.decode_payload = annotated(own.decode_payload)


def annotated(read: ReadMessage) -> ReadMessage:
    """Return a function that reads a message with `read`, and marks an event that is not delivered."""

    def read_message(payload: memoryview) -> Any:
        message = read(payload)
        if not isinstance(message.message_annotations, Whole):  # an answer of the hub, or data alone
            return message
        delivery = delivery_of(bytes(payload))
        return message._replace(delivery_annotations={_DELIVERY: delivery}) if delivery else message

    changed: Any = read_message
    changed.original, changed.annotated = getattr(read, "original", read), True
    return read_message


def mark_of(event: EventData) -> Delivery:
    """Return the end that the mark of an event says. An event without a mark is delivered."""
    marks = event.raw_amqp_message.delivery_annotations
    return marks.get(_DELIVERY, Delivery.DELIVERED) if marks else Delivery.DELIVERED

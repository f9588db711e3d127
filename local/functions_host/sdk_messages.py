"""Keep the annotations of events encoded for the trigger, whose JSON tells their types apart; the app reads none."""

from importlib import import_module
from typing import Any

from core.remote.hub.sdk_patches import RECEIVERS, STAMPS, Encoded, ReadMessage, keep_values_encoded
from local.event_hubs.sections import MESSAGE_ANNOTATIONS, sections

_STAMPS = frozenset(STAMPS)
_SHORT_MAP = 0xC1  # its count is in the second byte after it


def keep_annotations_encoded() -> None:
    """Let all receivers of this process keep values and annotations encoded. A second call changes nothing."""
    if keep_values_encoded():
        for module in map(import_module, RECEIVERS):
            own: Any = module
            if not hasattr(own.decode_payload, "annotated"):
                own.decode_payload = annotated(own.decode_payload)


def annotated(read: ReadMessage) -> ReadMessage:
    """Return a function that reads a message as `read` does, and keeps annotations encoded that are no stamps."""

    def read_message(payload: memoryview) -> Any:
        message = read(payload)
        found = message.message_annotations or {}
        if STAMPS[0] not in found or _holds_stamps_alone(payload, found):
            return message
        places = (one for one in sections(bytes(payload)) if one.code == MESSAGE_ANNOTATIONS)
        raw = next(bytes(payload[one.body : one.end]) for one in places)
        return message._replace(message_annotations=Encoded(raw, found))

    changed: Any = read_message
    changed.original, changed.annotated = getattr(read, "original", read), True
    return read_message


def _holds_stamps_alone(payload: memoryview, found: dict[Any, Any]) -> bool:
    """Tell it of the usual form; the SDK may have left out annotations that it cannot read, so they are counted."""
    return payload[3] == _SHORT_MAP and payload[5] == 2 * len(found) and _STAMPS.issuperset(found)

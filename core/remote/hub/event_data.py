"""Have the SDK make the event of a received message at once, without a draft.

The SDK (azure-eventhub 5.15) first makes an empty event with a body, a header and properties, then throws all of them
away and puts the received message in their place. The draft takes six times as long as the rest of the event.
docs/adr/0057-events-without-a-draft.md has the reasons.
"""

from importlib import import_module
from typing import Any


def make_events_at_once() -> bool:
    """Let EventData skip the draft; return False, and change nothing, when this SDK's events are not as expected.

    The change holds for the process; a second call changes nothing.
    """
    try:
        event_data = import_module("azure.eventhub").EventData
        annotated = import_module("azure.eventhub.amqp").AmqpAnnotatedMessage
        sample = import_module("azure.eventhub._pyamqp.message").Message(*[None] * 9)
        drafted = event_data._from_message
        if hasattr(drafted, "drafted"):
            return True
        direct = _direct(annotated)
        if _kinds(direct(event_data, sample)) != _kinds(drafted(sample)):
            return False
    except (ImportError, AttributeError, TypeError, ValueError):
        return False
    direct.drafted = drafted
    event_data._from_message = classmethod(direct)
    return True


def _direct(annotated: Any) -> Any:
    def from_message(cls: Any, message: Any, raw_amqp_message: Any = None) -> Any:
        event = cls.__new__(cls)
        event._last_enqueued_event_properties = {}
        event._sys_properties = None
        event._uamqp_message = None
        event._message = message
        event._raw_amqp_message = raw_amqp_message or annotated(message=message)
        return event

    return from_message


def _kinds(event: Any) -> dict[str, Any]:
    """Return the attributes of an event with their values, of the message that it wraps with its own ones."""
    found = dict(vars(event))
    return {**found, "_raw_amqp_message": vars(found["_raw_amqp_message"])}

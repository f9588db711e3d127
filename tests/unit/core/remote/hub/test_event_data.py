"""core/remote/hub/event_data.py: the SDK's events are equal without the draft, and an unknown SDK is left alone."""

from collections.abc import Iterator
from typing import Any

import pytest
from azure.eventhub import EventData
from azure.eventhub._pyamqp._decode import decode_payload
from azure.eventhub.amqp import AmqpAnnotatedMessage

from core.remote.hub.event_data import make_events_at_once
from core.remote.hub.events import to_event
from local.event_hubs.codec import Described, ULong, encode
from tests.unit.core.remote.hub.test_wire import ANNOTATIONS, DATA, section

HEADER = encode(Described(ULong(0x70), [True, 4, 1_000]))
PROPERTIES = encode(Described(ULong(0x73), ["id-1", b"user", "to", "subject"]))
MESSAGES = [
    ANNOTATIONS + DATA,
    HEADER + ANNOTATIONS + PROPERTIES + section(0x74, {"a": 1}) + DATA + DATA,
    ANNOTATIONS + section(0x77, "value"),
    DATA,
]


@pytest.fixture
def drafted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The SDK's own function, which the test finds in place."""
    changed = vars(EventData)["_from_message"].__func__
    own = getattr(changed, "drafted", EventData._from_message)
    with monkeypatch.context() as patched:
        patched.setattr(EventData, "_from_message", own)
        yield own


def seen(event: Any) -> dict[str, Any]:
    """All that a caller can see of an event."""
    names = [name for name in dir(type(event)) if not name.startswith("_") and name != "message"]
    values = {name: getattr(event, name) for name in names}
    texts = {name: value for name, value in values.items() if not callable(value)}
    annotated: AmqpAnnotatedMessage = texts.pop("raw_amqp_message")
    texts["body"] = [bytes(one) for one in event.body] if event.body_type == "data" else event.body
    return {**texts, "annotated": {name: str(value) for name, value in vars(annotated).items()}, "text": str(event)}


@pytest.mark.parametrize("octets", MESSAGES)
def test_an_event_made_at_once_is_the_one_that_the_sdk_makes(octets: bytes, drafted: Any) -> None:
    message = decode_payload(memoryview(octets))
    expected = drafted(message)
    assert make_events_at_once()
    made = EventData._from_message(message)
    assert type(made) is EventData
    assert vars(made).keys() == vars(expected).keys()
    assert seen(made) == seen(expected)
    assert made._message is message
    if octets.startswith(ANNOTATIONS):
        assert to_event(made) == to_event(expected)


def test_a_message_that_is_annotated_already_is_kept(drafted: Any) -> None:
    assert make_events_at_once()
    message = decode_payload(memoryview(MESSAGES[0]))
    annotated = AmqpAnnotatedMessage(message=message)
    assert EventData._from_message(message, raw_amqp_message=annotated).raw_amqp_message is annotated


def test_the_sdk_is_changed_once(drafted: Any) -> None:
    assert make_events_at_once()
    changed = vars(EventData)["_from_message"]
    assert make_events_at_once()
    assert vars(EventData)["_from_message"] is changed
    assert changed.__func__.drafted == drafted


def test_an_sdk_whose_events_have_one_more_attribute_is_left_alone(
    drafted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def newer(message: Any) -> Any:
        event = drafted(message)
        event._received_at = 0.0
        return event

    monkeypatch.setattr(EventData, "_from_message", newer)
    assert not make_events_at_once()
    assert EventData._from_message is newer


def test_an_sdk_without_the_function_is_left_alone(drafted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(EventData, "_from_message")
    assert not make_events_at_once()
    assert not hasattr(EventData, "_from_message")

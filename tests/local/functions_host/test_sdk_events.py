from datetime import UTC, datetime
from typing import Any

from azure.eventhub import EventData
from azure.eventhub.amqp import AmqpAnnotatedMessage

from core.remote.hub.sdk_patches import Encoded
from local.event_hubs.codec import Described, Symbol, encode
from local.functions_host.sdk_events import to_hub_event

ANNOTATIONS = {
    b"x-opt-sequence-number": 7,
    b"x-opt-offset": b"448",
    b"x-opt-enqueued-time": 1795262400123,
    b"x-opt-partition-key": "schl\u00fcssel".encode(),
}
STAMPS = {
    "x-opt-sequence-number": 7,
    "x-opt-offset": "448",
    "x-opt-enqueued-time": "2026-11-21T12:00:00.123+00:00",
    "x-opt-partition-key": "schl\u00fcssel",
}


class Received(EventData):
    """An event as the SDK delivers it: names and texts are bytes."""

    def __init__(self, message: AmqpAnnotatedMessage) -> None:
        super().__init__(b"")
        self.received = message

    @property
    def raw_amqp_message(self) -> AmqpAnnotatedMessage:
        return self.received


def received(**parts: Any) -> EventData:
    return Received(AmqpAnnotatedMessage(**{"data_body": b"body", "annotations": ANNOTATIONS, **parts}))


def test_the_position_key_and_instant_are_read_from_the_annotations() -> None:
    event = to_hub_event(received())
    assert (event.sequence_number, event.offset, event.partition_key) == (7, "448", "schl\u00fcssel")
    assert event.enqueued_at == datetime(2026, 11, 21, 12, 0, 0, 123_000, tzinfo=UTC)
    assert (event.properties, list(event.system_properties.items())) == ({}, list(STAMPS.items()))


def test_the_sections_of_a_body_are_joined_and_an_amqp_value_is_the_reader_s_json() -> None:
    assert to_hub_event(received(data_body=[b"a", b"", b"b"])).body == b"ab"
    value = AmqpAnnotatedMessage(value_body=Encoded(encode("text")), annotations=ANNOTATIONS)
    assert to_hub_event(Received(value)).body == b'"text"'


def test_application_properties_become_json() -> None:
    properties = {"text": "caf\u00e9", "raw": b"\xff", "n": 1.5, "none": None, "nan": float("nan"), "list": ["a", 1]}
    event = to_hub_event(received(application_properties=Encoded(encode(properties))))
    assert event.properties == {
        "text": "caf\u00e9", "raw": "/w==", "n": 1.5, "none": None, "nan": "NaN", "list": ["a", 1],
    }  # fmt: skip


def test_properties_without_a_dotnet_value_are_none() -> None:
    beyond = encode({"described": Described(7, 1)})
    assert to_hub_event(received(application_properties=Encoded(beyond))).properties is None


def test_amqp_properties_come_first_and_annotations_in_their_order_with_their_dotnet_names() -> None:
    properties = {"content_type": b"application/json", "message_id": b"m"}
    annotations = Encoded(encode({Symbol("x-opt-publisher"): "p", Symbol("x-opt-offset"): "448"}), ANNOTATIONS)
    event = to_hub_event(received(properties=properties, annotations=annotations))
    named = {"message-id": "m", "content-type": "application/json", "x-opt-publisher": "p", "x-opt-offset": "448"}
    assert list(event.system_properties.items())[:4] == list(named.items())


def test_empty_texts_of_four_amqp_properties_and_zeros_of_all_are_kept() -> None:
    empty = {"message_id": b"", "to": b"", "subject": b"", "content_type": b"", "group_sequence": 0, "creation_time": 0}
    assert list(to_hub_event(received(properties=empty)).system_properties.items())[:4] == [
        ("message-id", ""),
        ("to", ""),
        ("creation-time", "1970-01-01T00:00:00+00:00"),
        ("group-sequence", 0),
    ]


def test_an_event_without_key_has_none() -> None:
    annotations = {name: value for name, value in ANNOTATIONS.items() if name != b"x-opt-partition-key"}
    assert to_hub_event(received(annotations=annotations)).partition_key is None

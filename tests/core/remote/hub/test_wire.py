"""core/remote/hub/sdk_patches.py: the SDK's receivers keep the values of events encoded, and nothing ends them."""

from importlib import import_module
from typing import Any

import pytest
from azure.eventhub import EventData
from azure.eventhub._pyamqp._decode import decode_payload

from core.model.property_values import Unread
from core.remote.hub.events import to_event
from core.remote.hub.sdk_patches import RECEIVERS, Encoded, keep_values_encoded, reader_over
from local.event_hubs.codec import Described, Raw, Symbol, Timestamp, ULong, encode, encode_map
from tests.core.remote.hub.test_amqp_values import VALUES

STAMPS = {
    Symbol("x-opt-sequence-number"): 7,
    Symbol("x-opt-offset"): "448",
    Symbol("x-opt-enqueued-time"): Timestamp(1_767_225_600_123),
    Symbol("x-opt-partition-key"): "möwe",
}
CHAR = Raw(b"\x73\x00\x01\xf4\x69")
read_message = reader_over(decode_payload)


def section(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))


ANNOTATIONS, DATA = section(0x72, STAMPS), section(0x75, b"body")


def event_of(*sections: bytes) -> Any:
    return to_event(EventData._from_message(read_message(memoryview(b"".join(sections)))))


def test_properties_and_bodies_stay_encoded_until_they_are_ours() -> None:
    message = read_message(memoryview(ANNOTATIONS + section(0x74, {"a": CHAR}) + section(0x77, [1])))
    assert (message.application_properties.raw, message.value.raw) == (encode({"a": CHAR}), encode([1]))
    assert not dict(message.application_properties)


@pytest.mark.parametrize("properties", [b"", section(0x74, {}), section(0x74, None), section(0x78, {Symbol("f"): 1})])
def test_an_event_without_properties_has_none(properties: bytes) -> None:
    event = event_of(ANNOTATIONS, DATA, properties)
    assert (event.sequence_number, event.offset, event.partition_key) == (7, "448", "möwe")
    assert (event.body, event.properties) == (b"body", {})


def test_texts_and_bytes_are_told_apart_and_a_char_ends_nothing() -> None:
    number = Raw(b"\x94\x30\x40" + b"\x00" * 13 + b"\x0a")  # the SDK's reader raises decimal.InvalidOperation
    assert event_of(ANNOTATIONS, section(0x74, {"number": number}), DATA).properties == {"number": 10}
    given = {"text": "a", "symbol": Symbol("a"), "bytes": b"a", "char": CHAR}
    assert event_of(ANNOTATIONS, section(0x74, given), DATA).properties == {
        "text": "a",
        "symbol": "a",
        "bytes": b"a",
        "char": "👩",
    }


def test_sections_come_in_any_order_and_with_wide_descriptors() -> None:
    wide = b"\x00\x80" + (0x74).to_bytes(8) + encode({"a": 1})
    header = section(0x70, [True])
    found = event_of(header, DATA, wide, section(0x75, b" too"), ANNOTATIONS)
    assert (found.body, found.properties) == (b"body too", {"a": 1})
    data = b"\x00\x80" + (0x75).to_bytes(8) + encode(b"body")
    assert event_of(data, ANNOTATIONS).body == b"body"


@pytest.mark.parametrize(
    "value", [CHAR, Raw(b"\x74\x31\x80\x00\x6e"), Raw(b"\xd1\x00\x00\x00\x05\x00\x00\x00\x02\x45")]
)
def test_an_annotation_that_the_sdk_cannot_read_leaves_the_stamps(value: Raw) -> None:
    items = [encode(one) for pair in STAMPS.items() for one in pair]
    annotations = b"\x00\x53\x72" + encode_map([encode(Symbol("x-opt-own")), value, *items])
    found = event_of(annotations, section(0x73, ["id"]), section(0x74, {"a": 1}), DATA)
    assert (found.sequence_number, found.partition_key, found.body) == (7, "möwe", b"body")
    assert found.enqueued_at.microsecond == 123_000
    assert found.properties == {"a": 1}


def test_properties_that_the_sdk_takes_for_an_element_of_an_annotation_are_read() -> None:
    short = Raw(b"\xc0\x01\x01")  # a list that says it has an element, and ends
    annotations = section(0x72, {**STAMPS, Symbol("x-opt-own"): short})
    found = event_of(annotations, section(0x74, {"a": 1}), DATA)
    assert (found.sequence_number, found.properties, found.body) == (7, {"a": 1}, b"body")


@pytest.mark.parametrize("code", VALUES)
def test_an_event_with_a_value_of_any_type_is_read(code: str) -> None:
    written, expected = VALUES[code]
    event = event_of(ANNOTATIONS, section(0x74, {"a": Raw(bytes.fromhex(written))}), DATA)
    assert event.properties == {"a": expected}


def test_properties_that_cannot_be_read_are_unread_and_the_body_is_whole() -> None:
    deep: Any = "deep"
    for _ in range(200):
        deep = [deep]
    found = event_of(ANNOTATIONS, section(0x74, {"a": deep}), DATA)
    assert isinstance(found.properties, Unread)
    assert found.body == b"body"


def test_a_data_section_that_holds_null_is_an_empty_body() -> None:
    assert event_of(ANNOTATIONS, section(0x75, None)).body == b""
    assert event_of(ANNOTATIONS, section(0x74, {"a": 1}), section(0x75, None)).body == b""


def test_a_body_of_sequences_and_a_value_are_json() -> None:
    assert event_of(ANNOTATIONS, section(0x76, [1, "a"]), section(0x76, [b"\x00"])).body == (
        b'[1,"a",{"$binary":"AA=="}]'
    )
    assert event_of(ANNOTATIONS, section(0x77, {"a": float("nan")})).body == b'{"a":{"$double":"NaN"}}'
    assert event_of(ANNOTATIONS, section(0x77, None)).body == b""
    assert event_of(ANNOTATIONS).body == b""


@pytest.mark.parametrize("message", [section(0x74, {"status-code": 202}) + section(0x77, {"name": "hub"}), DATA])
def test_an_answer_of_the_hub_is_read_as_the_sdk_reads_it(message: bytes) -> None:
    assert read_message(memoryview(message)) == decode_payload(memoryview(message))


def test_the_receivers_of_the_sdk_are_changed_once() -> None:
    keep_values_encoded()
    modules: list[Any] = [import_module(name) for name in RECEIVERS]
    changed = [module.decode_payload for module in modules]
    keep_values_encoded()
    assert [module.decode_payload for module in modules] == changed
    assert all(one.original is decode_payload for one in changed)


def test_encoded_properties_are_an_empty_map_that_is_there() -> None:
    found = Encoded(b"\x45")
    assert found and not list(found)

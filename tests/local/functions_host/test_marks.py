from azure.eventhub import EventData
from azure.eventhub._pyamqp._decode import decode_payload

from core.remote.hub.sdk_patches import reader_over
from local.event_hubs.codec import Raw, Symbol, encode
from local.functions_host.sdk_messages import Delivery, annotated, delivery_of, mark_of
from tests.fakes import trigger_events

BODY = b"\x00\x53\x75\xa0\x01x"
read = annotated(reader_over(decode_payload))


def mark(payload: bytes) -> Delivery:
    return mark_of(EventData._from_message(read(memoryview(payload))))


def test_an_event_of_the_sdk_tells_the_end_of_its_message() -> None:
    payloads = {one.name: one.message for one in trigger_events.published()}
    assert {name: mark(payload) for name, payload in payloads.items()} == {
        name: delivery_of(payload) for name, payload in payloads.items()
    }


def test_a_plain_event_is_read_as_without_marks() -> None:
    for key in ("", "k", "k" * 300):
        annotations = {Symbol("x-opt-partition-key"): key} if key else {}
        message = b"\x00\x53\x72" + encode(annotations) + BODY
        payload = memoryview(trigger_events.handed_out(message))
        assert read(payload) == reader_over(decode_payload)(payload), key
        assert read(payload).delivery_annotations is None


def test_an_annotation_that_the_sdk_cannot_read_is_seen() -> None:
    for value, end in ((b"\x84" + bytes(8), Delivery.DROPPED), (b"\x73\x00\x01\xf6\x00", Delivery.READER_STOPS)):
        message = b"\x00\x53\x72" + encode({Symbol("x-mine"): Raw(value)}) + BODY
        assert mark(trigger_events.handed_out(message)) is end


def test_a_key_that_is_no_string_is_seen_although_the_sdk_reads_it_like_one() -> None:
    for key in (b"k", Symbol("k")):
        message = b"\x00\x53\x72" + encode({Symbol("x-opt-partition-key"): key}) + BODY
        assert mark(trigger_events.handed_out(message)) is Delivery.BINDING_FAILS, key

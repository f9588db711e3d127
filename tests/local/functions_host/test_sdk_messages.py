"""local/functions_host/sdk_messages.py: the trigger sees the types of annotations."""

from importlib import import_module
from typing import Any

from azure.eventhub._pyamqp._decode import decode_payload

from core.remote.hub.sdk_patches import RECEIVERS, Encoded, keep_values_encoded, reader_over
from local.event_hubs.codec import Described, Symbol, Timestamp, ULong, encode
from local.functions_host.sdk_messages import annotated, keep_annotations_encoded
from tests.fakes.trigger_events import handed_out

read_plain = reader_over(decode_payload)
read_message = annotated(read_plain)


def payload(annotations: dict[Symbol, Any]) -> memoryview:
    sections = Described(ULong(0x72), annotations), Described(ULong(0x75), b"body")
    return memoryview(handed_out(b"".join(map(encode, sections))))


def test_annotations_keep_their_bytes_beside_the_stamps_that_the_sdk_read() -> None:
    given = payload({Symbol("x-mine"): Timestamp(5)})
    found = read_message(given).message_annotations
    assert isinstance(found, Encoded)
    assert encode({Symbol("x-mine"): Timestamp(5)})[3:] in found.raw
    assert found[b"x-opt-sequence-number"] == 7
    assert dict(read_plain(given).message_annotations) == dict(found)


def test_a_message_of_stamps_alone_and_an_answer_of_the_hub_are_left_as_they_are() -> None:
    for given in (payload({Symbol("x-opt-partition-key"): "k"}), memoryview(encode(Described(ULong(0x77), "x")))):
        assert not isinstance(read_message(given).message_annotations, Encoded)


def test_the_receivers_of_the_sdk_are_changed_once_and_stay_those_of_the_app() -> None:
    modules: list[Any] = [import_module(name) for name in RECEIVERS]
    before = [module.decode_payload for module in modules]
    try:
        keep_annotations_encoded()
        changed = [module.decode_payload for module in modules]
        keep_annotations_encoded()
        keep_values_encoded()
        assert [module.decode_payload for module in modules] == changed
        assert all(one.annotated and one.original is decode_payload for one in changed)
    finally:
        for module, original in zip(modules, before, strict=True):
            module.decode_payload = original

from base64 import b64encode
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from azure.eventhub import EventData
from azure.eventhub._pyamqp.message import Header, Message, Properties

from core.errors import BatchRefused
from core.model.property_values import Unread
from core.remote.hub.events import to_event
from core.remote.hub.sdk_patches import Encoded
from local.event_hubs.codec import Described, Float, Raw, Symbol, encode, encode_map

STAMPED = {b"x-opt-sequence-number": 41, b"x-opt-offset": b"2624", b"x-opt-enqueued-time": 1_767_225_600_123}


def received(stamps: dict[bytes, Any] = STAMPED, **given: Any) -> EventData:
    """An event as the SDK makes it of what comes over the wire."""
    body = {"data": [b"{}"]} if not {"value", "sequence"} & set(given) else {}
    message = Message(message_annotations=stamps, header=Header(), properties=Properties(), **{**body, **given})
    return EventData._from_message(message)


def test_an_event_keeps_its_place_time_key_and_body() -> None:
    event = to_event(received({**STAMPED, b"x-opt-partition-key": "möwe".encode()}, data=[b"ab", b"c\xff"]))
    assert (event.sequence_number, event.offset, event.partition_key) == (41, "2624", "möwe")
    assert event.enqueued_at == datetime(2026, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)
    assert event.body == b"abc\xff"


def test_properties_are_texts_and_plain_values() -> None:
    given = {b"a": b"text", "b": 5, b"c": 1.5, b"d": None, b"e": True, b"f": UUID(int=7), b"g": [b"x", {b"y": b"\xff"}]}
    plain = {"a": "text", "b": 5, "c": 1.5, "d": None, "e": True, "f": UUID(int=7), "g": ["x", {"y": b"\xff"}]}
    assert dict(to_event(received(application_properties=given)).properties) == plain


@pytest.mark.parametrize(
    "stamps",
    [
        *({name: STAMPED[name] for name in STAMPED if name != missing} for missing in STAMPED),
        {**STAMPED, b"x-opt-enqueued-time": 0},
        {**STAMPED, b"x-opt-offset": 5},
    ],
    ids=["no number", "no offset", "no time", "no instant", "an offset that is no text"],
)
def test_an_event_that_the_hub_did_not_stamp_is_refused(stamps: dict[bytes, Any]) -> None:
    with pytest.raises(BatchRefused):
        to_event(received(stamps))


def test_a_body_that_is_no_data_is_json_and_one_that_cannot_be_read_its_bytes() -> None:
    assert to_event(received(value=b"abc")).body == b'"abc"'
    assert to_event(received(value=5)).body == b"5"
    assert to_event(received(value=Encoded(b"\x82\x7f\xf8" + b"\x00" * 6))).body == b'{"$double":"NaN"}'
    assert to_event(received(sequence=[[1, b"a"], [None]])).body == b'[1,"a",null]'
    encoded = [Encoded(encode([1])), Encoded(encode([b"\x00"]))]
    assert to_event(received(sequence=encoded)).body == b'[1,{"$binary":"AA=="}]'
    assert to_event(received(value=Encoded(b"\x99"))).body == b'{"$amqp": "mQ=="}'
    assert to_event(received(sequence=[Encoded(b"\x99")])).body == b'{"$amqp": "mQ=="}'


def test_values_of_the_worker_have_no_type_but_those_of_python() -> None:
    last = Raw(b"\x83\x7f" + b"\xff" * 7)
    written = [Float(0.5), Symbol("s"), Raw(b"\xa1\x01\xff"), Raw(b"\xa3\x01\xff"), last]
    raw = encode({Symbol("k"): [*written, {Symbol("n"): Described(Symbol("d"), Float(0.5))}], "f": Float(0.5)})
    found = to_event(received(application_properties=Encoded(raw))).properties
    values = found["k"]
    assert isinstance(values, list)
    described = values[5]["n"]
    assert [type(one) for one in values] == [float, str, bytes, bytes, int, dict]
    assert (type(described.descriptor), type(described.value), type(found["f"])) == (str, float, float)
    assert {type(name) for name in (*found, *values[5])} == {str}


def test_keys_that_are_no_texts_have_the_names_of_dotnet() -> None:
    pairs = [(None, 1), (5, 2), (Raw(b"\xa3\x01\xff"), 3), (Raw(b"\xa1\x01\xfe"), 4), ("k", 5), ("k", 6)]
    raw = encode_map([encode(each) for pair in pairs for each in pair])
    found = to_event(received(application_properties=Encoded(raw))).properties
    assert found == {"<null>": 1, "5": 2, "?": 3, "\ufffd": 4, "k": 6}


@pytest.mark.parametrize("raw", [b"\x99", encode("text"), encode({1.5: 2}), b"\xc1\x05\x04\x41\x40\x54\x01"])
def test_properties_that_cannot_be_read_are_their_bytes(raw: bytes) -> None:
    assert to_event(received(application_properties=Encoded(raw))).properties == Unread("amqp", b64encode(raw).decode())


def test_times_that_are_equal_are_the_same_instant() -> None:
    stamps = [1_767_225_600_123, 1_767_225_600_124, 1_767_225_600_123]
    times = [to_event(received({**STAMPED, b"x-opt-enqueued-time": stamp})).enqueued_at for stamp in stamps]
    assert [time.microsecond for time in times] == [123_000, 124_000, 123_000]

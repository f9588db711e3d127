"""The events that a hub makes of a publisher's message."""

from typing import Any

import pytest

from local.event_hubs.codec import Described, Symbol, ULong, decode, encode, encode_map
from local.event_hubs.errors import AmqpError
from local.event_hubs.events import BATCH_FORMAT, read_publication, stamp
from local.event_hubs.sections import DATA, MESSAGE_ANNOTATIONS, VALUE, sections
from tests.local.event_hubs.messages import batch, message


def parts(payload: bytes) -> dict[int, Any]:
    return {section.code: decode(payload, section.body)[0] for section in sections(payload)}


def test_a_message_is_one_event_and_a_key_that_is_not_a_string_is_no_key() -> None:
    for publication in (read_publication(message(), 0), read_publication(message(partition_key=7), 0)):
        assert len(publication.events) == 1
        assert publication.partition_key is None


def test_a_batch_is_as_many_events_as_it_has_messages_with_its_annotations_where_they_have_none() -> None:
    messages = [message(b"a"), message(b"b", partition_key="own")]
    publication = read_publication(batch(messages, partition_key="outer"), BATCH_FORMAT)
    assert [parts(event.rest)[DATA] for event in publication.events] == [b"a", b"b"]
    assert publication.partition_key == "outer"
    assert [decode(event.annotations[1])[0] for event in publication.events] == ["outer", "own"]


def test_a_stamped_event_says_where_and_when_it_was_enqueued() -> None:
    [unstamped] = read_publication(message(b"hello", partition_key="a", mine=7), 0).events
    event = stamp(unstamped, 41, 1234, 1_700_000_000_000)
    assert (event.sequence_number, event.offset, event.enqueued_at) == (41, 1234, 1_700_000_000_000)
    assert parts(event.payload) == {
        MESSAGE_ANNOTATIONS: {
            "x-opt-partition-key": "a",
            "x-opt-mine": 7,
            "x-opt-sequence-number": 41,
            "x-opt-offset": "1234",
            "x-opt-enqueued-time": 1_700_000_000_000,
        },
        DATA: b"hello",
    }


def test_the_stamps_of_a_different_hub_do_not_survive_forwarding() -> None:
    forwarded = message(b"x", sequence_number=7, offset="9", enqueued_time=3, partition_key="a")
    [unstamped] = read_publication(forwarded, 0).events
    payload = stamp(unstamped, 1, 0, 5).payload
    assert parts(payload)[MESSAGE_ANNOTATIONS]["x-opt-sequence-number"] == 1
    assert payload.count(b"x-opt-sequence-number") == 1


def test_a_key_in_the_long_form_of_a_symbol_is_the_same_key() -> None:
    short = message(b"x", sequence_number=7, partition_key="a")
    keys = [encode(Symbol(f"x-opt-{name}")) for name in ("sequence-number", "partition-key")]
    annotations = [keys[0], encode(7), keys[1], encode("a")]
    for key in keys:
        annotations = [b"\xb3\x00\x00\x00" + each[1:] if each == key else each for each in annotations]
    long = b"\x00\x53\x72" + encode_map(annotations) + message(b"x")
    assert long != short
    publication = read_publication(long, 0)
    assert publication.partition_key == "a"
    payload = stamp(publication.events[0], 1, 0, 5).payload
    assert parts(payload)[MESSAGE_ANNOTATIONS]["x-opt-sequence-number"] == 1
    assert payload.count(b"x-opt-sequence-number") == 1


def test_a_header_does_not_reach_readers_and_every_other_section_does_unchanged() -> None:
    header = encode(Described(ULong(0x70), [True]))
    properties = encode(Described(ULong(0x73), ["id", None, None, None, None, "correlation"]))
    [event] = read_publication(header + properties + message(), 0).events
    assert event.rest == properties + message()


def test_a_section_that_is_null_is_none_but_a_body_of_null_is_an_empty_one() -> None:
    nulls = {code: encode(Described(ULong(code), None)) for code in range(0x70, 0x79)}
    for code in (0x70, 0x71, 0x72, 0x73, 0x74, 0x76, 0x78):
        [event] = read_publication(nulls[code] + message(mine=7), 0).events
        assert event.rest == message(), hex(code)
        [batched] = read_publication(batch([nulls[code] + message()]), BATCH_FORMAT).events
        assert batched.rest == message(), hex(code)
    [event] = read_publication(nulls[DATA], 0).events
    assert event.rest == message(b"")
    [event] = read_publication(nulls[VALUE], 0).events
    assert event.rest == nulls[VALUE]


def test_sections_may_come_in_any_order() -> None:
    late = message(b"body") + encode(Described(ULong(MESSAGE_ANNOTATIONS), {Symbol("x-opt-partition-key"): "k"}))
    assert read_publication(late, 0).partition_key == "k"


def test_a_broken_message_is_refused() -> None:
    for broken, message_format in (
        (b"garbage", 0),
        (message()[:-1], 0),
        (encode(Described(ULong(DATA), "text")), BATCH_FORMAT),
        (batch([b"garbage"]), BATCH_FORMAT),
        (encode(Described(ULong(DATA), None)), BATCH_FORMAT),
        (encode(Described(ULong(MESSAGE_ANNOTATIONS), 7)), 0),
        (b"\x00\x53\x72\xc1\x02\x01\x41" + message(), 0),
    ):
        with pytest.raises(AmqpError, match="amqp:decode-error"):
            pytest.fail(f"{broken!r} was read as {read_publication(broken, message_format)}")


def test_an_unknown_message_format_is_refused_loudly() -> None:
    with pytest.raises(AmqpError, match="amqp:not-implemented"):
        read_publication(message(), 0x12345)

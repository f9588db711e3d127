"""The events that a hub makes of a publisher's message, and the partition of a key."""

from typing import Any

import pytest

from local.event_hubs.codec import Symbol, decode, encode, encode_map
from local.event_hubs.errors import AmqpError
from local.event_hubs.events import BATCH_FORMAT, key_hash, partition_index, read_publication, stamp
from local.event_hubs.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    DELIVERY_ANNOTATIONS,
    HEADER,
    MESSAGE_ANNOTATIONS,
    VALUE,
    sections,
)
from tests.fakes import trigger_events
from tests.local.event_hubs.messages import batch, message, section, transfers
from tests.local.event_hubs.peer import make_broker, publisher, reader

# The hashes are those of PartitionResolverTests.cs in azure-sdk-for-net, which the clients of Java and Python test too.
KNOWN = {
    "7": -15263,
    "131": 30562,
    "7149583486996073602": 12977,
    "FWfAT": -22341,
    "sOdeEAsyQoEuEFPGerWO": -6503,
    "FAyAIctPeCgmiwLKbJcyswoHglHVjQdvtBowLACDNORsYvOcLddNJYDmhAVkbyLOrHTKLneMNcbgWVlasVywOByANjs": 5226,
    "!c*_!I@1^c": 15372,
    "p4*!jioeO/z-!-;w:dh": -3104,
    "$0cb": 26269,
    "-4189260826195535198": 453,
}


def parts(payload: bytes) -> dict[int, Any]:
    return {section.code: decode(payload, section.body)[0] for section in sections(payload)}


def test_a_key_has_the_hash_that_every_client_computes_and_its_sign_is_dropped_after_the_division() -> None:
    assert {key: key_hash(key) for key in KNOWN} == KNOWN
    for count in (1, 4, 5, 16, 32):
        truncated = [abs(known) % count for known in KNOWN.values()]  # C#: Math.Abs(hash % count)
        assert [partition_index(key, count) for key in KNOWN] == truncated
    assert partition_index("", 4) == 0
    assert key_hash("ä") != key_hash("\xc3\xa4"), "it is hashed as UTF-8"


def test_a_batch_is_as_many_events_as_it_has_messages_with_its_annotations_where_they_have_none() -> None:
    messages = [message(b"a"), message(b"b", partition_key="own")]
    publication = read_publication(batch(messages, partition_key="outer"), BATCH_FORMAT)
    assert [parts(event.rest)[DATA] for event in publication.events] == [b"a", b"b"]
    assert publication.partition_key == "outer"
    assert [decode(event.annotations[1])[0] for event in publication.events] == ["outer", "own"]
    assert read_publication(message(partition_key=7), 0).partition_key is None, "no string is no key"


def long_form() -> bytes:
    """Return a message whose annotations have keys in the long form of a symbol."""
    given = {"sequence-number": 7, "offset": "9", "partition-key": "a"}
    pairs = [(b"\xb3\x00\x00\x00" + encode(Symbol(f"x-opt-{name}"))[1:], encode(given[name])) for name in given]
    return b"\x00\x53\x72" + encode_map([one for pair in pairs for one in pair]) + message(b"x")


@pytest.mark.parametrize(
    "forwarded",
    [message(b"x", sequence_number=7, offset="9", enqueued_time=3, partition_key="a"), long_form()],
    ids=["short", "long"],
)
def test_the_stamps_of_a_different_hub_do_not_survive_forwarding(forwarded: bytes) -> None:
    publication = read_publication(forwarded, 0)
    event = stamp(publication.events[0], 41, 1234, 1_700_000_000_000)
    assert (event.sequence_number, event.offset, event.enqueued_at) == (41, 1234, 1_700_000_000_000)
    assert parts(event.payload)[MESSAGE_ANNOTATIONS] == {
        "x-opt-partition-key": publication.partition_key,
        "x-opt-sequence-number": 41,
        "x-opt-offset": "1234",
        "x-opt-enqueued-time": 1_700_000_000_000,
    }
    assert publication.partition_key == "a"
    assert event.payload.count(b"x-opt-sequence-number") == 1


def test_a_header_does_not_reach_readers_and_every_other_section_does_unchanged() -> None:
    properties = section(0x73, ["id", None, None, None, None, "correlation"])
    [event] = read_publication(section(HEADER, [True]) + properties + message(), 0).events
    assert event.rest == properties + message()


def test_a_section_that_is_null_is_none_but_a_body_of_null_is_an_empty_one() -> None:
    nulls = {code: section(code, None) for code in range(0x70, 0x79)}
    for code in (0x70, 0x71, 0x72, 0x73, 0x74, 0x76, 0x78):
        [event] = read_publication(nulls[code] + message(mine=7), 0).events
        [batched] = read_publication(batch([nulls[code] + message()]), BATCH_FORMAT).events
        assert event.rest == batched.rest == message(), hex(code)
    assert read_publication(nulls[DATA], 0).events[0].rest == message(b"")
    assert read_publication(nulls[VALUE], 0).events[0].rest == nulls[VALUE]


def test_sections_may_come_in_any_order() -> None:
    late = message(b"body") + section(MESSAGE_ANNOTATIONS, {Symbol("x-opt-partition-key"): "k"})
    assert read_publication(late, 0).partition_key == "k"


def test_a_broken_message_and_an_unknown_format_are_refused() -> None:
    for broken, message_format in (
        (b"garbage", 0),
        (message()[:-1], 0),
        (section(DATA, "text"), BATCH_FORMAT),
        (batch([b"garbage"]), BATCH_FORMAT),
        (section(DATA, None), BATCH_FORMAT),
        (section(MESSAGE_ANNOTATIONS, 7), 0),
        (b"\x00\x53\x72\xc1\x02\x01\x41" + message(), 0),
    ):
        with pytest.raises(AmqpError, match="amqp:decode-error"):
            pytest.fail(f"{broken!r} was read as {read_publication(broken, message_format)}")
    with pytest.raises(AmqpError, match="amqp:not-implemented"):
        read_publication(message(), 0x12345)


# The messages that were published to the real trigger pass through a hub, whatever their reader makes of them.

CASE = bytes.fromhex("005374c11604a10463617365a10178a1017681000000000000000100")
OK = bytes.fromhex("5375a0087b226f6b223a317d")
NOT_DELIVERED: dict[str, bytes] = {
    "a body that is a value": CASE + bytes.fromhex("5377a10474657874"),
    "a body that is a map": CASE + bytes.fromhex("5377c10d02a1016b810000000000000001"),
    "a body of two sequences": CASE + bytes.fromhex("5376c00a0181000000000000000100 5376c00a01810000000000000002"),
    "a key of 300 characters": message(partition_key="k" * 300),
    "a thousand properties": section(APPLICATION_PROPERTIES, {f"p{n}": n for n in range(1000)}) + message(),
    "a large body": message(b"x" * 900_000),
}
REFUSED: dict[str, bytes] = {
    "no sections": b"hello world",
    "a section with a name of its own": bytes.fromhex("00a30a6d793a73656374696f6ec10100") + b"\x00" + OK,
    "a key that is not UTF-8": bytes.fromhex("005372c11a02a313782d6f70742d706172746974696f6e2d6b6579a102fffe00") + OK,
}


def kept(whole: bytes) -> bytes:
    """Return the sections of a message that a hub passes on as they are."""
    replaced = (HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS)
    return b"".join(whole[start:end] for code, start, _, end in sections(whole) if code not in replaced)


def passed(whole: bytes) -> bytes | None:
    """Publish a message and return the payload that a reader gets, None for a message that is refused."""
    broker = make_broker()
    peer = publisher(broker)
    peer.put(*transfers(whole))
    if not peer.outcomes()[0][2]:
        return None
    consumer = reader(broker)
    consumer.grant(1)
    return b"".join(consumer.payloads())


@pytest.mark.asyncio
async def test_every_message_of_the_trigger_passes_with_the_bytes_of_its_sections_and_no_other_does() -> None:
    messages = {one.name: one.message for one in trigger_events.published()} | NOT_DELIVERED
    assert len(messages) > 100
    different = [name for name, whole in messages.items() if kept(passed(whole) or b"") != kept(whole)]
    assert different == []
    assert kept(passed(bytes.fromhex("0053744000") + OK) or b"") == b"\x00" + OK, "properties that are null are none"
    assert [name for name, whole in REFUSED.items() if passed(whole) is not None] == []

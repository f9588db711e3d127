import asyncio
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from azure.eventhub import EventData
from azure.eventhub._pyamqp._decode import decode_payload
from azure.eventhub._pyamqp.aio._transport_async import AsyncTransport
from azure.eventhub.amqp import AmqpAnnotatedMessage

from core.model.property_values import Unread
from core.remote.hub import sdk_patches
from core.remote.hub import sdk_patches as shortcuts
from core.remote.hub.events import to_event
from core.remote.hub.sdk_patches import RECEIVERS, make_events_at_once, read_without_tasks, reader_over, take_shortcuts
from local.event_hubs.codec import Described, Raw, Symbol, Timestamp, ULong, encode, encode_map
from tests.patience import MOMENT, allowed

STAMPS = {
    Symbol("x-opt-sequence-number"): 7,
    Symbol("x-opt-offset"): "448",
    Symbol("x-opt-enqueued-time"): Timestamp(1_767_225_600_123),
    Symbol("x-opt-partition-key"): "möwe",
}
CHAR = Raw(b"\x73\x00\x01\xf4\x69")
SHORT = Raw(b"\xc0\x01\x01")  # a list that says it has an element, and ends
read_message = reader_over(decode_payload)


def section(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))


HEADER, ANNOTATIONS, DATA = section(0x70, [True, 4, 1_000]), section(0x72, STAMPS), section(0x75, b"body")
PROPERTIES, OURS = section(0x73, ["id-1", b"user", "to", "subject"]), section(0x74, {"a": 1})


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


def test_sections_come_in_any_order_and_with_wide_descriptors() -> None:
    wide = b"\x00\x80" + (0x74).to_bytes(8) + encode({"a": 1})
    found = event_of(HEADER, DATA, wide, section(0x75, b" too"), ANNOTATIONS)
    assert (found.body, found.properties) == (b"body too", {"a": 1})
    data = b"\x00\x80" + (0x75).to_bytes(8) + encode(b"body")
    assert event_of(data, ANNOTATIONS).body == b"body"


@pytest.mark.parametrize(
    "value", [CHAR, SHORT, Raw(b"\x74\x31\x80\x00\x6e"), Raw(b"\xd1\x00\x00\x00\x05\x00\x00\x00\x02\x45")]
)
def test_an_annotation_that_the_sdk_cannot_read_leaves_the_stamps_and_the_properties(value: Raw) -> None:
    items = [encode(one) for pair in STAMPS.items() for one in pair]
    own = [encode(Symbol("x-opt-own")), value]
    for written in ([*own, *items], [*items, *own]):
        annotations = b"\x00\x53\x72" + encode_map(written)
        found = event_of(annotations, section(0x73, ["id"]), OURS, DATA)
        assert (found.sequence_number, found.partition_key, found.body) == (7, "möwe", b"body")
        assert (found.enqueued_at.microsecond, found.properties) == (123_000, {"a": 1})


def test_properties_that_cannot_be_read_are_unread_and_the_body_is_whole() -> None:
    deep: Any = "deep"
    for _ in range(200):
        deep = [deep]
    found = event_of(ANNOTATIONS, section(0x74, {"a": deep}), DATA)
    assert isinstance(found.properties, Unread)
    assert found.body == b"body"


def test_a_body_of_sequences_and_a_value_are_json_and_null_or_none_are_empty() -> None:
    sequences = section(0x76, [1, "a"]), section(0x76, [b"\x00"])
    assert event_of(ANNOTATIONS, *sequences).body == b'[1,"a",{"$binary":"AA=="}]'
    assert event_of(ANNOTATIONS, section(0x77, {"a": float("nan")})).body == b'{"a":{"$double":"NaN"}}'
    for sections in ([section(0x77, None)], [], [section(0x75, None)], [OURS, section(0x75, None)]):
        assert event_of(ANNOTATIONS, *sections).body == b""


@pytest.mark.parametrize("message", [section(0x74, {"status-code": 202}) + section(0x77, {"name": "hub"}), DATA])
def test_an_answer_of_the_hub_is_read_as_the_sdk_reads_it(message: bytes) -> None:
    assert read_message(memoryview(message)) == decode_payload(memoryview(message))


@pytest.fixture
def drafted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The SDK's own function, which the test finds in place."""
    changed = vars(EventData)["_from_message"].__func__
    own = getattr(changed, "original", EventData._from_message)
    with monkeypatch.context() as patched:
        patched.setattr(EventData, "_from_message", own)
        yield own


def test_the_sdk_is_changed_once(drafted: Any) -> None:
    modules: list[Any] = [import_module(name) for name in RECEIVERS]
    found = []
    for _ in range(2):
        sdk_patches.keep_values_encoded()
        make_events_at_once()
        found.append([*(module.decode_payload for module in modules), vars(EventData)["_from_message"]])
    assert found[0] == found[1]
    *changed, made = found[0]
    assert all(one.original is decode_payload for one in changed)
    assert made.__func__.original == drafted


def seen(event: Any) -> dict[str, Any]:
    """All that a caller can see of an event."""
    names = [name for name in dir(type(event)) if not name.startswith("_") and name != "message"]
    values = {name: getattr(event, name) for name in names}
    texts = {name: value for name, value in values.items() if not callable(value)}
    annotated: AmqpAnnotatedMessage = texts.pop("raw_amqp_message")
    texts["body"] = [bytes(one) for one in event.body] if event.body_type == "data" else event.body
    return {**texts, "annotated": {name: str(value) for name, value in vars(annotated).items()}, "text": str(event)}


@pytest.mark.parametrize(
    "octets",
    [
        ANNOTATIONS + DATA,
        HEADER + ANNOTATIONS + PROPERTIES + OURS + DATA + DATA,
        ANNOTATIONS + section(0x77, "value"),
        DATA,
    ],
)
def test_an_event_made_at_once_is_the_one_that_the_sdk_makes(octets: bytes, drafted: Any) -> None:
    message = decode_payload(memoryview(octets))
    expected = drafted(message)
    make_events_at_once()
    made = EventData._from_message(message)
    assert type(made) is EventData
    assert vars(made).keys() == vars(expected).keys()
    assert seen(made) == seen(expected)
    assert made._message is message
    if octets.startswith(ANNOTATIONS):
        assert to_event(made) == to_event(expected)
    annotated = AmqpAnnotatedMessage(message=message)  # a message that is annotated already is kept
    assert EventData._from_message(message, raw_amqp_message=annotated).raw_amqp_message is annotated


def test_a_different_version_of_the_sdk_is_left_as_it_is(drafted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    transport = import_module(shortcuts.TRANSPORT)
    monkeypatch.setattr(transport, "asyncio", asyncio)
    monkeypatch.setattr(shortcuts, "KNOWN", "5.14.")
    take_shortcuts()
    assert EventData._from_message == drafted
    assert transport.asyncio is asyncio
    monkeypatch.undo()
    take_shortcuts()
    assert EventData._from_message != drafted


FLOW = encode(Described(ULong(0x13), [0, 10, 0, 10]))
FRAME = (len(FLOW) + 8).to_bytes(4, "big") + b"\x02\x00\x00\x05" + FLOW
CHANNEL, CODE = 5, 0x13


@pytest.fixture(params=["shortcut", "the SDK's own"])
def wait(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transports read with the shortcut, and without."""
    module = import_module(shortcuts.TRANSPORT)
    monkeypatch.setattr(module, "asyncio", asyncio)
    if request.param == "shortcut":
        read_without_tasks()
        assert (module.asyncio is asyncio) is not shortcuts.TASK_PER_WAIT


def transport() -> Any:
    made: Any = AsyncTransport("localhost")
    made.reader = asyncio.StreamReader()
    return made


@pytest.mark.asyncio
@pytest.mark.parametrize("cut", [0, 1, 7, 8, 9, len(FRAME) - 1])
async def test_a_frame_that_comes_late_is_read_by_the_next_call(wait: None, cut: int) -> None:
    reader = transport()
    reader.reader.feed_data(FRAME[:cut])
    async with asyncio.timeout(allowed(20)):
        assert await reader.receive_frame(timeout=MOMENT) == (None, None)
    reader.reader.feed_data(FRAME[cut:] + FRAME)
    for _ in range(2):
        channel, (code, fields) = await reader.receive_frame(timeout=MOMENT)
        assert (channel, code, fields[:4]) == (CHANNEL, CODE, [0, 10, 0, 10])


@pytest.mark.asyncio
async def test_a_reader_that_is_cancelled_amid_a_frame_loses_none_of_it(wait: None) -> None:
    reader = transport()
    reader.reader.feed_data(FRAME[:11])
    reading = asyncio.ensure_future(reader.receive_frame(timeout=None))
    await asyncio.sleep(MOMENT)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    reader.reader.feed_data(FRAME[11:] + FRAME[:11])
    assert (await reader.receive_frame(timeout=None))[0] == CHANNEL
    reader.reader.feed_eof()
    with pytest.raises(OSError, match="closed"):
        await reader.receive_frame(timeout=None)

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any, cast

import pytest
from azure.eventhub import EventData
from azure.eventhub._pyamqp._decode import decode_payload
from azure.eventhub._pyamqp.aio._connection_async import Connection
from azure.eventhub._pyamqp.aio._transport_async import AsyncTransport
from azure.eventhub._pyamqp.constants import ConnectionState
from azure.eventhub._pyamqp.message import Message
from azure.eventhub.amqp import AmqpAnnotatedMessage
from hypothesis import given, settings
from hypothesis import strategies as st

from core.model.property_values import Unread
from core.remote.hub import sdk_patches
from core.remote.hub import sdk_patches as shortcuts
from core.remote.hub.events import to_event
from core.remote.hub.sdk_patches import RECEIVERS, make_events_at_once, reader_over, take_frames_at_once, take_shortcuts
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
STAMPED = section(0x72, {**STAMPS, Symbol("x-opt-sequence-number"): 71_234})  # a long of eight bytes, as most are
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


@pytest.mark.parametrize("more", [b"", b"\0", DATA, OURS])
def test_an_event_without_more_is_read_as_the_sdk_reads_it(more: bytes) -> None:
    """Of any other event, the shortcut reads nothing."""
    whole = STAMPED + DATA + more
    for at, octet in product(range(len(whole)), range(256)):
        sent = memoryview(whole[:at] + bytes((octet,)) + whole[at + 1 :])
        plain = sdk_patches._plain_event(sent)
        if plain is not None:
            assert decode_payload(sent) == Message(message_annotations=plain[0], data=[plain[1]]), (at, octet)
    assert (sdk_patches._plain_event(memoryview(whole)) is None) is bool(more)
    assert not any(sdk_patches._plain_event(memoryview(whole)[:cut]) for cut in range(len(STAMPED + DATA)))


@pytest.mark.parametrize("size", [0, 255, 256, 100_000])
def test_data_of_each_length_is_read_as_the_sdk_reads_it(size: int) -> None:
    sent = memoryview(STAMPED + section(0x75, b"x" * size))
    assert sdk_patches._plain_event(sent) is not None
    assert read_message(sent) == decode_payload(sent)


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
    assert seen(made) == seen(expected)
    assert vars(made).keys() == vars(expected).keys()  # the message is annotated since it was read
    assert made._message is message
    if octets.startswith(ANNOTATIONS):
        assert to_event(made) == to_event(expected)
    annotated = AmqpAnnotatedMessage(message=message)  # a message that is annotated already is kept
    assert EventData._from_message(message, raw_amqp_message=annotated).raw_amqp_message is annotated


def test_a_different_version_of_the_sdk_is_left_as_it_is(drafted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    own = getattr(Connection._read_frame, "original", Connection._read_frame)
    monkeypatch.setattr(Connection, "_read_frame", own)
    monkeypatch.setattr(shortcuts, "KNOWN", "5.14.")
    take_shortcuts()
    assert EventData._from_message == drafted
    assert Connection._read_frame is own
    monkeypatch.undo()
    take_shortcuts()
    assert EventData._from_message != drafted
    assert getattr(Connection._read_frame, "original", None) is own


def frame(performative: int, fields: Sequence[Any], head: bytes = b"\x02\x00", more: bytes = b"") -> bytes:
    octets = encode(Described(ULong(performative), list(fields))) + more
    return (len(octets) + 8).to_bytes(4, "big") + head + b"\x00\x05" + octets


FLOW, EMPTY = frame(0x13, [0, 10, 0, 10]), b"\x00\x00\x00\x08\x02\x00\x00\x00"
TRANSFER = frame(0x14, [0, 1, b"tag", 0, True, False], more=ANNOTATIONS + DATA)
NESTED = frame(0x14, [0, 1, b"tag", 0, True, False], more=ANNOTATIONS + section(0x75, FLOW))
OTHERS = frame(0x13, [0], head=b"\x02\x01"), frame(0x13, [0], head=b"\x03\x00"), b"AMQP\x00\x01\x00\x00"
FRAMES = FLOW, TRANSFER, NESTED, EMPTY, *OTHERS  # a wrong type, a longer head, and a header of the protocol


class Frames(Connection):
    """A connection whose reader the test feeds. It notes the frames that it would process."""

    def __init__(self) -> None:
        super().__init__("amqp://localhost", socket_timeout=MOMENT)
        self._transport: Any = AsyncTransport("localhost")
        self._transport.reader = self.reader = asyncio.StreamReader()
        self.taken: list[Any] = []

    async def _process_incoming_frame(self, channel: int, found: Any) -> bool:
        if found is not None:
            code, fields = found
            self.taken.append((channel, code, [bytes(one) if isinstance(one, memoryview) else one for one in fields]))
        return found is None


@pytest.fixture(params=["shortcut", "the SDK's own"])
def reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections read with the shortcut, and without."""
    take_frames_at_once()
    if request.param != "shortcut":
        own: Any = Connection._read_frame
        monkeypatch.setattr(Connection, "_read_frame", own.original)


@pytest.mark.asyncio
@pytest.mark.parametrize("cut", [0, 1, 7, 8, 9, len(FLOW) - 1])
async def test_a_frame_that_comes_late_is_read_by_the_next_call(reading: None, cut: int) -> None:
    frames = Frames()
    frames.reader.feed_data(FLOW[:cut])
    async with asyncio.timeout(allowed(20)):
        assert await frames._read_frame(wait=MOMENT)
    frames.reader.feed_data(FLOW[cut:] + FLOW)
    for _ in range(2):
        assert not await frames._read_frame(wait=MOMENT)
    assert [(channel, code, fields[:4]) for channel, code, fields in frames.taken] == 2 * [(5, 0x13, [0, 10, 0, 10])]


@pytest.mark.asyncio
async def test_a_reader_that_is_cancelled_amid_a_frame_loses_none_of_it(reading: None) -> None:
    frames = Frames()
    frames.reader.feed_data(FLOW[:11])
    waiting = asyncio.ensure_future(frames._read_frame(wait=True))
    await asyncio.sleep(MOMENT)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    frames.reader.feed_data(FLOW[11:] + FLOW[:11])
    assert not await frames._read_frame(wait=True)
    frames.reader.feed_eof()
    with pytest.raises(OSError, match="closed"):
        await frames._read_frame(wait=True)


@pytest.mark.asyncio
async def test_a_frame_waits_for_the_task_that_has_the_connection(reading: None) -> None:
    frames = Frames()
    frames.reader.feed_data(FLOW)
    async with frames._transport.socket_lock:
        assert await frames._read_frame(wait=MOMENT)
    assert not frames.taken
    assert not await frames._read_frame(wait=MOMENT)


@pytest.mark.asyncio
async def test_two_tasks_that_read_process_the_frames_in_their_order(reading: None) -> None:
    """The SDK keeps an idle link alive from a task of its own, which reads too."""
    frames = Frames()
    frames.state = ConnectionState.OPENED
    tasks = [asyncio.ensure_future(frames.listen(wait=MOMENT, batch=300)) for _ in range(2)]
    await asyncio.sleep(0)
    for number in range(10):
        frames.reader.feed_data(frame(0x13, [number, 10, 0, 10]))
        if number % 3 == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert [fields[0] for _, _, fields in frames.taken] == list(range(10))


@pytest.mark.asyncio
async def test_a_frame_of_a_type_that_was_not_asked_for_is_refused(reading: None) -> None:
    frames = Frames()
    frames.reader.feed_data(FLOW)
    with pytest.raises(ValueError, match="expected: 1"):
        await frames._read_frame(wait=True, verify_frame_type=1)


@pytest.mark.asyncio
async def test_a_peer_that_was_held_back_sends_again_once_the_buffer_has_room(reading: None) -> None:
    peer: list[str] = []
    frames = Frames()
    frames.reader = frames._transport.reader = asyncio.StreamReader(limit=len(FLOW))
    calls = {name: partial(peer.append, name) for name in ("pause_reading", "resume_reading")}
    frames.reader.set_transport(cast(asyncio.Transport, SimpleNamespace(**calls)))
    frames.reader.feed_data(3 * FLOW)
    for _ in range(2):
        await frames._read_frame(wait=True)
    assert peer == ["pause_reading", "resume_reading"]


@pytest.mark.asyncio
async def test_a_read_that_meets_the_end_of_the_connection_raises_its_fault(reading: None) -> None:
    frames = Frames()
    frames.reader.feed_data(FLOW)
    frames.reader.set_exception(ConnectionResetError("reset"))
    with pytest.raises(ConnectionResetError, match="reset"):
        await frames._read_frame(wait=True)
    frames = Frames()
    frames._transport.reader = None
    with pytest.raises(OSError, match="already been closed"):
        await frames._read_frame(wait=True)


def test_a_frame_in_a_frame_is_no_frame() -> None:
    take_frames_at_once()
    at = NESTED.index(FLOW)
    found = asyncio.run(read_in([NESTED[:at], NESTED[at:]], Connection._read_frame))
    assert [code for _, code, _ in found] == [0x14]


@given(st.lists(st.sampled_from(FRAMES), max_size=8), st.data())
@settings(max_examples=50)
def test_frames_in_any_pieces_are_those_that_the_sdk_reads(sent: list[bytes], data: st.DataObject) -> None:
    octets = b"".join(sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(octets)), max_size=4)))
    pieces = [octets[begin:end] for begin, end in pairwise((0, *cuts, len(octets)))]
    take_frames_at_once()
    shortcut: Any = Connection._read_frame
    assert asyncio.run(read_in(pieces, shortcut)) == asyncio.run(read_in(pieces, shortcut.original))


async def read_in(pieces: Sequence[bytes], read: Callable[..., Awaitable[bool]]) -> list[Any]:
    """Return the frames and faults of a connection whose peer sends a piece each time that a read has waited."""
    frames = Frames()
    for piece in pieces:
        frames.reader.feed_data(piece)
        while True:
            before = len(frames.taken)
            try:
                await read(frames, wait=0.001)
            except (ValueError, LookupError) as fault:
                frames.taken.append(repr(fault))
            if len(frames.taken) == before:
                break
    return frames.taken

"""Two shortcuts through azure-eventhub 5.15: values stay encoded until they are ours, and receiving costs half.

The SDK makes an empty event for each message, and throws it away. And for each frame that it reads, it sets a timer,
although most frames have come already. Both shortcuts are left out with a different version. requirements.txt pins this
one, and tests compare these events and frames with the SDK's own.

The SDK (azure-eventhub 5.15) decodes strings, symbols and binary values alike to bytes, timestamps to numbers, and
decimals wrongly. A char or a short decimal ends its reader, and with it the reading of the partition. Therefore its
receivers read messages with `read_message` of this module. docs/adr/0029-values-are-read-from-the-wire.md has the
reasons.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from core.remote.hub.amqp_values import NotReadable, end_of, items_of

KNOWN = "5.15."  # versions of the SDK
CONNECTION = "azure.eventhub._pyamqp.aio._connection_async"
_HEAD = struct.Struct(">IBBH")  # of a frame: its size, its own words, the frame's type, the channel
_PLAIN = (2, 0)  # words of a head without more, and the type of AMQP


def take_shortcuts() -> None:
    """Take both shortcuts for this process, unless the SDK has a different version. A second call changes nothing."""
    if import_module("azure.eventhub").__version__.startswith(KNOWN):
        make_events_at_once()
        take_frames_at_once()


def make_events_at_once() -> None:
    """Let EventData skip the empty event that it would throw away, and annotate its message when that is asked for."""
    event_data = import_module("azure.eventhub").EventData
    annotated = import_module("azure.eventhub.amqp").AmqpAnnotatedMessage
    original = event_data._from_message
    if hasattr(original, "original"):
        return

    def from_message(cls: Any, message: Any, raw_amqp_message: Any = None) -> Any:
        event = cls.__new__(cls)
        event._last_enqueued_event_properties = {}
        event._sys_properties = None
        event._uamqp_message = None
        event._message = message
        if raw_amqp_message:
            event._raw_amqp_message = raw_amqp_message
        return event

    from_message.original = original  # type: ignore[attr-defined]
    event_data._from_message = classmethod(from_message)
    event_data._raw_amqp_message = made_when_read = cached_property(lambda event: annotated(message=event._message))
    made_when_read.__set_name__(event_data, "_raw_amqp_message")


def take_frames_at_once() -> None:
    """Let a connection take a frame that its transport holds whole, without a timer and five coroutines."""
    connection: Any = import_module(CONNECTION).Connection
    original = connection._read_frame
    if hasattr(original, "original"):
        return
    decode = import_module("azure.eventhub._pyamqp._decode").decode_frame

    async def read_frame(self: Any, wait: bool | float = True, **options: Any) -> bool:
        reads = getattr(self, "_reads", 0)  # of the SDK under way: in Python 3.11 one ends some turns after its frame
        frame = None if options or reads else _buffered_frame(self._transport)
        if frame is not None:
            return cast(bool, await self._process_incoming_frame(frame[0], decode(frame[1])))
        self._reads = reads + 1
        try:
            return cast(bool, await original(self, wait, **options))
        finally:
            self._reads -= 1

    read_frame.original = original  # type: ignore[attr-defined]
    connection._read_frame = read_frame


def _buffered_frame(transport: Any) -> tuple[int, memoryview] | None:
    """Take the channel and the payload of the next frame out of the buffer. None leaves the frame to the SDK.

    The SDK reads frames that are not whole, empty, or no frames of AMQP, and whatever is in question.
    """
    reader = getattr(transport, "reader", None)
    if reader is None or transport.socket_lock.locked() or reader._exception is not None:
        return None
    buffer, kept = reader._buffer, transport._read_buffer  # a reading that was cut off leaves its bytes in the second
    if len(buffer) < _HEAD.size or kept.tell() < len(kept.getbuffer()):
        return None
    size, words, kind, channel = _HEAD.unpack_from(buffer)
    if not _HEAD.size < size <= len(buffer) or (words, kind) != _PLAIN:
        return None
    payload = memoryview(buffer[_HEAD.size : size])
    del buffer[:size]
    reader._maybe_resume_transport()
    return channel, payload


RECEIVERS = ("azure.eventhub._pyamqp.receiver", "azure.eventhub._pyamqp.aio._receiver_async")
HEADER, ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES, DATA, SEQUENCE, VALUE = 0x70, 0x72, *range(0x73, 0x78)
STAMPS = (b"x-opt-sequence-number", b"x-opt-offset", b"x-opt-enqueued-time", b"x-opt-partition-key")
_COMPOUNDS = frozenset((dict, list))  # the SDK may lose its place in one, and what it read after that is wrong
_READ_BY_SDK = frozenset((HEADER, PROPERTIES, DATA))
_FAILURES = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error)
_NULL = 0x40
_SHORT_ANNOTATIONS, _DATA = b"\x00\x53\x72\xc1", b"\x00\x53\x75"  # a map of at most 255 bytes; a section of data
_SYMBOL, _STRING, _LONG = 0xA3, 0xA1, struct.Struct(">q")  # a long is a number, or the milliseconds of a time
_KINDS = dict(zip(STAMPS, (0x81, _STRING, 0x83, _STRING), strict=True))  # the constructors of most
_BINARY = {0xA0: 2, 0xB0: 5}  # the bytes of its constructor and length
_SMALL = b"\x00\x53"  # a descriptor of one byte; the SDK expects no other
_DESCRIPTORS = {_SMALL: 1, b"\x00\x80": 8}  # the widths of numbers that describe a section

ReadMessage = Callable[[memoryview], Any]


class Encoded(dict[Any, Any]):
    """A value that is still encoded. To the SDK it is a map of what it could decode: annotations, or nothing."""

    def __init__(self, raw: bytes, decoded: Mapping[Any, Any] = MappingProxyType({})) -> None:
        super().__init__(decoded)
        self.raw = raw

    def __bool__(self) -> bool:
        return True


class Whole(dict[Any, Any]):
    """The annotations of a message that has more than the hub's stamps, as the SDK decodes them, and its bytes."""

    def __init__(self, payload: bytes, decoded: Mapping[Any, Any]) -> None:
        super().__init__(decoded)
        self.payload = payload

    @property
    def raw(self) -> bytes:
        """The encoded map of the annotations. Raises NotReadable."""
        return next(self.payload[one.value : one.end] for one in sections_of(self.payload) if one.code == ANNOTATIONS)


class Section(NamedTuple):
    """The place of a section in a message: its code, the start of its value, and its end."""

    code: int
    value: int
    end: int


def keep_values_encoded() -> None:
    """Let the SDK's receivers read events with `read_message`, for this process. A second call changes nothing."""
    for module in map(import_module, RECEIVERS):
        original: Any = vars(module)["decode_payload"]
        if not hasattr(original, "original"):
            vars(module)["decode_payload"] = reader_over(original)


def reader_over(original: ReadMessage) -> ReadMessage:
    """Return a function that leaves the values of an event encoded, and reads any other message as the SDK does."""
    message_class = import_module("azure.eventhub._pyamqp.message").Message

    def read_message(payload: memoryview) -> Any:
        plain = _plain_event(payload)
        if plain is not None:
            return message_class(message_annotations=plain[0], data=[plain[1]])
        message = None
        with suppress(*_FAILURES):
            message = original(payload)
        if message is not None and message.data and message.application_properties is None:
            found = message.message_annotations or {}
            if _COMPOUNDS.isdisjoint(map(type, found.values())):  # the SDK decodes all other values rightly
                return _whole(message, payload)
        with suppress(*_FAILURES):
            sections = sections_of(payload)
            stamped = message if _is_stamped(message) else _without_values(payload, sections, original)
            if _is_stamped(stamped):
                return _whole(stamped, payload, _values(payload, sections))
        return original(payload) if message is None else _whole(message, payload)

    read_message.original = original  # type: ignore[attr-defined]
    return read_message


def _plain_event(payload: memoryview) -> tuple[dict[bytes, Any], bytes] | None:
    """Return the stamps and the data of an event that has nothing else, as most have. None leaves it to the SDK."""
    if payload[:4] != _SHORT_ANNOTATIONS:
        return None
    try:
        end = 5 + payload[4]  # of the annotations
        head, at, found = bytes(payload[: end + 8]), 6, {}
        while at < end and head[at] == _SYMBOL:
            begin = at + 2 + head[at + 1]
            name, kind = head[at + 2 : begin], head[begin]
            if _KINDS[name] != kind:
                return None
            if kind == _STRING:
                at = begin + 2 + head[begin + 1]
                found[name] = head[begin + 2 : at]
            else:
                at = begin + 9
                (found[name],) = _LONG.unpack_from(head, begin + 1)
        start = end + 3 + _BINARY[head[end + 3]]
    except _FAILURES:
        return None
    data = bytes(payload[start:])
    is_whole = at == end and head[5] == 2 * len(found) and head[end : end + 3] == _DATA
    is_long = len(payload) >= start and len(data) == int.from_bytes(head[end + 4 : start])
    return (found, data) if is_whole and is_long else None


def _whole(message: Any, payload: memoryview, values: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Return the message of an event with its bytes, and with other values. An answer of the hub stays unchanged."""
    found = message.message_annotations or {}
    if STAMPS[0] not in found:
        return message
    return message._replace(message_annotations=Whole(bytes(payload), found), **values)


def _is_stamped(message: Any) -> bool:
    return message is not None and STAMPS[0] in (message.message_annotations or ())


def _without_values(payload: memoryview, sections: Sequence[Section], original: ReadMessage) -> Any:
    """Return the message of the hub's stamps and the sections that mostly hold no other value, or of the data."""
    stamps = b"".join(
        _SMALL + bytes((ANNOTATIONS,)) + _stamps(bytes(payload[one.value : one.end]))
        for one in sections
        if one.code == ANNOTATIONS
    )
    try:
        return original(_message(payload, stamps, (one for one in sections if one.code in _READ_BY_SDK)))
    except _FAILURES:
        return original(_message(payload, stamps, (one for one in sections if one.code == DATA)))


def _message(payload: memoryview, stamps: bytes, sections: Iterable[Section]) -> memoryview:
    parts = [_SMALL + bytes((one.code,)) + payload[one.value : one.end] for one in sections]
    return memoryview(stamps + b"".join(parts))


def _values(payload: memoryview, sections: Sequence[Section]) -> dict[str, Any]:
    """Return the data of a message, and the parts that stay encoded, under the SDK's names."""
    found: dict[str, Any] = {}
    for code, value, end in sections:
        if code == DATA and payload[value] in _BINARY:  # the SDK may have lost its place in a bad map before it
            found.setdefault("data", []).append(bytes(payload[value + _BINARY[payload[value]] : end]))
        elif code == SEQUENCE:
            found.setdefault("sequence", []).append(Encoded(bytes(payload[value:end])))
        elif code == VALUE and payload[value] != _NULL:  # to the trigger a value of null is no body
            found["value"] = Encoded(bytes(payload[value:end]))
        elif code == APPLICATION_PROPERTIES:
            found["application_properties"] = Encoded(bytes(payload[value:end]))
    return found


def sections_of(payload: bytes | memoryview) -> list[Section]:
    """Return the sections of a message. Raises NotReadable when it is not a sequence of sections."""
    found: list[Section] = []
    at = 0
    while at < len(payload):
        width = _DESCRIPTORS.get(bytes(payload[at : at + 2]))
        if width is None:
            raise NotReadable("the message is not a sequence of sections")
        value = at + 2 + width
        at = end_of(payload, value)
        if at > len(payload):
            raise NotReadable("a section runs past the end")
        found.append(Section(payload[value - 1], value, at))
    return found


def _stamps(annotations: bytes) -> bytes:
    """Return the encoded map of the hub's stamps alone, without decoding the other annotations."""
    items = items_of(annotations)
    stamps = [name + each for name, each in zip(items[::2], items[1::2], strict=True) if name[2:] in STAMPS]
    body = b"".join(stamps)
    return b"\xd1" + struct.pack(">II", len(body) + 4, 2 * len(stamps)) + body

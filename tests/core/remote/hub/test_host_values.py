import json
import pickle
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData
from azure.eventhub._pyamqp.message import Message
from azure.functions.eventhub import EventHubTriggerConverter
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from core.model.event_keys import kafka_header, kafka_key
from core.model.events import Event
from core.model.property_values import Described, Unread
from core.remote.hub.amqp_values import read_value
from core.remote.hub.events import to_event, to_host_event
from core.remote.hub.host_values import host_value, why_undeliverable
from core.remote.hub.sdk_patches import Encoded
from handlers.event_batches import to_batch
from local.event_hubs.codec import Described as Written
from local.event_hubs.codec import Float, Int, Raw, Symbol, Timestamp, ULong, decode, encode, encode_map
from local.functions_host.event_hub_inputs import TriggerContext, event_hub_inputs, json_value
from local.functions_host.event_source import HubAddress
from local.functions_host.sdk_events import to_hub_event
from tests.fakes import trigger_events
from tests.local.functions_host.test_event_hub_inputs import VALUES


@pytest.mark.parametrize("case", VALUES)
def test_a_value_is_the_one_that_the_host_makes(case: str) -> None:
    raw = encode(VALUES[case][0])
    found, host = host_value(read_value(raw)[0]), json_value(decode(raw)[0])
    assert (type(found), found) == (type(host), host)


def test_an_event_is_the_one_that_the_real_trigger_gave() -> None:
    rows = trigger_events.delivered()
    assert len(rows) == 91 + 50
    found = {one.name: _told(to_host_event(trigger_events.received(one.message))) for one in rows}
    assert found == {one.name: _told(one.event()) for one in rows}  # the texts tell types and order


def _told(event: Event) -> str:
    return f"{structs.replace(event, annotations=None)} {sorted(event.system_properties.items())}"


def test_system_properties_are_those_of_the_real_trigger_in_the_own_reader_and_in_the_local_host() -> None:
    """81 messages of every form, with the texts that came over the wire of the real host."""
    rows = trigger_events.annotated_events()
    assert len(rows) == 81
    for one in rows:
        read = trigger_events.received(one.message)
        inputs = event_hub_inputs(CONTEXT, [to_hub_event(read)], checkpoints=True)
        (found,) = json.loads(inputs.trigger_metadata["SystemPropertiesArray"].value)
        assert list(found.items()) == list(one.system_properties.items()), one.name
        ours, worker = to_host_event(read), to_event(read)
        given = structs.replace(ours, annotations=one.system_properties)
        assert ours.sent_annotations == worker.sent_annotations == given.sent_annotations, one.name
        assert ours.system_properties == worker.system_properties == given.system_properties, one.name
        assert pickle.loads(pickle.dumps(ours)).system_properties == ours.system_properties


def test_a_kafka_producer_s_key_and_headers_are_the_same_bytes_in_trigger_own_reader_and_worker() -> None:
    """The events are from the real host. It gives binary values as base64, which is a text like any other."""
    keys, headers = set[bytes | None](), list[bytes | None]()
    for row in trigger_events.annotated_events():
        ours, worker = (convert(trigger_events.received(row.message)) for convert in (to_host_event, to_event))
        found = {kafka_key(each) for each in (ours, worker, structs.replace(ours, annotations=row.system_properties))}
        assert len(found) == 1, row.name
        keys |= found
    assert keys == {None, b"", b"key-1", b"\0\xff\x10"}
    for one in trigger_events.delivered():
        read = trigger_events.received(one.message)
        trigger, *others = ways = one.event(), to_host_event(read), to_event(read)
        sent = {name: value for name, value in others[1].properties.items() if isinstance(value, bytes | str)}
        for name in (each for each in sent if not {"\ufffd", "?"} & {*str(trigger.properties[each])}):  # lost there
            found = {kafka_header(each, name) for each in ways}
            assert len(found) == 1, (one.name, name, found)
            headers += found
    assert {b"\1\xff", b"\1\2\xff"} < set(headers) and None not in headers and len(headers) > 100


PLAIN: dict[str, object] = {"case": "x", "v": 1}
OK = b'{"ok":1}'
UNDELIVERABLE: dict[str, tuple[bytes, object]] = {
    "body value string": (b'"text"', PLAIN),
    "body value binary": (b'{"$binary":"YWJj"}', PLAIN),
    "body value map": (b'{"k":1}', PLAIN),
    "two sequences": (b"[1,2]", PLAIN),
    "prop empty map": (OK, {"case": "x", "v": {}}),
    "prop described ulong": (OK, {"v": Described(0x99, "x")}),
    "prop bad com.microsoft:uri": (OK, {"v": "http://["}),
    "prop bad datetime-offset": (OK, {"v": Described("com.microsoft:datetime-offset", -5)}),
    "prop char > BMP": (OK, {"v": "\U0001f600"}),
    "prop char invalid 0x110000": (OK, Unread("amqp", "wQkCoQF2cwARAAA=")),
    "prop decimal64": (OK, {"v": 1.0}),
    "props odd count": (OK, Unread("amqp", "wQQBoQFr")),
    "message-id int (not allowed)": (OK, {}),
    "message-id list (not allowed)": (OK, {}),
    "user-id string (not allowed)": (OK, {}),
    "content-type string (not symbol)": (OK, {}),
    "absolute-expiry as string": (OK, {}),
    "key int": (OK, {}),
    "footer map in map": (OK, PLAIN),
}


def test_an_event_that_the_real_trigger_cannot_deliver_is_read() -> None:
    rows = [one for one in trigger_events.published() if one.fate != "delivered"]
    found = {one.name: to_host_event(trigger_events.received(one.message)) for one in rows}
    deep = found.pop("prop nested 200 lists")
    assert isinstance(deep.properties, Unread) and deep.body == OK
    assert {name: (event.body, event.properties) for name, event in found.items()} == UNDELIVERABLE


INSIDE = {
    "text": ("a", "a"),
    "symbol": (Symbol("a"), {"Value": "a", "ValueSize": 1}),
    "symbol that is not ASCII": (Raw(b"\xa3\x02\xff\xfe"), {"Value": "??", "ValueSize": 2}),
    "string that is not UTF-8": (Raw(b"\xa1\x01\xff"), "\ufffd"),
    "binary": (b"\x00\xff", [0, 255]),
    "described": (Written(Symbol("t"), 5), {"Descriptor": {"Value": "t", "ValueSize": 1}, "Value": 5}),
    "map": ({"k": [b"\x01"]}, [{"Key": {"Key": "k"}, "Value": [[1]]}]),
    "timestamp": (Timestamp(-1), "1970-01-01T00:00:00Z"),
}


@pytest.mark.parametrize("case", INSIDE)
def test_an_element_of_a_list_is_the_object_of_the_library(case: str) -> None:
    written, expected = INSIDE[case]
    assert host_value(read_value(encode([written]))[0]) == [expected]


def test_decimals_that_are_not_finite_are_texts() -> None:
    assert [host_value(Decimal(each)) for each in ("NaN", "-Infinity", "1.10")] == ["NaN", "-Infinity", 1.1]


def received(properties: bytes | None) -> EventData:
    stamps = {b"x-opt-sequence-number": 41, b"x-opt-offset": b"2624", b"x-opt-enqueued-time": 1_767_225_600_123}
    given = None if properties is None else Encoded(properties)
    return EventData._from_message(Message(message_annotations=stamps, application_properties=given, data=[b"x"]))


def test_an_event_has_its_place_and_the_host_s_properties_with_plain_names() -> None:
    event = to_host_event(received(encode({"raw": b"\x00", Symbol("nested"): {"at": [b"\xff"]}})))
    assert (event.sequence_number, event.offset, event.body) == (41, "2624", b"x")
    assert event.enqueued_at - datetime(2026, 1, 1, tzinfo=event.enqueued_at.tzinfo) == timedelta(milliseconds=123)
    assert event.properties == {"raw": "AA==", "nested": {"at": [[255]]}}
    assert {type(name) for name in event.properties} == {str}
    assert to_host_event(received(None)).properties == {}
    assert to_host_event(received(b"\x99")).properties == Unread("amqp", "mQ==")


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.integers(-(2**31), 2**31 - 1).map(Int)
    | st.integers(0, 2**64 - 1).map(ULong)
    | st.floats()
    | st.floats(width=32).map(Float)
    | st.integers(-(2**63), 2**63 - 1).map(Timestamp)
    | st.uuids().map(lambda one: Raw(b"\x98" + one.bytes))
    | st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]).map(lambda c: Raw(b"\x73" + ord(c).to_bytes(4)))
    | st.binary(max_size=5)
    | st.text(st.characters(codec="utf-8"), max_size=5)
)
SYMBOLS = st.text(st.characters(codec="ascii"), max_size=5).map(Symbol)
BROKEN = st.binary(max_size=5).map(lambda raw: Raw(b"\xa1" + bytes((len(raw),)) + raw))
NESTED = st.recursive(
    LEAVES | SYMBOLS,
    lambda one: (
        st.lists(one, max_size=3)
        | st.dictionaries(SYMBOLS, one, max_size=3)
        | st.builds(Written, SYMBOLS | st.integers(0, 99).map(ULong), one)
    ),
    max_leaves=6,
)
KNOWN = (
    st.builds(Written, st.just(Symbol("com.microsoft:datetime-offset")), st.integers(0, 3_155_378_975_999_999_999))
    | st.builds(Written, st.just(Symbol("com.microsoft:timespan")), st.integers(-(2**63), 2**63 - 1))
    | st.builds(Written, st.just(Symbol("com.microsoft:uri")), SYMBOLS.map(str))
    | st.builds(Written, st.just(Symbol("other")), LEAVES)
)
NAMES = SYMBOLS | SYMBOLS.map(str) | st.none() | st.integers(2, 9).map(Int) | BROKEN
PAIRS = st.lists(st.tuples(NAMES, LEAVES | SYMBOLS | KNOWN | BROKEN | st.lists(NESTED, max_size=3)), max_size=4)
CONTEXT = TriggerContext(HubAddress("namespace", "hub", "group"), "1", "events", "BINARY")


@pytest.mark.slow
@given(PAIRS, PAIRS)
@example([("a", Float(2.0**-149)), ("a", 1)], [(Symbol("a"), Timestamp(-1)), (Symbol("a"), 1)])
@example([(None, [{"k": [b"\x00", Symbol("s")]}])], [(Symbol("a"), Written(Symbol("other"), 1))])
def test_properties_of_any_types_are_those_of_the_trigger_in_value_type_and_order(
    pairs: list[tuple[Any, Any]], annotations: list[tuple[Any, Any]]
) -> None:
    sections = [
        bytes((0, 0x53, code)) + encode_map([encode(each) for pair in given for each in pair])
        for code, given in ((0x72, annotations), (0x74, pairs))
    ]
    message = trigger_events.handed_out(b"".join(sections) + b"\x00\x53\x75" + encode(b"body"))
    inputs = event_hub_inputs(CONTEXT, [to_hub_event(trigger_events.received(message))], checkpoints=True)
    of_host = EventHubTriggerConverter.decode(inputs.inputs["events"], trigger_metadata=inputs.trigger_metadata)
    (expected,) = to_batch(of_host, "invocation-1").events
    assert _told(to_host_event(trigger_events.received(message))) == _told(expected)


_FIXTURE = Path(__file__).parents[3] / "fixtures" / "trigger_messages.json"
TRIED: list[dict[str, Any]] = [
    one for one in json.loads(_FIXTURE.read_text(encoding="utf-8")) if isinstance(one["message"], str)
]
REASONS = {
    "body value string": "its body is an AMQP value, not data",
    "body value binary": "its body is an AMQP value, not data",
    "body value map": "its body is an AMQP value, not data",
    "two sequences": "its body is an AMQP sequence, not data",
    "key int": "its partition key is no text",
    "prop empty map": "one property is a map",
    "prop described ulong": "one property is described by no symbol",
    "prop bad com.microsoft:uri": "one property is a URI that .NET cannot read",
    "prop bad datetime-offset": "one property is a time that .NET cannot read",
    "prop char > BMP": "one property is a char that .NET does not have",
    "prop char invalid 0x110000": "one property is a char that .NET does not have",
    "footer map in map": None,  # the SDK of Python hands out no footer
}


def reasons(*outcomes: str) -> dict[str, str | None]:
    tried = {one["name"]: bytes.fromhex(one["message"]) for one in TRIED if one["trigger"] in outcomes}
    events = {name: trigger_events.received(trigger_events.handed_out(raw)) for name, raw in tried.items()}
    return {name: why_undeliverable(event) for name, event in events.items()}


def test_each_event_at_which_the_trigger_stands_has_its_reason_and_no_other() -> None:
    assert reasons("binding fails", "reader stops") == REASONS
    found = reasons("delivered", "dropped in silence")
    assert len(found) > 50
    assert {name: reason for name, reason in found.items() if reason} == {}


def with_property(raw: str) -> Any:
    octets = bytes.fromhex("a10176" + raw)
    properties = bytes([0x00, 0x53, 0x74, 0xC1, len(octets) + 1, 2]) + octets
    return trigger_events.received(trigger_events.handed_out(properties + bytes.fromhex("005375a0027b7d")))


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("73000000e9", None),  # a char of two bytes
        ("730000ffff", None),
        ("7300010000", "one property is a char that .NET does not have"),
        ("730000d800", "one property is a char that .NET does not have"),  # half of a pair
        ("00a10178a10179", "one property is described by no symbol"),
        ("c10100", "one property is a map"),
        ("d10000000400000000", "one property is a map"),
        ("45", None),  # a list
    ],
)
def test_a_property_has_a_reason_by_its_type(raw: str, reason: str | None) -> None:
    assert why_undeliverable(with_property(raw)) == reason

"""core/remote/hub/host_values.py: an event that is read back looks as the trigger's did; what stops it is named."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData
from azure.eventhub._pyamqp.message import Message

from core.model.property_values import Described, Unread
from core.remote.hub.amqp_values import read_value
from core.remote.hub.host_values import host_value, to_host_event, why_undeliverable
from core.remote.hub.sdk_patches import Encoded
from local.event_hubs.codec import Described as Written
from local.event_hubs.codec import Raw, Symbol, Timestamp, decode, encode
from local.functions_host.event_hub_inputs import json_value
from tests.fakes import trigger_events
from tests.local.functions_host.test_event_hub_inputs import VALUES


@pytest.mark.parametrize("case", VALUES)
def test_a_value_is_the_one_that_the_host_makes(case: str) -> None:
    raw = encode(VALUES[case][0])
    found, host = host_value(read_value(raw)[0]), json_value(decode(raw)[0])
    assert (type(found), found) == (type(host), host)


@pytest.mark.parametrize("raw", ["72 7f7fffff", "72 00000001", "72 ff7fffff", "72 7fc00000", "72 3dcccccd"])
def test_a_float_of_any_size_is_the_one_that_the_host_makes(raw: str) -> None:
    written = bytes.fromhex(raw)
    assert host_value(read_value(written)[0]) == json_value(decode(written)[0])


def test_an_event_is_the_one_that_the_real_trigger_gave() -> None:
    rows = trigger_events.delivered()
    assert len(rows) == 91 + 50
    found = {one.name: repr(to_host_event(trigger_events.received(one.message))) for one in rows}
    assert found == {one.name: repr(one.event()) for one in rows}  # the texts tell types and order


UNDELIVERABLE: dict[str, tuple[bytes, object]] = {
    "body value string": (b'"text"', {"case": "x", "v": 1}),
    "body value binary": (b'{"$binary":"YWJj"}', {"case": "x", "v": 1}),
    "body value map": (b'{"k":1}', {"case": "x", "v": 1}),
    "two sequences": (b"[1,2]", {"case": "x", "v": 1}),
    "prop empty map": (b'{"ok":1}', {"case": "x", "v": {}}),
    "prop described ulong": (b'{"ok":1}', {"v": Described(0x99, "x")}),
    "prop bad com.microsoft:uri": (b'{"ok":1}', {"v": "http://["}),
    "prop bad datetime-offset": (b'{"ok":1}', {"v": Described("com.microsoft:datetime-offset", -5)}),
    "prop char > BMP": (b'{"ok":1}', {"v": "\U0001f600"}),
    "prop char invalid 0x110000": (b'{"ok":1}', Unread("amqp", "wQkCoQF2cwARAAA=")),
    "prop decimal64": (b'{"ok":1}', {"v": 1.0}),
    "props odd count": (b'{"ok":1}', Unread("amqp", "wQQBoQFr")),
    **dict.fromkeys(
        (
            "message-id int (not allowed)",
            "message-id list (not allowed)",
            "user-id string (not allowed)",
            "content-type string (not symbol)",
            "absolute-expiry as string",
            "key int",
        ),
        (b'{"ok":1}', {}),
    ),
    "footer map in map": (b'{"ok":1}', {"case": "x", "v": 1}),
}
TOO_DEEP = "prop nested 200 lists"


def test_an_event_that_the_real_trigger_cannot_deliver_is_read() -> None:
    rows = [one for one in trigger_events.published() if one.fate != "delivered"]
    found = {one.name: to_host_event(trigger_events.received(one.message)) for one in rows}
    deep = found.pop(TOO_DEEP)
    assert isinstance(deep.properties, Unread) and deep.body == b'{"ok":1}'
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


def test_an_event_has_its_place_and_the_host_s_properties() -> None:
    event = to_host_event(received(encode({"raw": b"\x00", "nested": {"at": [b"\xff"]}})))
    assert (event.sequence_number, event.offset, event.body) == (41, "2624", b"x")
    assert event.enqueued_at - datetime(2026, 1, 1, tzinfo=event.enqueued_at.tzinfo) == timedelta(milliseconds=123)
    assert event.properties == {"raw": "AA==", "nested": {"at": [[255]]}}


def test_properties_that_are_absent_or_unread_stay_so() -> None:
    assert to_host_event(received(None)).properties == {}
    assert to_host_event(received(b"\x99")).properties == Unread("amqp", "mQ==")


def test_a_name_that_is_a_symbol_is_a_plain_text() -> None:
    found = to_host_event(received(encode({Symbol("s"): Symbol("v")}))).properties
    assert [(type(name), type(value)) for name, value in found.items()] == [(str, str)]


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


def test_each_event_at_which_the_trigger_stands_has_its_reason() -> None:
    assert reasons("binding fails", "reader stops") == REASONS


def test_no_event_that_the_trigger_delivers_or_drops_has_a_reason() -> None:
    found = reasons("delivered", "dropped in silence")
    assert len(found) > 50
    assert {name: reason for name, reason in found.items() if reason} == {}


def with_property(raw: str) -> Any:
    """Return an event with one property, whose encoded value is given in hexadecimal."""
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

"""core/remote/hub/host_values.py: an event that is read back looks as the trigger's did, of every type."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from azure.eventhub import EventData
from azure.eventhub._pyamqp.message import Message

from core.model.values import Unread, encode_properties
from core.remote.hub.amqp_values import read_value
from core.remote.hub.host_values import host_value, to_host_event
from core.remote.hub.wire import Encoded
from local.event_hubs.codec import decode, encode
from local.functions_host.json_net import json_value
from tests.fakes import trigger_events
from tests.unit.local.functions_host.test_json_net import VALUES


@pytest.mark.parametrize("case", VALUES)
def test_a_value_is_the_one_that_the_host_makes(case: str) -> None:
    raw = encode(VALUES[case][0])
    found, host = host_value(read_value(raw)[0]), json_value(decode(raw)[0])
    assert (type(found), found) == (type(host), host)


@pytest.mark.parametrize("raw", ["72 7f7fffff", "72 00000001", "72 ff7fffff", "72 7fc00000", "72 3dcccccd"])
def test_a_float_of_any_size_is_the_one_that_the_host_makes(raw: str) -> None:
    written = bytes.fromhex(raw)
    assert host_value(read_value(written)[0]) == json_value(decode(written)[0])


# symbols that are not ASCII and keys that are no text or come twice: the reader has their bytes
DIFFERENT_HERE = {"prop symbol non-ascii", "prop key null", "prop key twice"}


def test_the_properties_of_an_event_are_as_the_real_trigger_gave_them() -> None:
    delivered = [one for one in trigger_events.published() if one.properties is not None]
    found = {one.name: to_host_event(trigger_events.received(one.message)).properties for one in delivered}
    differ = {
        one.name for one in delivered if encode_properties(found[one.name]) != encode_properties(one.properties or {})
    }
    assert differ == trigger_events.DIFFERENT | DIFFERENT_HERE


def test_an_event_that_the_real_trigger_cannot_read_is_read() -> None:
    refused = [one for one in trigger_events.published() if one.properties is None]
    assert {to_host_event(trigger_events.received(one.message)).sequence_number for one in refused} == {7}


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
    assert event.properties == {"raw": "AA==", "nested": {"at": ["/w=="]}}


def test_properties_that_are_absent_or_unread_stay_so() -> None:
    assert to_host_event(received(None)).properties == {}
    assert to_host_event(received(b"\x99")).properties == Unread("amqp", "mQ==")

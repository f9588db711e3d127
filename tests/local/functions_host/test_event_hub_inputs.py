import json
from typing import Any

import pytest
from azure.functions.eventhub import EventHubTriggerConverter

from local.event_hubs.codec import Array, Described, Float, Raw, Symbol, Timestamp, decode, encode
from local.functions_host.event_hub_inputs import TriggerContext, event_hub_inputs, json_properties, json_value
from local.functions_host.event_source import HubAddress, HubEvent
from local.functions_host.sdk_events import to_hub_event
from tests.fakes import trigger_events
from tests.local.functions_host.doubles import NOON

ARRAYS = ("PropertiesArray", "SystemPropertiesArray", "EnqueuedTimeUtcArray")
CONTEXT = TriggerContext(HubAddress("localhost", "telemetry", "cg"), "1", "events", "BINARY")


def decoded(context: TriggerContext, *events: HubEvent, checkpoints: bool = True) -> list[Any]:
    """The events as azure.functions gives them to a function."""
    inputs = event_hub_inputs(context, events, checkpoints=checkpoints)
    found: list[Any] = EventHubTriggerConverter.decode(
        inputs.inputs["events"], trigger_metadata=inputs.trigger_metadata
    )
    return found


def test_an_event_is_as_the_real_trigger_gave_it() -> None:
    rows = trigger_events.delivered()
    given, expected = {}, {}
    for one in rows:
        inputs = event_hub_inputs(CONTEXT, [to_hub_event(trigger_events.received(one.message))], checkpoints=True)
        metadata = {name: inputs.trigger_metadata[name].value for name in ARRAYS}
        given[one.name] = (*inputs.inputs["events"].value.bytes, metadata)
        own = one.system_properties or {}
        arrays = [one.properties], [own], [own["EnqueuedTimeUtc"]]
        expected[one.name] = (one.body, dict(zip(ARRAYS, map(json.dumps, arrays), strict=True)))
    assert given == expected  # the texts tell types and order


def test_an_offset_that_is_no_number_is_minus_one_beside_its_text() -> None:
    (found,) = decoded(CONTEXT, HubEvent(b"", 5, "1:12:3", NOON))
    assert found.offset == -1
    assert (found.metadata["OffsetArray"], found.metadata["OffsetStringArray"]) == (["-1"], ["1:12:3"])


TICKS = 639_028_224_000_000_000  # of 100 ns, from year 1 to 2026
VALUES: dict[str, tuple[Any, Any]] = {
    "null": (None, None),
    "boolean": (True, True),
    "long": (2**63 - 1, 2**63 - 1),
    "float": (Float(1.1), 1.1),
    "double": (1.1, 1.1),
    "NaN": (float("nan"), "NaN"),
    "infinity": (float("inf"), "Infinity"),
    "float that is not finite": (Float("-inf"), "-Infinity"),
    "decimal32": (Raw(b"\x74\x31\x80\x00\x6e"), 1.1),
    "negative decimal128": (Raw(b"\x94\xb0\x40" + b"\x00" * 13 + b"\x0a"), -10.0),
    "decimal of .NET's own writer": (Raw(b"\x94\x0c\x3c" + bytes(13) + b"\x7b"), 1.23),
    "smallest float": (Float(2.0**-149), 1e-45),
    "char": (Raw(b"\x73\x00\x00\x00\xdf"), "ß"),
    "timestamp": (Timestamp(1_767_225_600_120), "2026-01-01T00:00:00.12Z"),
    "timestamp before 1970": (Timestamp(-1), "1970-01-01T00:00:00Z"),
    "first timestamp": (Timestamp(-(2**63)), "1970-01-01T00:00:00Z"),
    "last timestamp": (Timestamp(2**63 - 1), "9999-12-31T23:59:59.9999999"),
    "whole timestamp": (Timestamp(1_767_225_600_000), "2026-01-01T00:00:00Z"),
    "uuid": (Raw(b"\x98" + bytes(15) + b"\x07"), "00000000-0000-0000-0000-000000000007"),
    "binary": (b"\x00\xff", "AP8="),
    "string": ("ß", "ß"),
    "symbol": (Symbol("a"), "a"),
    "list": ([1, [None, "a"]], [1, [None, "a"]]),
    "binary in a list": ([b"\x00"], [[0]]),
    "symbol in a list": ([Symbol("ab")], [{"Value": "ab", "ValueSize": 2}]),
    "uuid in a list": ([Raw(b"\x98" + bytes(16))], ["00000000-0000-0000-0000-000000000000"]),
    "map in a list": ([{"a": 1}], [[{"Key": {"Key": "a"}, "Value": 1}]]),
    "described in a list": ([Described(Symbol("t"), 1)], [{"Descriptor": {"Value": "t", "ValueSize": 1}, "Value": 1}]),
    "array": (Array(["a", "b"]), ["a", "b"]),
    "map": ({"a": 1}, {"a": 1}),
    "uri": (Described(Symbol("com.microsoft:uri"), "https://a/"), "https://a/"),
    "offset": (Described(Symbol("com.microsoft:datetime-offset"), TICKS), "2026-01-01T00:00:00+00:00"),
    "exact offset": (
        Described(Symbol("com.microsoft:datetime-offset"), TICKS + 1_234_567),
        "2026-01-01T00:00:00.1234567+00:00",
    ),
    "span": (Described(Symbol("com.microsoft:timespan"), 36_000_000_000), "01:00:00"),
    "long span": (Described(Symbol("com.microsoft:timespan"), -864_000_000_001), "-1.00:00:00.0000001"),
}


@pytest.mark.parametrize("case", VALUES)
def test_a_value_becomes_the_json_of_its_dotnet_value(case: str) -> None:
    value, expected = VALUES[case]
    found = json_value(decode(encode(value))[0])
    assert (type(found), found) == (type(expected), expected)
    json.dumps(found, allow_nan=False)


def test_a_value_that_dotnet_does_not_know_is_left_out() -> None:
    other = Described(Symbol("other"), 1)
    assert json_properties(encode({"a": other, "b": 2})) == {"b": 2}

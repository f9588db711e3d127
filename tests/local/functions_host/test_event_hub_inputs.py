import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.functions.eventhub import EventHubTriggerConverter
from hypothesis import given
from hypothesis import strategies as st

from local.event_hubs.codec import Described, Symbol, encode
from local.functions_host.event_hub_inputs import TriggerContext, event_hub_inputs
from local.functions_host.event_source import HubAddress, HubEvent
from local.functions_host.sdk_events import to_hub_event
from tests.core.remote.hub.test_amqp_values import VALUES
from tests.fakes import trigger_events
from tests.local.functions_host.doubles import NOON, event

SHAPES = json.loads((Path(__file__).parents[2] / "fixtures" / "functions_host_shapes.json").read_text())
ARRAYS = ("PropertiesArray", "SystemPropertiesArray", "EnqueuedTimeUtcArray")
CONTEXT = TriggerContext(HubAddress("localhost", "telemetry", "cg"), "1", "events", "BINARY")


def decoded(context: TriggerContext, *events: HubEvent, checkpoints: bool = True) -> list[Any]:
    """The events as azure.functions gives them to a function."""
    inputs = event_hub_inputs(context, events, checkpoints=checkpoints)
    found: list[Any] = EventHubTriggerConverter.decode(
        inputs.inputs["events"], trigger_metadata=inputs.trigger_metadata
    )
    return found


def test_metadata_and_events_have_the_recorded_shape() -> None:
    stamps = [each["x-opt-enqueued-time"] for each in SHAPES["eventhub_metadata"]["SystemPropertiesArray"]]
    golden = [
        HubEvent(
            body,
            number,
            str(number * 64),
            datetime.fromisoformat(stamp),
            "sensor-1",
            {"tenant": "a"},
            {
                "x-opt-sequence-number": number,
                "x-opt-offset": str(number * 64),
                "x-opt-enqueued-time": stamp,
                "x-opt-partition-key": "sensor-1",
            },
        )
        for number, (body, stamp) in enumerate(zip([b'{"v":1}', b"\x00bin"], stamps, strict=True))
    ]
    events = decoded(CONTEXT, *golden)
    metadata = events[0].metadata
    assert metadata == SHAPES["eventhub_metadata"]
    assert list(metadata) == list(SHAPES["eventhub_metadata"])
    assert list(metadata["SystemPropertiesArray"][0]) == list(SHAPES["eventhub_metadata"]["SystemPropertiesArray"][0])
    names = {"seq": "sequence_number", "offset": "offset", "key": "partition_key", "t": "enqueued_time"}
    shown = [{short: repr(getattr(each, name)) for short, name in names.items()} for each in events]
    bodies = [{"body": repr(each.get_body())} for each in events]
    assert [body | rest for body, rest in zip(bodies, shown, strict=True)] == SHAPES["eventhub_events"]


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


def test_keys_are_not_aligned_with_events() -> None:
    found = decoded(CONTEXT, event(0), event(1, key="k"), event(2))
    assert found[0].metadata["PartitionKeyArray"] == ["k"]
    assert [each.partition_key for each in found] == [None, "k", None]


def test_enqueued_time_is_naive_without_zone_or_final_zeros_as_json_net_writes_it() -> None:
    (whole,) = decoded(CONTEXT, event(0))
    (fraction,) = decoded(CONTEXT, HubEvent(b"", 0, "0", NOON.replace(microsecond=120_000)))
    assert whole.enqueued_time == NOON.replace(tzinfo=None)
    assert whole.metadata["EnqueuedTimeUtcArray"] == ["2026-11-21T12:00:00"]
    assert fraction.metadata["EnqueuedTimeUtcArray"] == ["2026-11-21T12:00:00.12"]


def test_an_offset_that_is_no_number_is_minus_one_beside_its_text() -> None:
    (found,) = decoded(CONTEXT, HubEvent(b"", 5, "1:12:3", NOON))
    assert found.offset == -1
    assert (found.metadata["OffsetArray"], found.metadata["OffsetStringArray"]) == (["-1"], ["1:12:3"])


def test_the_function_learns_whether_a_checkpoint_follows() -> None:
    (found,) = decoded(CONTEXT, event(0), checkpoints=False)
    assert found.metadata["PartitionContext"]["IsCheckpointingAfterInvocation"] is False


def test_a_value_of_any_type_in_any_place_reaches_the_function() -> None:
    values = [bytes.fromhex(written) for written, _ in VALUES.values()]
    values += [
        b"\x98" + bytes(16),
        b"\x00\x53\x07\x40",
        b"\x00\xa3\x01t\xc0\x01\x00",
        b"\xc1\x06\x02\xa1\x01\xff\x54\x01",
    ]
    values += [
        encode(Described(Symbol(f"com.microsoft:{kind}"), -1)) for kind in ("uri", "datetime-offset", "timespan")
    ]
    values += [
        encode([Described(Symbol("other"), 1)]),
        b"\xc1\x04\x01\xa1\x01a",
        b"\x94\x5f\xfe" + b"\x00" * 13 + b"\x01",
    ]
    messages = [
        section(code, b"\xc1" + bytes((len(pair) + 1, 2)) + pair) + section(0x75, encode(b"body"))
        for value in values
        for code, pair in ((code, b"\xa3\x01a" + value) for code in (0x71, 0x72, 0x74, 0x78))
    ]
    messages += [
        section(0x73, b"\xc0" + bytes((len(value) + 1, 1)) + value) + section(0x75, encode(b"body")) for value in values
    ]
    for message in messages:
        (found,) = decoded(CONTEXT, to_hub_event(trigger_events.received(trigger_events.handed_out(message))))
        assert (found.get_body(), found.sequence_number) == (b"body", 7), message.hex()
        json.dumps(found.metadata["SystemPropertiesArray"], allow_nan=False)


def section(code: int, value: bytes) -> bytes:
    return bytes((0, 0x53, code)) + value


@pytest.mark.slow
@given(
    st.lists(
        st.builds(
            HubEvent,
            body=st.binary(max_size=20),
            sequence_number=st.integers(0, 2**62),
            offset=st.integers(0, 10**12 - 1).map(str),
            enqueued_at=st.timedeltas(timedelta(0), timedelta(days=9999)).map(lambda since: NOON + since),
            partition_key=st.none() | st.text(),
            properties=st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text(), max_size=3),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_every_event_arrives_unchanged(events: list[HubEvent]) -> None:
    found = decoded(CONTEXT, *events)
    assert [each.get_body() for each in found] == [each.body for each in events]
    assert [each.sequence_number for each in found] == [each.sequence_number for each in events]
    assert [each.offset for each in found] == [int(each.offset) for each in events]
    assert [each.partition_key for each in found] == [each.partition_key for each in events]
    assert [each.enqueued_time for each in found] == [each.enqueued_at.replace(tzinfo=None) for each in events]
    assert found[0].metadata["PropertiesArray"] == [each.properties for each in events]

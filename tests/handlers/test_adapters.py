"""handlers/event_batches.py: the host's batch becomes ours whole, or is refused by the name of what it lacks."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import azure.functions as func
import pytest

from core.errors import BatchRefused
from core.model.events import Event, EventBatch, Partition, PartitionId, SequenceNumber
from core.model.property_values import Unread
from handlers.event_batches import to_batch
from tests.fakes.host_events import decode, metadata_of, recorded_events, recorded_metadata

BODIES = [b'{"v":1}', b"\x00bin"]


def adapt(metadata: dict[str, Any]) -> EventBatch:
    return to_batch(decode(metadata, BODIES), "invocation-1")


def test_the_recorded_batch_becomes_two_events() -> None:
    batch = adapt(recorded_metadata())
    assert batch.partition == Partition("localhost/telemetry", "cg", PartitionId("1"))
    assert batch.invocation_id == "invocation-1"
    at = datetime(2026, 11, 21, 2, 15, 0, 295_942, tzinfo=UTC)
    assert batch.events == tuple(
        Event(SequenceNumber(n), offset, at + timedelta(microseconds=5 * n), "sensor-1", {"tenant": "a"}, BODIES[n])
        for n, offset in enumerate(["0", "64"])
    )


def test_the_events_are_those_that_were_recorded() -> None:
    seen = [
        {
            "body": repr(event.body),
            "seq": repr(event.sequence_number),
            "offset": event.offset,
            "key": repr(event.partition_key),
            "t": repr(event.enqueued_at.replace(tzinfo=None)),
        }
        for event in adapt(recorded_metadata()).events
    ]
    assert seen == recorded_events()


def test_bodies_come_through_byte_for_byte() -> None:
    bodies = [b"", bytes(range(256)), "👩‍👩‍👧".encode(), b"\xff"]
    batch = to_batch(decode(metadata_of([0, 1, 2, 3]), bodies), "invocation-1")
    assert [event.body for event in batch.events] == bodies


def test_offsets_are_taken_as_texts_and_not_as_numbers() -> None:
    metadata = recorded_metadata()
    metadata["OffsetStringArray"] = ["1:2-3", ""]
    for system in metadata["SystemPropertiesArray"]:
        system["Offset"] = -1
    assert [event.offset for event in adapt(metadata).events] == ["1:2-3", ""]


def test_keys_are_each_events_own_although_the_host_drops_the_absent_ones_of_its_array() -> None:
    metadata = recorded_metadata()
    metadata["PartitionKeyArray"] = ["sensor-1"]
    del metadata["SystemPropertiesArray"][0]["PartitionKey"]
    assert [event.partition_key for event in adapt(metadata).events] == [None, "sensor-1"]


@pytest.mark.parametrize("stamp", ["2026-11-21T02:15:00.295942Z", "2026-11-21T02:15:00.295942+00:00"])
def test_a_time_that_names_its_zone_is_the_same_instant(stamp: str) -> None:
    metadata = recorded_metadata()
    metadata["SystemPropertiesArray"][0]["EnqueuedTimeUtc"] = stamp
    (first, _) = adapt(metadata).events
    assert first.enqueued_at == datetime(2026, 11, 21, 2, 15, 0, 295_942, tzinfo=UTC)
    assert first.enqueued_at.tzinfo is UTC


@pytest.mark.parametrize("numbers", [(2**63 - 2, 2**63 - 1), (3, 9)])
def test_numbers_of_64_bits_come_through_and_holes_are_no_disorder(numbers: tuple[int, int]) -> None:
    batch = to_batch(decode(metadata_of([*numbers]), BODIES), "invocation-1")
    assert tuple(event.sequence_number for event in batch.events) == numbers


def refusal(metadata: dict[str, Any]) -> str:
    with pytest.raises(BatchRefused) as refused:
        adapt(metadata)
    return str(refused.value)


@pytest.mark.parametrize("name", ["PartitionContext", "OffsetStringArray", "PropertiesArray"])
def test_metadata_that_is_missing_is_refused_by_name(name: str) -> None:
    metadata = recorded_metadata()
    del metadata[name]
    assert name in refusal(metadata)


@pytest.mark.parametrize("name", ["FullyQualifiedNamespace", "EventHubName", "ConsumerGroup", "PartitionId"])
@pytest.mark.parametrize("value", [None, "", 1])
def test_a_context_that_lacks_a_part_is_refused_by_its_name(name: str, value: object) -> None:
    metadata = recorded_metadata()
    metadata["PartitionContext"][name] = value
    assert refusal(metadata) == f"the host's PartitionContext lacks {name}"


def test_a_context_that_is_none_or_lacks_everything_is_refused_by_name() -> None:
    others: tuple[Any, ...] = (None, [], "text", 5)
    for value in others:
        assert "PartitionContext" in refusal({**recorded_metadata(), "PartitionContext": value})
    lacks = "the host's PartitionContext lacks FullyQualifiedNamespace, EventHubName, ConsumerGroup, PartitionId"
    assert refusal({**recorded_metadata(), "PartitionContext": {}}) == lacks


@pytest.mark.parametrize("name", ["OffsetStringArray", "PropertiesArray"])
def test_an_array_of_a_different_length_is_refused_with_both_lengths(name: str) -> None:
    metadata = recorded_metadata()
    for length in (0, 1, 3):
        given = {**metadata, name: (metadata[name] * 2)[:length]}
        assert refusal(given) == f"the host sent {length} values in {name} for 2 events"
    assert refusal({**metadata, name: None}) == f"the host sent none in {name} for 2 events"


@pytest.mark.parametrize("index", [0, 1])
def test_an_event_without_its_number_its_time_or_its_offset_is_refused(index: int) -> None:
    for name in ("SequenceNumber", "EnqueuedTimeUtc"):
        metadata = recorded_metadata()
        del metadata["SystemPropertiesArray"][index][name]
        assert "None" in refusal(metadata)
    metadata = recorded_metadata()
    metadata["OffsetStringArray"][index] = None
    assert refusal(metadata).startswith(f"event {index}: ")


@pytest.mark.parametrize("properties", [None, ["tenant"]])
def test_properties_that_are_no_object_become_the_event_s_own_fault(properties: object) -> None:
    metadata = recorded_metadata()
    metadata["PropertiesArray"][1] = properties
    first, second = adapt(metadata).events
    assert (first.properties, second.properties) == ({"tenant": "a"}, Unread("json", json.dumps(properties)))


def test_a_property_that_the_worker_cannot_read_does_not_stop_the_batch() -> None:
    deep = "[" * 500_000 + "]" * 500_000  # Python 3.14 reads 60,000 levels
    metadata = recorded_metadata()
    events = decode(metadata, BODIES)
    texts = '{"ratio": NaN, "text": "],{\\"", "up": Infinity}', f'{{"deep": {deep}}}'
    raw: Any = events[0]
    raw._EventHubEvent__trigger_metadata["PropertiesArray"].value = f"[{texts[0]} , {texts[1]}]"
    first, second = to_batch(events, "invocation-1").events
    assert str(first.properties) == "{'ratio': nan, 'text': '],{\"', 'up': inf}"
    assert second.properties == Unread("json", texts[1])
    assert (second.sequence_number, second.body) == (1, BODIES[1])


@pytest.mark.parametrize("numbers", [[1, 0], [5, 5]])
def test_events_out_of_order_are_refused(numbers: list[int]) -> None:
    given = decode(metadata_of(numbers), BODIES)
    with pytest.raises(BatchRefused, match=rf"event {numbers[1]} came after {numbers[0]}"):
        to_batch(given, "invocation-1")


def test_events_without_any_metadata_are_refused() -> None:
    with pytest.raises(BatchRefused, match="PartitionContext"):
        to_batch([func.EventHubEvent(body=b"")], "invocation-1")

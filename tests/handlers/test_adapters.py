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


def test_the_recorded_batch_becomes_two_events_that_are_those_that_were_recorded() -> None:
    batch = adapt(recorded_metadata())
    assert batch.partition == Partition("localhost/telemetry", "cg", PartitionId("1"))
    assert batch.invocation_id == "invocation-1"
    at = datetime(2026, 11, 21, 2, 15, 0, 295_942, tzinfo=UTC)
    assert batch.events == tuple(
        Event(SequenceNumber(n), offset, at + timedelta(microseconds=5 * n), "sensor-1", {"tenant": "a"}, BODIES[n])
        for n, offset in enumerate(["0", "64"])
    )
    assert recorded_events() == [
        {
            "body": repr(event.body), "seq": repr(event.sequence_number), "offset": event.offset,
            "key": repr(event.partition_key), "t": repr(event.enqueued_at.replace(tzinfo=None)),
        }
        for event in batch.events
    ]  # fmt: skip


def test_an_event_has_its_own_key_offset_time_and_body_whatever_form_the_host_gives_them() -> None:
    metadata = recorded_metadata()
    metadata["OffsetStringArray"] = ["1:2-3", ""]  # the texts count, and not the numbers
    metadata["PartitionKeyArray"] = ["sensor-1"]  # the host drops the absent ones
    del metadata["SystemPropertiesArray"][0]["PartitionKey"]
    for system, zone in zip(metadata["SystemPropertiesArray"], ("Z", "+00:00"), strict=True):
        system.update(Offset=-1, EnqueuedTimeUtc=f"2026-11-21T02:15:00.295942{zone}")
    at = datetime(2026, 11, 21, 2, 15, 0, 295_942, tzinfo=UTC)
    found = [(one.offset, one.partition_key, one.enqueued_at, one.enqueued_at.tzinfo) for one in adapt(metadata).events]
    assert found == [("1:2-3", None, at, UTC), ("", "sensor-1", at, UTC)]
    bodies = [b"", bytes(range(256)), "👩‍👩‍👧".encode(), b"\xff"]
    batch = to_batch(decode(metadata_of([0, 1, 2, 3]), bodies), "invocation-1")
    assert [event.body for event in batch.events] == bodies


def test_numbers_of_64_bits_come_through_and_holes_are_no_disorder_but_events_out_of_order_are_refused() -> None:
    for numbers in ((2**63 - 2, 2**63 - 1), (3, 9)):
        batch = to_batch(decode(metadata_of([*numbers]), BODIES), "invocation-1")
        assert tuple(event.sequence_number for event in batch.events) == numbers
    for numbers in ((1, 0), (5, 5)):
        with pytest.raises(BatchRefused, match=rf"event {numbers[1]} came after {numbers[0]}"):
            to_batch(decode(metadata_of([*numbers]), BODIES), "invocation-1")


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
def test_a_context_that_lacks_a_part_is_refused_by_its_name(name: str) -> None:
    metadata = recorded_metadata()
    for value in (None, "", 1):
        metadata["PartitionContext"][name] = value
        assert refusal(metadata) == f"the host's PartitionContext lacks {name}"
    others: tuple[Any, ...] = (None, [], "text", 5)
    for context in others:
        assert "PartitionContext" in refusal({**recorded_metadata(), "PartitionContext": context})
    lacks = "the host's PartitionContext lacks FullyQualifiedNamespace, EventHubName, ConsumerGroup, PartitionId"
    assert refusal({**recorded_metadata(), "PartitionContext": {}}) == lacks
    with pytest.raises(BatchRefused, match="PartitionContext"):
        to_batch([func.EventHubEvent(body=b"")], "invocation-1")


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


def test_properties_that_are_no_object_or_that_the_worker_cannot_read_are_the_event_s_own_fault() -> None:
    for properties in (None, ["tenant"]):
        metadata = recorded_metadata()
        metadata["PropertiesArray"][1] = properties
        first, second = adapt(metadata).events
        assert (first.properties, second.properties) == ({"tenant": "a"}, Unread("json", json.dumps(properties)))
    deep = "[" * 500_000 + "]" * 500_000  # Python 3.14 reads 60,000 levels
    events = decode(recorded_metadata(), BODIES)
    texts = '{"ratio": NaN, "text": "],{\\"", "up": Infinity}', f'{{"deep": {deep}}}'
    raw: Any = events[0]
    raw._EventHubEvent__trigger_metadata["PropertiesArray"].value = f"[{texts[0]} , {texts[1]}]"
    first, second = to_batch(events, "invocation-1").events
    assert str(first.properties) == "{'ratio': nan, 'text': '],{\"', 'up': inf}"
    assert second.properties == Unread("json", texts[1])
    assert (second.sequence_number, second.body) == (1, BODIES[1])

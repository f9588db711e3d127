"""The events and rows of the benchmarks: batches of 500 readings, as the host hands them over."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from azure.functions import EventHubEvent, meta
from azure.functions.eventhub import EventHubTriggerConverter

from core.model.events import Event, EventBatch, Partition, PartitionId, SequenceNumber
from core.transforms.loading import rooms_of
from examples.home_security.transform import SensorReading

SIZE = 500
SENT_TOGETHER = 20  # events; the hub gives those of one send the same time
ROOMS = rooms_of((SensorReading,))  # whose tables the stores of the benchmarks have
START = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
PARTITION = Partition("bench/telemetry", "hubledger", PartitionId("0"))


def reading(number: int) -> SensorReading:
    """Return a row of six columns, one of them an instant."""
    observed = START + timedelta(milliseconds=number)
    return SensorReading(f"H{number % 100_000:06}", f"S{number % 7}", "motion", "active", None, observed)


def batch(number: int) -> EventBatch:
    """Return the batch of this number: SIZE events that follow those of the previous batch."""
    first = number * SIZE
    return EventBatch(PARTITION, tuple(_event(first + place) for place in range(SIZE)), "bench")


def host_batch(number: int) -> tuple[Any, dict[str, Any]]:
    """Return a batch as the host sends it to a worker: the datum of the bodies, and the trigger metadata."""
    events = batch(number).events
    stamps = [event.enqueued_at.replace(tzinfo=None).isoformat() for event in events]
    system = [
        {
            "x-opt-sequence-number": event.sequence_number,
            "x-opt-offset": event.offset,
            "x-opt-enqueued-time": f"{stamp}+00:00",
            "x-opt-partition-key": event.partition_key,
            "SequenceNumber": event.sequence_number,
            "Offset": int(event.offset),
            "OffsetString": event.offset,
            "PartitionKey": event.partition_key,
            "EnqueuedTimeUtc": stamp,
        }
        for event, stamp in zip(events, stamps, strict=True)
    ]
    context = {
        "IsCheckpointingAfterInvocation": True,
        "FullyQualifiedNamespace": "bench",
        "EventHubName": "telemetry",
        "ConsumerGroup": "hubledger",
        "PartitionId": "0",
    }
    metadata = {
        "PartitionContext": meta.Datum(json.dumps(context), "json"),
        "OffsetStringArray": meta.Datum(
            SimpleNamespace(string=[event.offset for event in events]), "collection_string"
        ),
        "SequenceNumberArray": meta.Datum(
            SimpleNamespace(sint64=[event.sequence_number for event in events]), "collection_sint64"
        ),
        "PropertiesArray": meta.Datum(json.dumps([{}] * SIZE), "json"),
        "SystemPropertiesArray": meta.Datum(json.dumps(system), "json"),
    }
    return meta.Datum(SimpleNamespace(bytes=[event.body for event in events]), "collection_bytes"), metadata


def decoded(number: int) -> list[EventHubEvent]:
    """Return a batch as azure.functions hands it to a function."""
    bodies, metadata = host_batch(number)
    events: list[EventHubEvent] = EventHubTriggerConverter.decode(bodies, trigger_metadata=metadata)
    return events


def _event(number: int) -> Event:
    body = (
        b'{"home_id":"H%06d","sensor_id":"S1","kind":"motion","state":"active","observed_at":"2026-01-01T12:00:00.5Z"}'
        % (number % 100_000)
    )
    at = START + timedelta(milliseconds=number // SENT_TOGETHER)
    return Event(SequenceNumber(number), str(number * 200), at, f"H{number % 100_000:06}", {}, body)

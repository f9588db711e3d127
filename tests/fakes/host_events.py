"""Events as the Functions host hands them over, decoded by the worker library's own converter."""

import copy
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import azure.functions as func
from azure.functions import meta
from azure.functions.eventhub import EventHubTriggerConverter

RECORDED = Path(__file__).parents[1] / "fixtures" / "eventhub_batch.json"
_COLLECTIONS = {"PartitionKeyArray": "string", "OffsetArray": "string", "OffsetStringArray": "string"}


def recorded_metadata() -> dict[str, Any]:
    return copy.deepcopy(json.loads(RECORDED.read_text(encoding="utf-8"))["eventhub_metadata"])


def recorded_events() -> list[dict[str, str]]:
    return list(json.loads(RECORDED.read_text(encoding="utf-8"))["eventhub_events"])


def metadata_of(numbers: list[int], *, partition_id: str = "1") -> dict[str, Any]:
    metadata = recorded_metadata()
    context = {**metadata["PartitionContext"], "PartitionId": partition_id}
    system = [{**metadata["SystemPropertiesArray"][0], "SequenceNumber": number} for number in numbers]
    return {
        "TriggerPartitionContext": context,
        "PartitionContext": context,
        "PartitionKeyArray": ["sensor-1"] * len(numbers),
        "OffsetArray": [str(number * 64) for number in numbers],
        "OffsetStringArray": [str(number * 64) for number in numbers],
        "SequenceNumberArray": numbers,
        "EnqueuedTimeUtcArray": [one["EnqueuedTimeUtc"] for one in system],
        "PropertiesArray": [{}] * len(numbers),
        "SystemPropertiesArray": system,
    }


def decode(metadata: dict[str, Any], bodies: list[bytes]) -> list[func.EventHubEvent]:
    """Return the events that the worker makes of a binary batch of cardinality many."""
    data = meta.Datum(SimpleNamespace(bytes=bodies), "collection_bytes")
    given = {name: _datum(name, value) for name, value in metadata.items()}
    events: list[func.EventHubEvent] = EventHubTriggerConverter.decode(data, trigger_metadata=given)
    return events


def _datum(name: str, value: Any) -> meta.Datum:
    if name in _COLLECTIONS and isinstance(value, list):
        return meta.Datum(SimpleNamespace(string=value), "collection_string")
    if name == "SequenceNumberArray" and isinstance(value, list):
        return meta.Datum(SimpleNamespace(sint64=value), "collection_sint64")
    return meta.Datum(json.dumps(value), "json")

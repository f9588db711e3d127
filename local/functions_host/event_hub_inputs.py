"""Encode a batch of events as the Event Hubs extension does: the bodies and the trigger's metadata.

Source: `EventHubTriggerBindingStrategy.AddBindingData` (extension 6.5.2 and later) and the host's
`GrpcMessageConversionExtensions`. As there, EnqueuedTimeUtc is UTC without a "Z", and PartitionKeyArray leaves out
the events that have no key.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from azure.functions.meta import Datum

from local.functions_host.event_source import HubAddress, HubEvent
from local.functions_host.invoker import TriggerInputs


@dataclass(frozen=True, slots=True)
class Collection:
    """A typed collection of the worker's protocol; only the field of its kind is filled."""

    bytes: Sequence[bytes] = ()
    string: Sequence[str] = ()
    sint64: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class TriggerContext:
    """The values that all batches of a partition share; `argument` and `data_type` are the binding's."""

    address: HubAddress
    partition_id: str
    argument: str
    data_type: str


def event_hub_inputs(context: TriggerContext, events: Sequence[HubEvent], *, checkpoints: bool) -> TriggerInputs:
    """Return the function's inputs for a batch; `checkpoints` is True when a host checkpoint follows."""
    return TriggerInputs(
        {context.argument: _bodies(context.data_type, events)}, _metadata(context, events, checkpoints)
    )


def _bodies(data_type: str, events: Sequence[HubEvent]) -> Any:
    if data_type == "BINARY":
        return Datum(Collection(bytes=[event.body for event in events]), "collection_bytes")
    return _strings([event.body.decode("utf-8", "replace") for event in events])


def _metadata(context: TriggerContext, events: Sequence[HubEvent], checkpoints: bool) -> dict[str, Any]:
    partition = _partition_context(context, checkpoints)
    stamps = [_naive_stamp(event.enqueued_at) for event in events]
    return {
        "TriggerPartitionContext": partition,
        "PartitionContext": partition,
        "PartitionKeyArray": _strings([event.partition_key or "" for event in events]),
        "OffsetArray": _strings([str(_number(event.offset)) for event in events]),
        "OffsetStringArray": _strings([event.offset for event in events]),
        "SequenceNumberArray": Datum(
            Collection(sint64=[event.sequence_number for event in events]), "collection_sint64"
        ),
        "EnqueuedTimeUtcArray": _json(stamps),
        "PropertiesArray": _json([event.properties for event in events]),
        "SystemPropertiesArray": _json(list(map(_system_properties, events, stamps))),
    }


def _partition_context(context: TriggerContext, checkpoints: bool) -> Any:
    return _json(
        {
            "IsCheckpointingAfterInvocation": checkpoints,
            "FullyQualifiedNamespace": context.address.namespace,
            "EventHubName": context.address.hub,
            "ConsumerGroup": context.address.consumer_group,
            "PartitionId": context.partition_id,
        }
    )


def _system_properties(event: HubEvent, stamp: str) -> dict[str, Any]:
    return {
        **event.system_properties,
        "SequenceNumber": event.sequence_number,
        "Offset": _number(event.offset),
        "OffsetString": event.offset,
        "PartitionKey": event.partition_key,
        "EnqueuedTimeUtc": stamp,
    }


@lru_cache(maxsize=64)
def _naive_stamp(instant: datetime) -> str:
    """Return Json.NET's text of a DateTime of unspecified kind: no zone, no zeros at the end of the fraction."""
    text = instant.replace(tzinfo=None).isoformat()
    return text.rstrip("0") if "." in text else text


def _number(offset: str) -> int:
    """Return the numeric offset, or -1 for an offset that is no number (geo-replication)."""
    return int(offset) if offset.isdecimal() else -1


def _strings(texts: list[str]) -> Any:
    """Return a collection of texts without the empty ones, which the host's conversion skips."""
    return Datum(Collection(string=[text for text in texts if text]), "collection_string")


def _json(value: Any) -> Any:
    return Datum(json.dumps(value), "json")

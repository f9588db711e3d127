"""Convert the host's types to a batch of ours completely, or refuse it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from itertools import pairwise
from typing import Any

import azure.functions as func

from core.errors import BatchRefused
from core.model.event_keys import under_key
from core.model.events import Event, EventBatch, PartitionId, SequenceNumber, WhenAsked, number_of, stream_of
from core.model.property_values import Unread
from core.model.transforms import KeyOf

CONTEXT, OFFSETS, PROPERTIES = "PartitionContext", "OffsetStringArray", "PropertiesArray"
SYSTEM = "SystemPropertiesArray"
_UNREADABLE = (ValueError, RecursionError)
_RAW = "_EventHubEvent__trigger_metadata"  # private: the texts before the worker reads them
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]', re.DOTALL)


def read_metadata(event: func.EventHubEvent, name: str) -> Any:
    """Return a value of the metadata that an event shares with its batch, or None where the host sent none.

    The worker's JSON reader refuses NaN and deep nesting, so that one such property would fail every try of the batch.
    Then the properties of each event are read alone, and those that cannot be read are Unread.
    """
    raw: Mapping[str, Any] | None = getattr(event, _RAW, None)
    if raw is None:
        return (event.metadata or {}).get(name)
    try:
        return raw[name].python_value if name in raw else None
    except _UNREADABLE:
        if name != PROPERTIES:
            raise
        return list(map(_read_alone, elements_of(raw[name].value)))


def _read_alone(text: str) -> Any:
    try:
        return json.loads(text)
    except _UNREADABLE:
        return Unread("json", text)


def elements_of(array: str) -> Iterator[str]:
    """Yield the texts of the elements of a JSON array, at any depth of nesting."""
    depth, start = 0, 0
    for token in _TOKEN.finditer(array):
        mark = token[0]
        if mark in "[{":
            depth += 1
            start = token.end() if depth == 1 else start
        elif mark in "]}":
            depth -= 1
        if (mark == "," and depth == 1) or (mark == "]" and depth == 0):
            if element := array[start : token.start()].strip():
                yield element
            start = token.end()


# Trigger metadata of the Event Hubs extension 6.5.2 and later, cardinality many; see docs/one-event.md for the arrays.
# PartitionKeyArray is not used: the host drops its nulls, so it is not aligned with the events.
_CONTEXT = ("FullyQualifiedNamespace", "EventHubName", "ConsumerGroup", "PartitionId")
_READ = (dict, Unread)  # `dict | Unread` in the call would be made again for each event


def to_batch(
    events: Sequence[func.EventHubEvent], invocation_id: str, retries: int = 0, key_of: KeyOf | None = None
) -> EventBatch:
    """Convert the events of an invocation, in the order of the hub. BatchRefused names the missing part.

    All events share the metadata, so it is read from the first event only: the system properties when a transform or a
    letter asks for them, because the worker has read them once already.
    """
    context = read_metadata(events[0], CONTEXT)
    if not isinstance(context, dict):
        raise BatchRefused("the host sent no PartitionContext: the Event Hubs extension must be 6.5.2 or later")
    missing = [name for name in _CONTEXT if not isinstance(context.get(name), str) or not context[name]]
    if missing:
        raise BatchRefused(f"the host's PartitionContext lacks {', '.join(missing)}")
    namespace, hub, group, partition_id = (context[name] for name in _CONTEXT)
    partition = stream_of(namespace, hub, group).partition(PartitionId(partition_id))
    offsets, properties = (_array(events, name) for name in (OFFSETS, PROPERTIES))
    converted = tuple(_converted(events, offsets, properties))
    if key_of is not None:
        converted = tuple(under_key(one, key_of) for one in converted)
    for before, after in pairwise(map(number_of, converted)):
        if after <= before:
            raise BatchRefused(f"{partition}: event {after} came after {before}")
    return EventBatch(partition, converted, invocation_id, retries=retries)


def _array(events: Sequence[func.EventHubEvent], name: str) -> Sequence[Any]:
    array = read_metadata(events[0], name)
    if not isinstance(array, list) or len(array) != len(events):
        found = f"{len(array)} values" if isinstance(array, list) else "none"
        raise BatchRefused(f"the host sent {found} in {name} for {len(events)} events")
    return array


def _converted(
    events: Sequence[func.EventHubEvent], offsets: Sequence[object], properties: Sequence[object]
) -> Iterator[Event]:
    """Yield our events. Those of one send have the same time and come one after the other: it is converted once."""
    before: datetime | None = None
    system = cache(partial(read_metadata, events[0], SYSTEM))
    for place, (event, offset, own) in enumerate(zip(events, offsets, properties, strict=True)):
        number, enqueued = event.sequence_number, event.enqueued_time
        if number is None or enqueued is None or not isinstance(offset, str):
            raise BatchRefused(f"event {number}: the host sent enqueued time {enqueued}, offset {offset!r}")
        if enqueued != before:
            # The host's `EnqueuedTime.DateTime` has no zone in .NET: it is UTC.
            before, at = enqueued, enqueued.replace(tzinfo=UTC) if enqueued.tzinfo is None else enqueued.astimezone(UTC)
        read = own if isinstance(own, _READ) else Unread("json", json.dumps(own))
        annotations = WhenAsked(lambda at: system()[at], place)
        yield Event(SequenceNumber(number), offset, at, event.partition_key, read, event.get_body(), annotations)

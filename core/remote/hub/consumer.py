"""Receive the events of a hub with the SDK, which shares partitions with peers through a checkpoint store."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from operator import lt
from typing import Any

from core.model.events import BATCH_EVENTS, Event, EventBatch, PartitionId, number_of, stream_of
from core.model.hub import BEFORE_FIRST
from core.remote.hub.client import aio_credential, open_client
from core.remote.hub.events import to_event
from core.settings import Settings

BATCH_SIZE, PREFETCH = BATCH_EVENTS, BATCH_EVENTS


@dataclass(frozen=True, slots=True)
class Sharing:
    """The terms of sharing: the checkpoint store, the time between balancings, and the time until an owner expires.

    `partition_ids` returns one list, which changes when the hub gets more partitions: the SDK asks once and keeps it.
    """

    checkpoint_store: Any
    interval: timedelta
    expiry: timedelta
    partition_ids: Callable[[], list[PartitionId]]


def open_consumer(settings: Settings, sharing: Sharing) -> Any:
    """Open an aio EventHubConsumerClient; close it to release its partitions."""
    from azure.eventhub.aio import EventHubConsumerClient

    class Consumer(EventHubConsumerClient):
        async def get_partition_ids(self) -> Any:
            return await asyncio.to_thread(sharing.partition_ids)

    return open_client(
        settings,
        Consumer,
        aio_credential,
        checkpoint_store=sharing.checkpoint_store,
        load_balancing_interval=sharing.interval.total_seconds(),
        partition_ownership_expiration_interval=sharing.expiry.total_seconds(),
    )


async def receive(
    client: Any, take: Callable[[EventBatch], Awaitable[None]], failed: Callable[[str | None, Exception], None]
) -> None:
    """Pass batches to `take`, one at a time per partition and in order, until the client is closed."""

    async def on_batch(context: Any, events: Sequence[Any]) -> None:
        for batch in batches_of(context, events):
            await take(batch)

    async def on_error(context: Any, error: Exception) -> None:
        failed(None if context is None else context.partition_id, error)

    await client.receive_batch(
        on_batch, on_error=on_error, max_batch_size=BATCH_SIZE, prefetch=PREFETCH, starting_position=BEFORE_FIRST
    )


def batches_of(context: Any, events: Sequence[Any]) -> Iterator[EventBatch]:
    """Yield the events of a partition as batches of ours, mostly one; the id is the place of the first event.

    After a lost connection, the SDK (azure-eventhub 5.15) hands over the events that it still holds. Then it hands over
    some of them again, in the same list. The repeated events become a second batch, which the guard drops.
    """
    stream = stream_of(context.fully_qualified_namespace, context.eventhub_name, context.consumer_group)
    partition = stream.partition(PartitionId(context.partition_id))
    for part in _rising(tuple(map(to_event, events))):
        yield EventBatch(partition, part, f"{context.partition_id}@{part[0].sequence_number}")


def _rising(events: tuple[Event, ...]) -> Iterator[tuple[Event, ...]]:
    """Yield the parts in which the sequence numbers rise."""
    numbers = list(map(number_of, events))
    falls = [place for place, rises in enumerate(map(lt, numbers, numbers[1:]), 1) if not rises]
    for begin, end in pairwise((0, *falls, len(events))):
        if begin < end:
            yield events[begin:end]

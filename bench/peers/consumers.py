"""The consumers that other people write with azure-eventhub: each is the pattern that its documentation shows.

All of them catch a body that their transform refuses, log it and go on: an exception that leaves the callback ends the
partition's consumer, which begins again at the checkpoint, and so a bad event would stop it for ever. All of them write
in a thread, as the comments of the samples recommend for input and output: while a commit waits for the disk, the
client receives, so that its next batch is large.
"""

import asyncio
import logging
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from azure.eventhub.aio import EventHubConsumerClient

from bench.peers.readings import PoisonEvent, values_of
from bench.peers.table import Table, open_table
from core.model.events import BATCH_EVENTS
from local.stack.stack import BALANCE_EVERY, LOST_AFTER

log = logging.getLogger("peer")
EVERY = 20  # events: `checkpoint_event_cnt` in the SDK's sample
SMALL = 10  # events: the default of EventProcessorOptions.MaxBatchSize, in the .NET library of the pattern (c)
READ_AHEAD = {"prefetch": BATCH_EVENTS}


@dataclass(frozen=True, slots=True)
class Place:
    """The hub that a consumer reads, the storage account and the container of its blobs, and its database."""

    connection: str
    hub: str
    group: str
    blobs: str
    container: str
    store: str


def client_of(place: Place, **more: Any) -> Any:
    """Open a client, whose load balancing is as quick as our worker's in the same run."""
    return EventHubConsumerClient.from_connection_string(
        place.connection,
        consumer_group=place.group,
        eventhub_name=place.hub,
        load_balancing_interval=BALANCE_EVERY,
        partition_ownership_expiration_interval=LOST_AFTER,
        **more,
    )


async def insert_each(place: Place, every: int) -> None:
    """Insert each event by itself, and move the checkpoint in a blob after every n events: (a).

    The pattern is the SDK's samples recv_with_checkpoint_store_async.py, with a checkpoint after each event, and
    recv_with_checkpoint_by_event_count_async.py, with one after 20.
    """
    table, seen = open_table(place.store), Counter[str]()

    async def on_event(context: Any, event: Any) -> None:
        await asyncio.to_thread(_write_each, table, context.partition_id, (event,))
        seen[context.partition_id] += 1
        if seen[context.partition_id] % every == 0:
            await context.update_checkpoint(event)

    async with client_of(place, checkpoint_store=_blob_store(place)) as client:
        await client.receive(on_event=on_event, starting_position="-1")


async def insert_batch(place: Place) -> None:
    """Insert a batch in one transaction, and move the checkpoint in a blob after it: (b).

    The pattern is the SDK's sample receive_batch_with_checkpoint_async.py.
    """
    table = open_table(place.store)

    async def on_event_batch(context: Any, events: Sequence[Any]) -> None:
        await asyncio.to_thread(_write, table, context.partition_id, events)
        await context.update_checkpoint()

    async with client_of(place, checkpoint_store=_blob_store(place)) as client:
        await client.receive_batch(on_event_batch, max_batch_size=BATCH_EVENTS, starting_position="-1", **READ_AHEAD)


async def insert_with_checkpoint(place: Place, most: int) -> None:
    """Handle each event of a batch inside a transaction that also has the letters and the checkpoint: (c).

    The pattern is "Reliable Consumer of Azure Event Hubs", M. Shilkov: read the checkpoint from SQL, loop over the
    events inside a try, store the failed ones, update the checkpoint, commit. It has no leases, so nothing expects a
    second owner. Its library hands over ten events at a time by default.
    """
    table = open_table(place.store)

    async def on_event_batch(context: Any, events: Sequence[Any]) -> None:
        await asyncio.to_thread(_handle, table, context.partition_id, events)

    async with client_of(place) as client:
        begin = dict.fromkeys(await client.get_partition_ids(), "-1") | table.checkpoints()
        await client.receive_batch(on_event_batch, max_batch_size=most, starting_position=begin, **READ_AHEAD)


async def insert_bare(place: Place) -> None:
    """Insert batches and remember nothing: the limit of the SDK, the driver and the database (d)."""
    table = open_table(place.store)

    async def on_event_batch(context: Any, events: Sequence[Any]) -> None:
        await asyncio.to_thread(_write, table, context.partition_id, events)

    async with client_of(place) as client:
        await client.receive_batch(on_event_batch, max_batch_size=BATCH_EVENTS, starting_position="-1", **READ_AHEAD)


PATTERNS: dict[str, Callable[[Place], Awaitable[None]]] = {
    "a": partial(insert_each, every=1),
    "a20": partial(insert_each, every=EVERY),
    "b": insert_batch,
    "c": partial(insert_with_checkpoint, most=BATCH_EVENTS),
    "c10": partial(insert_with_checkpoint, most=SMALL),
    "d": insert_bare,
}


def _write_each(table: Table, partition_id: str, events: Sequence[Any]) -> None:
    for row in _rows(partition_id, events):
        with table.lock:
            table.add(row)


def _handle(table: Table, partition_id: str, events: Sequence[Any]) -> None:
    failed = []
    with table.transaction():
        for event in events:
            body = b"".join(event.body)
            try:
                values = values_of(body)
            except PoisonEvent as error:
                failed.append((event.sequence_number, body, error))
                continue
            if values is not None:
                table.add((partition_id, event.sequence_number, *values))
        for number, body, refused in failed:
            table.add_letter(partition_id, number, body, refused)
        table.checkpoint(partition_id, events[-1].sequence_number, events[-1].offset)


def _write(table: Table, partition_id: str, events: Sequence[Any]) -> None:
    rows = _rows(partition_id, events)
    with table.transaction():
        table.add_all(rows)


def _rows(partition_id: str, events: Sequence[Any]) -> list[tuple[Any, ...]]:
    return rows_of_bodies((partition_id, event.sequence_number, b"".join(event.body)) for event in events)


def rows_of_bodies(bodies: Iterable[tuple[str, int, bytes]]) -> list[tuple[Any, ...]]:
    """Return the rows of placed bodies. Log those that the transform refuses."""
    rows = []
    for partition_id, number, body in bodies:
        try:
            values = values_of(body)
        except PoisonEvent as error:
            log.warning("event %s of partition %s skipped: %s", number, partition_id, error)
            continue
        if values is not None:
            rows.append((partition_id, number, *values))
    return rows


def _blob_store(place: Place) -> Any:
    from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore

    return BlobCheckpointStore.from_connection_string(place.blobs, place.container)


async def until_cancelled(pattern: str, place: Place) -> None:
    """Consume until SIGTERM."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(PATTERNS[pattern](place))
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    print("peer ready", flush=True)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()

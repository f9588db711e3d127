"""The SDK alone, in a process: `python -m bench.way.receiving CONNECTION HUB GROUP EVENTS [shortcuts]`.

It receives and keeps nothing, as the SDK is or with the shortcuts of `core.remote.hub.sdk_patches`, and prints the
processor's microseconds of this process per event, from its first link on.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Any

from azure.eventhub.aio import EventHubConsumerClient

from core.remote.hub.client import BATCH_SIZE, PREFETCH
from core.remote.hub.sdk_patches import take_shortcuts
from local.stack.stack import BALANCE_EVERY


async def receive(client: Any, events: int) -> float:
    """Receive so many events with the worker's sizes, from the beginning. Return the microseconds of each."""
    received, began, ended = 0, time.process_time(), asyncio.Event()

    async def on_batch(_: Any, batch: Sequence[Any]) -> None:
        nonlocal received
        received += len(batch)
        if received >= events:
            ended.set()

    receiving = asyncio.ensure_future(
        client.receive_batch(on_batch, max_batch_size=BATCH_SIZE, prefetch=PREFETCH, starting_position="-1")
    )
    ending = asyncio.ensure_future(ended.wait())
    await asyncio.wait({receiving, ending}, return_when=asyncio.FIRST_COMPLETED)
    each = 1e6 * (time.process_time() - began) / received
    await client.close()
    ending.cancel()
    await receiving
    return each


def open_client(connection: str, hub: str, group: str) -> Any:
    """Open a client that balances partitions as often as the worker of the local run."""
    return EventHubConsumerClient.from_connection_string(
        connection, group, eventhub_name=hub, load_balancing_interval=BALANCE_EVERY
    )


async def _main(connection: str, hub: str, group: str, events: str, shortcuts: str = "") -> None:
    if shortcuts:
        take_shortcuts()
    client = open_client(connection, hub, group)
    print(await receive(client, int(events)), flush=True)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))

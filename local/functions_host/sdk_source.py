"""Read a hub through `azure.eventhub.aio`, with one stream per partition."""

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from azure.eventhub.exceptions import EventHubError

from local.functions_host.clock import Clock
from local.functions_host.connections import HubConnection
from local.functions_host.event_source import EventStream, StartAt
from local.functions_host.host_json import EventHubOptions
from local.functions_host.sdk_stream import Link, SdkStream

logger = logging.getLogger("functions_host")

# The aio client pauses 50 ms after each prefetch, so the extension's default of 300 would cap a partition at
# 6,000 events/s.
PREFETCH = 3000
PAUSE = timedelta(seconds=2)


class SdkSource:
    """A hub, read by one consumer group; it retries while the hub cannot be reached."""

    def __init__(self, connection: HubConnection, options: EventHubOptions, clock: Clock) -> None:
        self._connection = connection
        self._options = options
        self._clock = clock
        self._client: Any = None
        self._closing = AsyncExitStack()

    async def partition_ids(self) -> Sequence[str]:
        """Return the partitions once the hub answers; log each failure."""
        while True:
            try:
                return tuple(await (await self._opened()).get_partition_ids())
            except (EventHubError, OSError) as error:
                logger.error("event hub cannot be reached; will retry", extra=self._about("hub_unreachable", error))
            await self._clock.sleep(PAUSE)

    async def open(self, partition_id: str, start: StartAt) -> EventStream:
        """Return a stream that has begun to connect."""
        options = self._options
        link = Link(
            await self._opened(),
            self._connection.address,
            partition_id,
            options.prefetch_count or PREFETCH,
            options.max_event_batch_size,
        )
        return SdkStream(link, start, self._clock)

    async def close(self) -> None:
        """Close the client and its connections."""
        await self._closing.aclose()

    async def _opened(self) -> Any:
        if self._client is None:
            self._client = await self._connection.open_client(self._closing)
        return self._client

    def _about(self, action: str, error: Exception) -> dict[str, str]:
        address = self._connection.address
        return {
            "action": action,
            "event_hub": address.hub,
            "namespace": address.namespace,
            "error": f"{type(error).__name__}: {error}",
        }

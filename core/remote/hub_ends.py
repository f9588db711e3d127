"""Ask the hub where each of its partitions ends. The client is imported on first use: it is heavy."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from core.errors import HubUnreachable
from core.events import PartitionId
from core.remote.hub_client import aio_credential, open_client
from core.settings import Settings

TIMEOUT = 10.0  # seconds for all partitions together
KEEP = 2.0  # seconds: Event Hubs answers 50 such calls a second for a whole namespace (quotas)


class HubEnds:
    """The last sequence number of each partition (-1: empty), asked at most every two seconds. Any thread may ask."""

    def __init__(self, settings: Settings, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._read_at = -KEEP
        self._ends: Mapping[PartitionId, int] = {}

    def read(self) -> Mapping[PartitionId, int]:
        """The ends, or HubUnreachable."""
        with self._lock:
            if self._monotonic() - self._read_at >= KEEP:
                self._ends = asyncio.run(_read_in_time(self._settings))
                self._read_at = self._monotonic()
            return self._ends


async def _read_in_time(settings: Settings) -> Mapping[PartitionId, int]:
    from azure.eventhub.exceptions import EventHubError

    try:
        return await asyncio.wait_for(_read_ends(settings), TIMEOUT)
    except (EventHubError, OSError, TimeoutError) as error:
        raise HubUnreachable(f"{settings.event_hub} did not answer: {error or type(error).__name__}") from error


async def _read_ends(settings: Settings) -> Mapping[PartitionId, int]:
    async with _client(settings) as client:
        ids = await client.get_partition_ids()
        found = await asyncio.gather(*(client.get_partition_properties(id) for id in ids))
    return {PartitionId(one["id"]): -1 if one["is_empty"] else one["last_enqueued_sequence_number"] for one in found}


def _client(settings: Settings) -> Any:
    from azure.eventhub.aio import EventHubConsumerClient

    return open_client(settings, EventHubConsumerClient, aio_credential, retry_total=0)

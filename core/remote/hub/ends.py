"""The last number of each partition of the hub, read seldom enough for a page with many readers."""

import threading
import time
from collections.abc import Callable, Mapping

from core.errors import HubRefused, HubUnreachable
from core.model.events import PartitionId
from core.model.hub import HubReader

KEEP = 2.0  # seconds: Event Hubs answers 50 such calls per second for a whole namespace (quotas)


class HubEnds:
    """The last sequence number of each partition (-1: none yet), read from the hub at most every two seconds."""

    def __init__(self, hub: HubReader, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._hub = hub
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._read_at = -KEEP
        self._ends: Mapping[PartitionId, int] = {}

    def read(self) -> Mapping[PartitionId, int]:
        """Return the ends, or raise HubUnreachable. Any thread may call this."""
        with self._lock:
            if self._monotonic() - self._read_at >= KEEP:
                self._ends = self._ask()
                self._read_at = self._monotonic()
            return self._ends

    def _ask(self) -> Mapping[PartitionId, int]:
        try:
            return {one.partition_id: self._hub.extent(one).last for one in self._hub.partitions()}
        except (HubRefused, HubUnreachable) as error:
            raise HubUnreachable(f"the hub did not answer: {error}") from error

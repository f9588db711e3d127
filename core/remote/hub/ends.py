"""The last number of each partition of the hub."""

from collections.abc import Mapping

from core.errors import HubRefused, HubUnreachable
from core.model.events import PartitionId
from core.model.hub import HubReader

KEEP = 2.0  # seconds to remember the ends: Event Hubs answers at most 50 such calls a second for a whole namespace


def read_ends(hub: HubReader) -> Mapping[PartitionId, int]:
    """Return the last sequence number of each partition (-1: none yet), or raise HubUnreachable."""
    try:
        return {one.partition_id: hub.extent(one).last for one in hub.partitions()}
    except (HubRefused, HubUnreachable) as error:
        raise HubUnreachable(f"the hub did not answer: {error}") from error

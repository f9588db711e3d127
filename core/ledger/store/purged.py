"""How far the partitions of a stream are purged, in SQL."""

from core.ledger.whereabouts import NOT_PURGED, Purged
from core.model.events import PartitionId
from core.store.decoding import decoder
from core.store.stream import OneStream


def read_purged(stream: OneStream, partition_id: PartitionId) -> Purged:
    """Return how far a partition is purged."""
    found = stream.ask("read_purged", partition_id=partition_id)
    return decoder(Purged)(found[0]) if found else NOT_PURGED

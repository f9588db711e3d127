"""The stubs of the partitions of a stream, in SQL."""

from core.ledger.retention.stub import PurgeStub, nothing_purged
from core.model.events import Incarnation, PartitionId
from core.store.columns import names_of
from core.store.decoding import decoder
from core.store.stream import OneStream


class PurgeStubs:
    """Reads the stubs of one stream's partitions."""

    _stream: OneStream

    def nothing_purged(self, partition_id: PartitionId) -> PurgeStub:
        """Return the stub of a partition before its first purge."""
        found = self._stream.database.ask("read_incarnation", **names_of(self._stream.stream))
        number = decoder(Incarnation)(found[0]).number if found else 0
        return nothing_purged(self._stream.stream, number, partition_id)

    def read_stub(self, partition_id: PartitionId) -> PurgeStub | None:
        """Return the stub of a partition; None when nothing of it was purged."""
        found = self._stream.ask("read_stub", partition_id=partition_id)
        return decoder(PurgeStub)(found[0]) if found else None

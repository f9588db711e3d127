"""The chains of what was purged from a stream's partitions, in SQL."""

from core.ledger.retention.chain import PurgeLink, before_first
from core.model.events import Incarnation, PartitionId
from core.model.spans import SequenceNumber
from core.store.columns import names_of
from core.store.decoding import decoded, decoder
from core.store.stream import OneStream

LINK_COLUMNS = (
    "link_number", "purge_id", "purged_by", "purged_at", "commit_number", "first_sequence_number",
    "last_sequence_number", "batches", "retries", "replays", "written", "filtered", "dead_lettered", "held", "absent",
    "rows_written", "letters", "replay_letters", "attempts", "rows_hash", "link_hash",
)  # fmt: skip
RENAMED = {"link_number": "number", "first_sequence_number": "first", "last_sequence_number": "last"}


class PurgeLinks:
    """Reads the chains of one stream's partitions."""

    _stream: OneStream

    def before_first(self, partition_id: PartitionId) -> PurgeLink:
        """Return the link of number 0 of a partition."""
        found = self._stream.database.ask("read_incarnation", **names_of(self._stream.stream))
        number = decoder(Incarnation)(found[0]).number if found else 0
        return before_first(self._stream.stream, number, partition_id)

    def read_last_link(self, partition_id: PartitionId) -> PurgeLink | None:
        """Return the last link of a partition; None when nothing of it was purged."""
        found = self._stream.ask("read_last_link", partition_id=partition_id)
        return decoder(PurgeLink)(found[0]) if found else None

    def read_links(self, partition_id: PartitionId, after: int, most: int) -> tuple[PurgeLink, ...]:
        """Return links after a number, in order."""
        found = self._stream.ask("read_links", partition_id=partition_id, after_link=after, most=most)
        return decoded(PurgeLink, found)

    def find_link(self, partition_id: PartitionId, number: SequenceNumber) -> PurgeLink | None:
        """Return the link with which the ledger row of a number was purged, or None."""
        found = self._stream.ask("find_link", partition_id=partition_id, sequence_number=number)
        return decoder(PurgeLink)(found[0]) if found else None

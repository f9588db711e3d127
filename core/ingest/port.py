"""The store that ingest needs: the state of partitions, and one transaction per commit."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol

from core.errors import StopReason
from core.model.commits import BatchCommit, PartitionState
from core.model.events import Partition
from core.model.rows import ReferenceKey, Row
from core.model.spans import SequenceNumber, Span


class IngestStore(Protocol):
    """The promises of every engine; `tests/contract` checks them. All methods may be called from several threads.

    Any method may raise StoreUnavailable; then nothing was written.
    """

    def read_partition(self, partition: Partition) -> PartitionState:
        """Return the partition's stream and checkpoint; a stream that the store does not know yet is opened."""

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        """Return the `state_of` rows that stand for these keys; keys without a row are left out."""

    def commit_batch(self, commit: BatchCommit) -> int:
        """Write checkpoint, rows, letters, ledger and gaps in one transaction; return the commit number.

        Raises CheckpointConflict (the checkpoint is not where the commit expects it) and DataRefused, both with
        nothing written, and CommitOutcomeUnknown when the answer was lost.
        """

    def anchor_partition(self, state: PartitionState, anchor: SequenceNumber, at: datetime) -> PartitionState:
        """Anchor a partition without a commit at a number, unless it has an anchor; return its state."""

    def note_gap(self, state: PartitionState, gap: Span, found_at: datetime) -> None:
        """Record a gap that is being healed; each further try is counted.

        Raises CheckpointConflict when the checkpoint is not where the state has it: then there may be no gap.
        """

    def close_gaps(self, partition: Partition) -> None:
        """Record the open gaps up to the checkpoint as healed: the hub has delivered their events after all."""

    def note_stop(self, state: PartitionState, reason: StopReason, detail: str, at: datetime) -> None:
        """Record that a partition is stopped, or count one more attempt; the next read of its state shows the stop."""

    def clear_stop(self, state: PartitionState, reason: StopReason) -> None:
        """Delete a stop; the next read of the state no longer shows it."""

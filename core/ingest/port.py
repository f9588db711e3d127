"""The store that ingest needs: the state of partitions, and one transaction per commit."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol

from core.model.commits import BatchCommit, PartitionState
from core.model.events import Partition
from core.model.rows import ReferenceKey, Row
from core.model.spans import SequenceNumber, Span


class IngestStore(Protocol):
    """What every engine keeps; `tests/contract` holds them to it. All methods may be called from several threads.

    Any method may raise StoreUnavailable, and nothing was written then.
    """

    def read_partition(self, partition: Partition) -> PartitionState:
        """The partition's stream and checkpoint; a stream that is not known yet is opened."""
        ...

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        """The `state_of` rows that stand for these keys; keys without a row are left out."""
        ...

    def commit_batch(self, commit: BatchCommit) -> int:
        """Write checkpoint, rows, letters, ledger and gaps in one transaction; return the commit number.

        Raises CheckpointConflict (the checkpoint is not where the commit expects it) and DataRefused, both with
        nothing written, and CommitOutcomeUnknown when the answer was lost.
        """
        ...

    def anchor_partition(self, state: PartitionState, anchor: SequenceNumber, at: datetime) -> PartitionState:
        """Let a partition without a commit begin at a number, unless it has a beginning; the state that stands then."""
        ...

    def note_gap(self, state: PartitionState, gap: Span, found_at: datetime) -> None:
        """Keep that a gap was found and is being healed; once more for each further try.

        Raises CheckpointConflict when the checkpoint is not where the state has it: then it may be no gap at all.
        """
        ...

    def close_gaps(self, partition: Partition) -> None:
        """Note as healed what is open although it lies behind the checkpoint: the hub handed it over after all."""
        ...

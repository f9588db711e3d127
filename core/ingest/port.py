"""The store that ingest needs: the state of partitions, and one transaction per commit."""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from core.errors import StopReason
from core.model.commits import BatchCommit, PartitionState
from core.model.events import Incarnation, Partition, Stream
from core.model.rows import ReferenceKey, Row
from core.model.spans import SequenceNumber, Span
from core.settle.order import OpenLetter


class IngestStore(Protocol):
    """Stores partitions and commits; `tests/contract` checks every engine. Several threads may call all methods.

    Any method may raise StoreUnavailable; then nothing was written.
    """

    def read_partition(self, partition: Partition) -> PartitionState:
        """Return the partition's stream and checkpoint; open a stream that the store does not know yet."""

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        """Return the current `state_of` rows of these keys; keys without a row are left out."""

    def commit_batch(self, commit: BatchCommit) -> int:
        """Write checkpoint, rows, letters, ledger and gaps in one transaction; return the commit number.

        If the state has open keys, held letters whose earlier letter was settled since are freed. Raises
        CheckpointConflict (the checkpoint is not where the commit expects it, or a replay may have opened letters since
        the open keys were read) and DataRefused; neither writes anything. Raises CommitOutcomeUnknown when the answer
        was lost.
        """

    def anchor_partition(self, state: PartitionState, anchor: SequenceNumber, at: datetime) -> PartitionState:
        """Anchor a partition without a commit at a number, unless it has an anchor already; return its state."""

    def note_gap(self, state: PartitionState, gap: Span, found_at: datetime) -> None:
        """Record a gap that is being healed, and count each further try.

        Raises CheckpointConflict when the checkpoint has moved since the state was read: the gap may be settled.
        """

    def read_incarnation(self, stream: Stream) -> Incarnation:
        """Return the newest incarnation of a stream; a stream that the store does not know yet is opened."""

    def adopt_hub(self, incarnation: Incarnation, created_at: datetime) -> None:
        """Store the hub's time of creation with an incarnation that has none; one that has it keeps it."""

    def forget_partition(self, partition: Partition) -> None:
        """Forget the remembered state of a partition and the id of its stream."""

    def close_gaps(self, partition: Partition) -> None:
        """Record the open gaps up to the checkpoint as healed: the hub delivered their events after all."""

    def note_stop(self, state: PartitionState, reason: StopReason, detail: str, at: datetime) -> None:
        """Record that a partition is stopped, or count one more attempt; the next read of its state shows the stop."""

    def read_open_keys(self, state: PartitionState) -> PartitionState:
        """Return the state with the partition keys that have an open letter; keys that the state has already stay."""

    def find_open_letters(
        self, state: PartitionState, keys: AbstractSet[str], before: SequenceNumber
    ) -> Mapping[str, OpenLetter]:
        """Return the last open letter before a number of each of these partition keys that has one."""

    def count_held(self, state: PartitionState) -> int:
        """Count the held letters of a partition."""

    def clear_stops(self, state: PartitionState, reasons: Collection[StopReason]) -> None:
        """Delete stops; the next read of the state no longer shows them."""


@dataclass(frozen=True, slots=True)
class AttemptMark:
    """The newest attempt at a partition; it is stored until its numbers are committed.

    All marks of a process have one `attempt_id`: it knows its own marks, and those of others tell of a death.
    """

    tried: Span
    attempt_id: UUID
    begun_at: datetime
    invocation_id: str


class AttemptStore(Protocol):
    """Stores one mark for each partition, without a memory. A marked commit deletes the mark."""

    def read_attempt(self, state: PartitionState) -> AttemptMark | None:
        """Return the mark of the newest attempt at a partition."""

    def begin_attempt(self, state: PartitionState, mark: AttemptMark) -> None:
        """Set the mark, in the place of the one before it."""

    def end_attempt(self, state: PartitionState, mark: AttemptMark) -> None:
        """Delete the mark of a process; do nothing when a different process has set one since."""

"""What one transaction reads and writes: the partition's state before it, and the commit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from core.model.events import Event, Partition, Position
from core.model.rows import PlacedRow, row_table
from core.model.spans import SequenceNumber

ErrorClass = Literal["poison", "reference", "refused", "unknown", "crash"]
GapStatus = Literal["open", "healed", "absent"]
LetterStatus = Literal["waiting", "retrying", "held", "resolved", "exhausted", "discarded"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a partition is committed; `commit_number` counts its commits of every kind, from 1."""

    sequence_number: SequenceNumber
    offset: str
    enqueued_at: datetime
    commit_number: int
    commit_id: UUID


@dataclass(frozen=True, slots=True)
class PartitionState:
    """What is known of a partition before a commit; no checkpoint means that nothing was committed yet.

    Only then the store tells when the stream was opened and, once that is decided, the anchor: the partition's first
    number.
    """

    partition: Partition
    stream_id: int
    checkpoint: Checkpoint | None
    anchor: SequenceNumber | None = None
    opened_at: datetime | None = None

    @property
    def next_number(self) -> SequenceNumber:
        """The number that the next commit begins at; the partition must be anchored or committed."""
        if self.checkpoint is not None:
            return SequenceNumber(self.checkpoint.sequence_number + 1)
        if self.anchor is None:
            raise ValueError(f"{self.partition} is not anchored")
        return self.anchor


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that could not become rows, kept whole with the reason; `fingerprint` groups letters of one cause.

    A waiting letter without a `due_at` is due when it is written; without `keeps_body` the hub alone has the body.
    """

    event: Event
    error_class: ErrorClass
    error_type: str
    error: str
    fingerprint: str
    status: LetterStatus
    due_at: datetime | None = None
    keeps_body: bool = True


@dataclass(frozen=True, slots=True)
class Settled:
    """The outcome of every event of a range: rows by class, letters, and how many events went which way."""

    rows: Mapping[type, Sequence[PlacedRow]]
    letters: Sequence[DeadLetter]
    written: int
    filtered: int

    @property
    def rows_written(self) -> int:
        """Rows over all classes; one event may write several."""
        return sum(map(len, self.rows.values()))

    @property
    def rows_appended(self) -> int:
        """Those of them that no later commit replaces, as one of states may."""
        return sum([len(placed) for row_class, placed in self.rows.items() if not row_table(row_class).key])


@dataclass(frozen=True, slots=True)
class SequenceGap:
    """A range of numbers that was missing once, and what became of it."""

    first: SequenceNumber
    last: SequenceNumber
    status: GapStatus


@dataclass(frozen=True, slots=True)
class BatchCommit:
    """All that one transaction writes for the numbers `first` to `last`, of which the hub no longer has `absent`."""

    state: PartitionState
    commit_id: UUID
    first: SequenceNumber
    last: Position
    settled: Settled
    transform_version: str
    invocation_id: str
    committed_at: datetime
    absent: int = 0
    gaps: Sequence[SequenceGap] = ()

    @property
    def partition(self) -> Partition:
        """The partition whose checkpoint this moves."""
        return self.state.partition

    @property
    def expected(self) -> SequenceNumber | None:
        """Where the checkpoint must stand for this commit to happen; None for the partition's first."""
        checkpoint = self.state.checkpoint
        return None if checkpoint is None else checkpoint.sequence_number

    @property
    def events(self) -> int:
        """How many events this accounts for; absent numbers are none."""
        return self.last.sequence_number - self.first + 1 - self.absent

    def state_after(self, commit_number: int) -> PartitionState:
        """The partition's state once this is committed under a number."""
        last = self.last
        checkpoint = Checkpoint(last.sequence_number, last.offset, last.enqueued_at, commit_number, self.commit_id)
        return PartitionState(self.partition, self.state.stream_id, checkpoint)

"""Replays: what a person asks for, the states that a job passes through, and the values of its pieces.

A job works through a range of each partition, piece by piece. Each piece is one transaction that also moves the job's
progress, by compare and set: so a piece is done once, however many work on the job, and a job that is not `running`
gets no further. The ranges of jobs that are planned, running or paused do not overlap, dry runs apart.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from core.model.events import Partition, PartitionId, Stream
from core.model.spans import SequenceNumber, Span

ReplayStatus = Literal["planned", "running", "paused", "done", "cancelled", "failed"]
ReplayMove = Literal["begin", "pause", "resume", "cancel", "fail"]


@dataclass(frozen=True, slots=True)
class AllowedMove:
    """One row of the table of moves: from any of these states to that one."""

    sources: tuple[ReplayStatus, ...]
    target: ReplayStatus


REPLAY_MOVES: Mapping[ReplayMove, AllowedMove] = {
    "begin": AllowedMove(("planned",), "running"),
    "pause": AllowedMove(("planned", "running"), "paused"),
    "resume": AllowedMove(("paused",), "running"),
    "cancel": AllowedMove(("planned", "running", "paused"), "cancelled"),
    "fail": AllowedMove(("planned", "running", "paused"), "failed"),
}  # the last piece of the last partition makes a running job `done`
OPEN_STATUSES: tuple[ReplayStatus, ...] = ("planned", "running", "paused")


@dataclass(frozen=True, slots=True)
class PartitionRange:
    """What of one partition is to be replayed; `note` says what was left out of what was asked for."""

    partition_id: PartitionId
    span: Span
    note: str | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A partition of a request in which nothing can be replayed."""

    partition_id: PartitionId
    why: str


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A job before it begins. `asked` is the range as JSON, in the words of whoever asked."""

    job_id: UUID
    stream: Stream
    ranges: tuple[PartitionRange, ...]
    left_out: tuple[LeftOut, ...]
    asked: str
    is_dry_run: bool
    transform_version: str
    requested_by: str
    reason: str
    requested_at: datetime


@dataclass(frozen=True, slots=True)
class ReplayCounts:
    """What a replay did so far. A dry run counts what it would have done, and what of it would change.

    `gone` numbers are not in the hub and have no letter. `states_left` are states of the range whose event did not
    write them again: they stand as they are.
    """

    events: int = 0
    written: int = 0
    filtered: int = 0
    dead_lettered: int = 0
    gone: int = 0
    letters_added: int = 0
    letters_resolved: int = 0
    rows_written: int = 0
    rows_retracted: int = 0
    events_changed: int = 0
    rows_added: int = 0
    rows_removed: int = 0
    rows_changed: int = 0
    states_rewritten: int = 0
    states_left: int = 0

    def plus(self, other: "ReplayCounts") -> "ReplayCounts":
        """Both together."""
        return ReplayCounts(*(getattr(self, name) + getattr(other, name) for name in COUNTS))


COUNTS: tuple[str, ...] = tuple(ReplayCounts.__dataclass_fields__)
MOST_GONE_RANGES = 1_000  # that a partition lists; `gone` counts all of them


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """How far a job is in one partition: `next_number` is what its next piece begins at."""

    range: PartitionRange
    next_number: SequenceNumber
    counts: ReplayCounts = field(default_factory=ReplayCounts)
    gone_ranges: tuple[Span, ...] = ()
    closed_at: datetime | None = None

    @property
    def is_through(self) -> bool:
        """Whether no piece is left; it may still have to be closed."""
        return self.next_number > self.range.span.last


@dataclass(frozen=True, slots=True)
class ReplayJob:
    """A job as it stands. `fault` is what stands in its way, or what ended it; `history` has a JSON object a line."""

    request: ReplayRequest
    status: ReplayStatus
    partitions: tuple[PartitionProgress, ...]
    started_at: datetime | None
    ended_at: datetime | None
    updated_at: datetime
    fault: str | None
    history: str

    @property
    def counts(self) -> ReplayCounts:
        """Over all partitions."""
        total = ReplayCounts()
        for one in self.partitions:
            total = total.plus(one.counts)
        return total

    def partition_of(self, progress: PartitionProgress) -> Partition:
        """The partition that a progress is of."""
        return self.request.stream.partition(progress.range.partition_id)

    def progress_of(self, partition_id: PartitionId) -> PartitionProgress | None:
        """How far it is in a partition; None for one that it does not touch."""
        return next((one for one in self.partitions if one.range.partition_id == partition_id), None)


@dataclass(frozen=True, slots=True)
class Replayable:
    """How far a partition can be replayed: from the first number of its ledger to the checkpoint."""

    partition_id: PartitionId
    first: SequenceNumber
    checkpoint: SequenceNumber


@dataclass(frozen=True, slots=True)
class JobMove:
    """A change of a job's status, by whom and why."""

    job_id: UUID
    move: ReplayMove
    by: str
    why: str
    moved_at: datetime
    fault: str | None = None

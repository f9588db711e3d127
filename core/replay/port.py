"""The store that replays need: jobs, their pieces, and rehearsals that are rolled back."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Protocol
from uuid import UUID

from core.model.commits import PartitionState
from core.model.events import Event, Partition, PartitionId, Stream
from core.model.jobs import JobMove
from core.model.rows import ReferenceKey
from core.model.spans import SequenceNumber, Span
from core.replay.job import PartitionProgress, Replayable, ReplayJob, ReplayRequest
from core.replay.pieces import (
    CarriedState,
    EventDiff,
    Rehearsal,
    RehearsedPiece,
    ReplayCommit,
    StandingState,
)
from core.settle.order import OpenLetter


class ReplayStore(Protocol):
    """Stores jobs and their progress. A change of a job conflicts when its status or progress is not as expected."""

    def read_partition(self, partition: Partition) -> PartitionState:
        """Return the partition's stream and checkpoint; open a stream that the store does not know yet."""

    def read_replayable(self, stream: Stream) -> tuple[Replayable, ...]:
        """Return the numbers of each partition that can be replayed; partitions without a commit are left out."""

    def open_replay(self, request: ReplayRequest) -> None:
        """Write a new job, planned.

        Raises ReplayOverlap, with nothing written, when an open job holds part of its range; dry runs hold no range.
        Raises TooManyReplays, with nothing written, when MOST_OPEN jobs of the stream are open.
        Raises ReplayRefused, with nothing written, when the stream was closed after its numbers were read.
        Raises CommitOutcomeUnknown when the answer was lost.
        """

    def find_replay(self, job_id: UUID) -> ReplayJob | None:
        """Return a job as it is now, or None."""

    def read_replays(self, stream: Stream, most: int, before: tuple[datetime, UUID] | None) -> tuple[ReplayJob, ...]:
        """Return jobs of a stream, the newest first; with `before`, only those after the job of that time and id."""

    def read_open_replays(self, stream: Stream) -> tuple[UUID, ...]:
        """Return the jobs of a stream that are planned or running."""

    def read_replay_diffs(
        self, job_id: UUID, after: tuple[PartitionId, SequenceNumber] | None, most: int
    ) -> tuple[EventDiff, ...]:
        """Return the diffs of a dry run that come after an event, by partition and number."""

    def move_replay(self, move: JobMove) -> bool:
        """Change a job's status if JOB_MOVES allows it; otherwise return False and change nothing."""

    def note_replay_fault(self, job_id: UUID, fault: str | None, at: datetime) -> None:
        """Record the fault that holds up an open job, or None when the job continues."""

    def read_standing_states(
        self, state: PartitionState, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, StandingState]:
        """Return the current `state_of` rows of these keys, as events of this partition see them."""

    def read_carried(
        self, job_id: UUID, partition_id: PartitionId, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, CarriedState]:
        """Return the states of these keys that the pieces of a job have written so far."""

    def find_open_letters(
        self, state: PartitionState, keys: AbstractSet[str], before: SequenceNumber
    ) -> Mapping[str, OpenLetter]:
        """Return the last open letter before a number of each of these partition keys that has one."""

    def find_opened(self, job_id: UUID, partition_id: PartitionId, keys: AbstractSet[str]) -> Mapping[str, OpenLetter]:
        """Return the last letter of each of these partition keys that a dry run would have left open so far."""

    def find_discarded(self, state: PartitionState, span: Span) -> frozenset[SequenceNumber]:
        """Return the numbers of a range whose letter a person discarded."""

    def find_crashed(self, state: PartitionState, span: Span, transform_version: str) -> frozenset[SequenceNumber]:
        """Return the numbers of a range whose letter is of class `crash`, made with this version of the transform."""

    def read_kept_events(self, state: PartitionState, span: Span, most: int) -> tuple[Event, ...]:
        """Return the first events of a range that letters have with their body, or that are staged, in order."""

    def commit_replay(self, commit: ReplayCommit) -> int:
        """Retract the rows of the events, write their new rows, settle their letters, write a ledger row, remove the
        staged events, and move the progress, in one transaction; return its commit number. The partition's commit
        number is raised, but its checkpoint does not move. If the state has open keys, all open letters of the keys of
        this piece are held and freed by their order.

        Raises ReplayConflict (the progress has moved, the job does not run, or a different replay has committed since
        the state was read and may have opened letters) and DataRefused; neither writes anything. Raises
        CommitOutcomeUnknown when the answer was lost.
        """

    def rehearse_replay(self, commit: ReplayCommit) -> Rehearsal:
        """Do a commit except for the job's own rows, roll it back, and return its effects. Raises DataRefused."""

    def note_rehearsal(self, rehearsed: RehearsedPiece) -> None:
        """Move the progress of a dry run, and write its diffs. Raises ReplayConflict and CommitOutcomeUnknown."""

    def close_replay(
        self, job: ReplayJob, progress: PartitionProgress, row_classes: Iterable[type], at: datetime
    ) -> None:
        """Close a partition that has no piece left, and count the states that were not written again.

        The last partition ends the job.
        """

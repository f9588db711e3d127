"""The store that replays need: jobs, their pieces, and rehearsals that are rolled back."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol
from uuid import UUID

from core.model.commits import PartitionState
from core.model.events import Event, Partition, PartitionId, Stream
from core.model.rows import ReferenceKey
from core.model.spans import SequenceNumber, Span
from core.replay.job import JobMove, PartitionProgress, Replayable, ReplayJob, ReplayRequest
from core.replay.pieces import CarriedState, EventDiff, Rehearsal, RehearsedPiece, ReplayCommit, StandingState


class ReplayStore(Protocol):
    """What an engine keeps of replays. Where it changes a job, another status or progress than expected conflicts."""

    def read_partition(self, partition: Partition) -> PartitionState:
        """Return the partition's stream and checkpoint; a stream that the store does not know yet is opened."""
        ...

    def read_replayable(self, stream: Stream) -> tuple[Replayable, ...]:
        """How far each partition of the stream can be replayed; those without a commit are left out."""
        ...

    def open_replay(self, request: ReplayRequest) -> None:
        """Keep a new job, planned. Raises ReplayOverlap, and keeps nothing, where an open job holds part of its range;
        dry runs hold none. CommitOutcomeUnknown when the answer was lost."""
        ...

    def find_replay(self, job_id: UUID) -> ReplayJob | None:
        """A job as it stands."""
        ...

    def read_replays(self, stream: Stream, most: int, before: tuple[datetime, UUID] | None) -> tuple[ReplayJob, ...]:
        """Jobs of a stream, the newest first, behind the one that was requested at that time under that id."""
        ...

    def read_open_replays(self, stream: Stream) -> tuple[UUID, ...]:
        """The jobs of a stream that are planned or running."""
        ...

    def read_replay_diffs(
        self, job_id: UUID, after: tuple[PartitionId, SequenceNumber] | None, most: int
    ) -> tuple[EventDiff, ...]:
        """What a dry run shows, by partition and number, behind an event."""
        ...

    def move_replay(self, move: JobMove) -> bool:
        """Change a job's status where REPLAY_MOVES allows it; False, and nothing changed, if not."""
        ...

    def note_replay_fault(self, job_id: UUID, fault: str | None, at: datetime) -> None:
        """Keep what stands in an open job's way at the moment, or that nothing does."""
        ...

    def read_standing_states(
        self, state: PartitionState, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, StandingState]:
        """The `state_of` rows that stand for these keys, as events of this partition see them."""
        ...

    def read_carried(
        self, job_id: UUID, partition_id: PartitionId, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, CarriedState]:
        """The states under these keys that the pieces of a job carried along so far."""
        ...

    def read_kept_events(self, state: PartitionState, span: Span, most: int) -> tuple[Event, ...]:
        """The events of a range that letters kept with their body, or else are staged, rising; the first of them."""
        ...

    def commit_replay(self, commit: ReplayCommit) -> int:
        """Take away what the events wrote, write what they write now, settle their letters, record it, forget that they
        were staged, and move the progress, in one transaction; return its commit number. The checkpoint stays, and its
        commit number is raised.

        Raises ReplayConflict (the progress is elsewhere, or the job does not run) and DataRefused, both with nothing
        written, and CommitOutcomeUnknown when the answer was lost.
        """
        ...

    def rehearse_replay(self, commit: ReplayCommit) -> Rehearsal:
        """The same without the job's own rows, rolled back: what it would have done. Raises DataRefused."""
        ...

    def note_rehearsal(self, rehearsed: RehearsedPiece) -> None:
        """Move the progress of a dry run. Raises ReplayConflict and CommitOutcomeUnknown as commit_replay does."""
        ...

    def close_replay(
        self, job: ReplayJob, progress: PartitionProgress, row_classes: Iterable[type], at: datetime
    ) -> None:
        """Close a partition of a running job that is through, with the states that were left; the last one ends it."""
        ...

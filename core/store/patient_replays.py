"""A store of replays that waits: short retries while the database is unavailable, so that a failover ends no slice."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from core.model.commits import PartitionState
from core.model.events import Event, Partition, PartitionId, Stream
from core.model.rows import ReferenceKey
from core.model.spans import SequenceNumber, Span
from core.replay.job import JobMove, PartitionProgress, Replayable, ReplayJob, ReplayRequest
from core.replay.pieces import CarriedState, EventDiff, Rehearsal, RehearsedPiece, ReplayCommit, StandingState
from core.replay.port import ReplayStore
from core.store.patient import Patience, Waiting

Behind = tuple[PartitionId, SequenceNumber]


class PatientReplays:
    """Any ReplayStore, called with patience; see there for each method."""

    def __init__(self, store: ReplayStore, patience: timedelta, waiting: Waiting | None = None) -> None:
        self._store = store
        self._patiently = Patience(patience, waiting)

    def read_partition(self, partition: Partition) -> PartitionState:
        """See Store."""
        return self._patiently(lambda: self._store.read_partition(partition))

    def read_replayable(self, stream: Stream) -> tuple[Replayable, ...]:
        """See ReplayStore."""
        return self._patiently(lambda: self._store.read_replayable(stream))

    def open_replay(self, request: ReplayRequest) -> None:
        """See ReplayStore."""
        self._patiently(lambda: self._store.open_replay(request))

    def find_replay(self, job_id: UUID) -> ReplayJob | None:
        """See ReplayStore."""
        return self._patiently(lambda: self._store.find_replay(job_id))

    def read_replays(self, stream: Stream, most: int, before: tuple[datetime, UUID] | None) -> tuple[ReplayJob, ...]:
        """See ReplayStore."""
        return self._patiently(lambda: self._store.read_replays(stream, most, before))

    def read_open_replays(self, stream: Stream) -> tuple[UUID, ...]:
        """See ReplayStore."""
        return self._patiently(lambda: self._store.read_open_replays(stream))

    def read_replay_diffs(self, job_id: UUID, after: Behind | None, most: int) -> tuple[EventDiff, ...]:
        """See ReplayStore."""
        return self._patiently(lambda: self._store.read_replay_diffs(job_id, after, most))

    def move_replay(self, move: JobMove) -> bool:
        """See ReplayStore."""
        return self._patiently(lambda: self._store.move_replay(move))

    def note_replay_fault(self, job_id: UUID, fault: str | None, at: datetime) -> None:
        """See ReplayStore."""
        self._patiently(lambda: self._store.note_replay_fault(job_id, fault, at))

    def read_standing_states(
        self, state: PartitionState, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, StandingState]:
        """See ReplayStore."""
        wanted = list(keys)
        return self._patiently(lambda: self._store.read_standing_states(state, wanted))

    def read_carried(
        self, job_id: UUID, partition_id: PartitionId, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, CarriedState]:
        """See ReplayStore."""
        wanted = list(keys)
        return self._patiently(lambda: self._store.read_carried(job_id, partition_id, wanted))

    def read_kept_events(self, state: PartitionState, span: Span, most: int) -> tuple[Event, ...]:
        """See ReplayStore."""
        return self._patiently(lambda: self._store.read_kept_events(state, span, most))

    def commit_replay(self, commit: ReplayCommit) -> int:
        """See ReplayStore."""
        return self._patiently(lambda: self._store.commit_replay(commit))

    def rehearse_replay(self, commit: ReplayCommit) -> Rehearsal:
        """See ReplayStore."""
        return self._patiently(lambda: self._store.rehearse_replay(commit))

    def note_rehearsal(self, rehearsed: RehearsedPiece) -> None:
        """See ReplayStore."""
        self._patiently(lambda: self._store.note_rehearsal(rehearsed))

    def close_replay(
        self, job: ReplayJob, progress: PartitionProgress, row_classes: Iterable[type], at: datetime
    ) -> None:
        """See ReplayStore."""
        classes = list(row_classes)
        self._patiently(lambda: self._store.close_replay(job, progress, classes, at))

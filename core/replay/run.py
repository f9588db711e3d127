"""Replay: accept what a person asks for, and work through it piece by piece, each piece one transaction.

SQL is the truth and whoever calls these functions only drives: calling too often, twice at once, too late or never
again repeats nothing and loses nothing, for a piece moves the job's progress in the transaction that has its effect.
"""

from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from core.errors import CommitOutcomeUnknown, DataRefused, InfrastructureFault, ReplayConflict, StreamIncarnationChanged
from core.model.clock import Clock
from core.model.commits import PartitionState
from core.model.events import PartitionId, Stream
from core.model.hub import HubReader
from core.model.letters import LetterPolicy
from core.model.rows import ReferenceKey
from core.model.spans import SequenceNumber, Span
from core.model.transform import Transform
from core.replay.diff import newest_states, rehearsed_piece
from core.replay.job import JobMove, PartitionProgress, ReplayCounts, ReplayJob, ReplayMove, ReplayRequest
from core.replay.pieces import Piece, ReplayCommit
from core.replay.plan import KnownStates, ReplayTrial, plan_replay
from core.replay.port import ReplayStore
from core.replay.ranges import Reach, ReplayOrder, ranges_of
from core.replay.reader import PIECE, PieceReader
from core.settle.settle import reference_keys

CONFLICTS = 5  # in a row in which nothing came of a partition; after them the fault goes to the caller
KEEPER = "replay"  # who moves a job that no person moves

Settle = Callable[[ReplayCommit], ReplayCounts]  # do it, or rehearse it


@dataclass(frozen=True, slots=True)
class ReplayMeans:
    """What replays of one stream are done with; `piece` is the number of events of a piece."""

    stream: Stream
    store: ReplayStore
    hub: HubReader
    transform: Transform
    clock: Clock
    letters: LetterPolicy = LetterPolicy()  # noqa: RUF009 - it is frozen
    piece: int = PIECE


@dataclass(frozen=True, slots=True)
class SliceReport:
    """What became of a slice of work: `is_over` when nothing is left of the partition, or the job does not run."""

    partition_id: PartitionId
    is_over: bool
    pieces: int
    events: int

    def to_json(self) -> dict[str, str | int | bool]:
        """The report as JSON holds it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def request_replay(order: ReplayOrder, means: ReplayMeans, most_events: int) -> ReplayJob:
    """Make the job that a person asks for, `planned`, with its numbers and what is left out of it.

    Raises ReplayRefused for what cannot be replayed, ReplayOverlap when another job holds part of it.
    """
    store, clock = means.store, means.clock
    reach = Reach(means.stream, store.read_replayable(means.stream), means.hub, most_events)
    ranges, left_out = ranges_of(order, reach)
    request = ReplayRequest(
        job_id=clock.new_id(),
        stream=means.stream,
        ranges=ranges,
        left_out=left_out,
        asked=order.asked,
        is_dry_run=order.is_dry_run,
        transform_version=means.transform.version,
        requested_by=order.requested_by,
        reason=order.reason,
        requested_at=clock.now(),
    )
    try:
        store.open_replay(request)
    except CommitOutcomeUnknown:
        if store.find_replay(request.job_id) is None:
            store.open_replay(request)
    job = store.find_replay(request.job_id)
    assert job is not None, "jobs are never deleted"
    return job


def open_partitions(job_id: UUID, means: ReplayMeans) -> tuple[PartitionId, ...]:
    """Begin a planned job, and say which of its partitions have work left; none when it does not run."""
    job = means.store.find_replay(job_id)
    if job is not None and job.status == "planned":
        means.store.move_replay(_move(job_id, "begin", "", means))
        job = means.store.find_replay(job_id)
    if job is None or job.status != "running":
        return ()
    return tuple(one.range.partition_id for one in job.partitions if one.closed_at is None)


def replay_slice(job_id: UUID, partition_id: PartitionId, means: ReplayMeans, until: datetime) -> SliceReport:
    """Work on one partition of a running job until a time, or until nothing is left; the first piece is always done.

    Raises InfrastructureFault; the pieces before it stand. A hub that is not the one we knew ends the job as `failed`.
    """
    work = _Slice(job_id, means, until)
    while True:
        job = means.store.find_replay(job_id)
        progress = job.progress_of(partition_id) if job is not None and job.status == "running" else None
        if job is None or progress is None or progress.closed_at is not None:
            return SliceReport(partition_id, True, work.pieces, work.events)
        try:
            is_through = work.go_on(job, progress)
        except (ReplayConflict, CommitOutcomeUnknown) as conflict:
            work.note_conflict(conflict)
        except StreamIncarnationChanged as fault:
            means.store.move_replay(_move(job_id, "fail", str(fault), means))
            raise
        else:
            if not is_through:
                return SliceReport(partition_id, False, work.pieces, work.events)


def note_fault(job_id: UUID, fault: InfrastructureFault | None, means: ReplayMeans) -> None:
    """Keep with the job what stands in its way at the moment, or that nothing does any more."""
    means.store.note_replay_fault(job_id, None if fault is None else str(fault), means.clock.now())


def _move(job_id: UUID, move: ReplayMove, fault: str, means: ReplayMeans) -> JobMove:
    return JobMove(job_id, move, KEEPER, "", means.clock.now(), fault or None)


@dataclass(slots=True)
class _Slice:
    """One partition's work: what came of it, and the events that the database refuses, with its words."""

    job_id: UUID
    means: ReplayMeans
    until: datetime
    pieces: int = 0
    events: int = 0
    conflicts: int = 0
    refused: dict[SequenceNumber, str] = field(default_factory=dict)

    def go_on(self, job: ReplayJob, progress: PartitionProgress) -> bool:
        """Whether the partition came to its end; it is closed then."""
        means = self.means
        state = means.store.read_partition(means.stream.partition(progress.range.partition_id))
        settle = self._rehearse if job.request.is_dry_run else self._commit
        last = progress.range.span.last
        events = means.hub.read_range(state.partition, progress.next_number, last, self.until)
        with closing(PieceReader(means.store, state, events, means.piece)) as reader:
            while not progress.is_through:
                if self.pieces and means.clock.now() >= self.until:
                    return False
                piece = reader.next_piece(Span(progress.next_number, last))
                progress = self._settle(piece, progress, state, settle)
        means.store.close_replay(job, progress, means.transform.row_classes, means.clock.now())
        return True

    def note_conflict(self, conflict: ReplayConflict | CommitOutcomeUnknown) -> None:
        """Another one is at it as well, or an answer was lost; raises it again when that goes on for too long."""
        self.conflicts += 1
        if self.conflicts >= CONFLICTS:
            raise conflict

    def _settle(
        self, piece: Piece, progress: PartitionProgress, state: PartitionState, settle: Settle
    ) -> PartitionProgress:
        """Settle a piece, in halves and halves of them where the database refuses it; return the progress after it."""
        parts = [piece]
        while parts:
            part = parts.pop(0)
            commit = self._plan(part, progress, state)
            try:
                counts = settle(commit)
            except DataRefused as fault:
                parts[:0] = self._after_refusal(part, fault)
            else:
                self.conflicts = 0
                self.events += len(part.events)
                progress = _after(progress, commit, counts)
        self.pieces += 1
        return progress

    def _plan(self, part: Piece, progress: PartitionProgress, state: PartitionState) -> ReplayCommit:
        """READ the states that the events refer to, and DECIDE."""
        means = self.means
        keys = reference_keys(part.events, means.transform)
        known = self._known(state, keys) if keys else KnownStates()
        trial = ReplayTrial(self.job_id, state, means.transform, self.refused, means.letters)
        return plan_replay(part, progress, known, trial, means.clock)

    def _known(self, state: PartitionState, keys: Collection[ReferenceKey]) -> KnownStates:
        store = self.means.store
        carried = store.read_carried(self.job_id, state.partition.partition_id, keys)
        return KnownStates(store.read_standing_states(state, keys), carried)

    def _after_refusal(self, part: Piece, fault: DataRefused) -> tuple[Piece, ...]:
        if len(part.events) > 1:
            return part.halves()
        if not part.events or part.events[0].sequence_number in self.refused:
            raise fault  # its letter is refused as well: not the rows' fault
        self.refused[part.events[0].sequence_number] = str(fault)
        return (part,)

    def _commit(self, commit: ReplayCommit) -> ReplayCounts:
        self.means.store.commit_replay(commit)
        return commit.counts

    def _rehearse(self, commit: ReplayCommit) -> ReplayCounts:
        """Do it and roll it back, and keep what would have changed."""
        store = self.means.store
        keys = newest_states(commit)
        standing = store.read_standing_states(commit.state, keys) if keys else {}
        rehearsed = rehearsed_piece(commit, store.rehearse_replay(commit), standing)
        store.note_rehearsal(rehearsed)
        return rehearsed.counts


def _after(progress: PartitionProgress, commit: ReplayCommit, counts: ReplayCounts) -> PartitionProgress:
    """The progress once a commit stands; the store counts more exactly."""
    counted = progress.counts.plus(counts)
    return replace(progress, next_number=commit.next_number, gone_ranges=commit.gone_ranges, counts=counted)

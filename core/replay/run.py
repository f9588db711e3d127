"""Replay: accept the request of a person, and work through it piece by piece, each piece one transaction.

SQL holds the progress; the caller only drives the job. If it calls too often, too late, twice at once or never again,
nothing is lost and nothing is done twice, because each piece moves the progress of its job in its own transaction.
"""

from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from core.errors import CommitOutcomeUnknown, DataRefused, InfrastructureFault, ReplayConflict, StreamIncarnationChanged
from core.model.clock import Clock
from core.model.commits import OpenKeys, PartitionState
from core.model.events import BATCH_EVENTS, PartitionId, Stream, order_key
from core.model.hub import HubReader
from core.model.jobs import JobMove, JobVerb
from core.model.letters import LetterPolicy
from core.model.rows import ReferenceKey
from core.model.spans import SequenceNumber, Span
from core.model.transform import Transform
from core.replay.diff import newest_states, rehearsed_piece
from core.replay.job import PartitionProgress, ReplayCounts, ReplayJob, ReplayRequest
from core.replay.pieces import Piece, PieceReader, ReplayCommit
from core.replay.plan import KnownLetters, KnownStates, ReplayTrial, plan_replay
from core.replay.ranges import ReplayOrder, ReplayReach, ranges_of
from core.replay.store.replays import Replays
from core.settle.isolate import Isolation
from core.settle.settle import reference_keys

CONFLICT_LIMIT = 5  # conflicts in a row that settle no piece of a partition; then the fault goes to the caller
KEEPER = "replay"  # the author of a move that no person orders

Settle = Callable[[ReplayCommit], ReplayCounts]  # commits a piece, or rehearses it


@dataclass(frozen=True, slots=True)
class ReplayMeans:
    """The means of the replays of one stream; `piece` is the number of events of a piece."""

    stream: Stream
    store: Replays
    hub: HubReader
    transform: Transform
    clock: Clock
    letters: LetterPolicy = LetterPolicy()  # noqa: RUF009 - it is frozen
    piece: int = BATCH_EVENTS


@dataclass(frozen=True, slots=True)
class SliceReport:
    """The outcome of a slice of work. `is_over`: nothing is left of the partition, or the job does not run."""

    partition_id: PartitionId
    is_over: bool
    pieces: int
    events: int

    def to_json(self) -> dict[str, str | int | bool]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def request_replay(order: ReplayOrder, means: ReplayMeans, most_events: int) -> ReplayJob:
    """Open the job that a person requests: `planned`, with its numbers and with the numbers that are left out.

    Raises ReplayRefused for a range that cannot be replayed, ReplayOverlap when a different job holds part of it,
    TooManyReplays when too many jobs are open.
    """
    store, clock = means.store, means.clock
    reach = ReplayReach(means.stream, store.read_replayable(means.stream), means.hub, most_events)
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
    return _opened(request, store)


def open_partitions(job_id: UUID, means: ReplayMeans) -> tuple[PartitionId, ...]:
    """Begin a planned job, and return its partitions with work left; none when the job does not run."""
    job = means.store.find_replay(job_id)
    if job is not None and job.status == "planned":
        means.store.move_replay(_move(job_id, "begin", "", means))
        job = means.store.find_replay(job_id)
    if job is None or job.status != "running":
        return ()
    return tuple(one.range.partition_id for one in job.partitions if one.closed_at is None)


def replay_slice(job_id: UUID, partition_id: PartitionId, means: ReplayMeans, until: datetime) -> SliceReport:
    """Work on one partition of a running job until a time, or until nothing is left; the first piece is always done.

    Raises InfrastructureFault; the pieces before the fault remain. If the hub is a new one, the job ends as `failed`.
    """
    work = _WorkSlice(job_id, means, until)
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
    """Record the fault that holds up a job, or None when the job continues."""
    means.store.note_replay_fault(job_id, None if fault is None else str(fault), means.clock.now())


def _opened(request: ReplayRequest, store: Replays) -> ReplayJob:
    try:
        store.open_replay(request)
    except CommitOutcomeUnknown:
        if store.find_replay(request.job_id) is None:
            store.open_replay(request)
    job = store.find_replay(request.job_id)
    if job is None:
        raise CommitOutcomeUnknown(f"replay {request.job_id} was opened but cannot be read; look for it in the list")
    return job


def _move(job_id: UUID, move: JobVerb, fault: str, means: ReplayMeans) -> JobMove:
    return JobMove(job_id, move, KEEPER, "", means.clock.now(), fault or None)


@dataclass(slots=True)
class _WorkSlice:
    """The work on one partition; `refused` maps each refused event to the database's error."""

    job_id: UUID
    means: ReplayMeans
    until: datetime
    pieces: int = 0
    events: int = 0
    conflicts: int = 0
    refused: dict[SequenceNumber, str] = field(default_factory=dict)
    is_dry_run: bool = False

    def go_on(self, job: ReplayJob, progress: PartitionProgress) -> bool:
        """Replay piece after piece until the time is up; return True once the partition is at its end and closed."""
        means = self.means
        state = means.store.read_partition(means.stream.partition(progress.range.partition_id))
        if means.letters.order == "hold_key":
            state = replace(state, open_keys=OpenKeys(None))
        self.is_dry_run = job.request.is_dry_run
        settle = self._rehearse if self.is_dry_run else self._commit
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
        """Count a conflict with another worker, or a lost answer; raise it again after too many in a row."""
        self.conflicts += 1
        if self.conflicts >= CONFLICT_LIMIT:
            raise conflict

    def _settle(
        self, piece: Piece, progress: PartitionProgress, state: PartitionState, settle: Settle
    ) -> PartitionProgress:
        """Settle a piece, in parts if the database refuses it; return the progress after the piece."""
        isolation, left = Isolation(refused=self.refused), piece
        while True:
            part, rest = left.cut(len(isolation.next_run(left.events)))
            commit = self._plan(part, progress, state, isolation.around(self.means.transform))
            try:
                counts = settle(commit)
            except DataRefused as fault:
                isolation.note_refusal(part.events, fault)
                continue
            isolation.note_commit(part.events)
            self.conflicts = 0
            self.events += len(part.events)
            progress = _after(progress, commit, counts)
            if rest is None:
                self.pieces += 1
                return progress
            left = rest

    def _plan(
        self, part: Piece, progress: PartitionProgress, state: PartitionState, transform: Transform
    ) -> ReplayCommit:
        """READ the states that the events refer to, and DECIDE."""
        means = self.means
        crashed = means.store.find_crashed(state, part.span, transform.version)
        tried = [event for event in part.events if event.sequence_number not in crashed]
        keys = reference_keys(tried, transform, state.partition)
        known = self._known(state, keys) if keys else KnownStates()
        letters = self._known_letters(part, progress, state) if state.open_keys else None
        trial = ReplayTrial(self.job_id, state, transform, means.letters, letters, crashed)
        return plan_replay(part, progress, known, trial, means.clock)

    def _known(self, state: PartitionState, keys: Collection[ReferenceKey]) -> KnownStates:
        store = self.means.store
        carried = store.read_carried(self.job_id, state.partition.partition_id, keys)
        return KnownStates(store.read_standing_states(state, keys), carried)

    def _known_letters(self, part: Piece, progress: PartitionProgress, state: PartitionState) -> KnownLetters:
        """Read the open letters before a piece. A dry run leaves none: its own are stored with the job."""
        store, keys = self.means.store, frozenset([key for key in map(order_key, part.events) if key is not None])
        before = progress.range.span.first if self.is_dry_run else part.span.first
        found = dict(store.find_open_letters(state, keys, before)) if keys else {}
        if keys and self.is_dry_run:
            found.update(store.find_opened(self.job_id, state.partition.partition_id, keys))
        return KnownLetters(found, store.find_discarded(state, part.span) if keys else frozenset())

    def _commit(self, commit: ReplayCommit) -> ReplayCounts:
        self.means.store.commit_replay(commit)
        return commit.counts

    def _rehearse(self, commit: ReplayCommit) -> ReplayCounts:
        """Run a commit, roll it back, and store the changes that it would make."""
        store = self.means.store
        keys = newest_states(commit)
        standing = store.read_standing_states(commit.state, keys) if keys else {}
        rehearsed = rehearsed_piece(commit, store.rehearse_replay(commit), standing)
        store.note_rehearsal(rehearsed)
        return rehearsed.counts


def _after(progress: PartitionProgress, commit: ReplayCommit, counts: ReplayCounts) -> PartitionProgress:
    """Return the progress after a commit; the store has the more exact counts."""
    counted = progress.counts.plus(counts)
    return replace(progress, next_number=commit.next_number, gone_ranges=commit.gone_ranges, counts=counted)

"""Redrive: accept the request of a person, and work through its letters piece by piece, each piece one transaction.

SQL holds the progress and the time of the next piece; the caller only drives the job. If it calls too often, too late,
twice at once or never again, no letter is moved twice and the cap of the rate holds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from core.errors import CommitOutcomeUnknown, InfrastructureFault
from core.letters.listing import LetterFilter
from core.letters.moves import CountDiffers, LetterOrder
from core.letters.redrive import (
    LONGEST_REST,
    Redrive,
    RedriveConflict,
    RedrivePiece,
    RedrivePreview,
    RedriveProgress,
    RedriveRange,
    RedriveRequest,
    Walked,
    next_piece_at,
    piece_limit,
    until_request,
)
from core.letters.store.listing import LetterListing
from core.letters.store.redrives import Redrives
from core.model.clock import Clock
from core.model.events import PartitionId, Stream
from core.model.jobs import JobMove, JobVerb
from core.model.letters import MOVES, LetterMove, OrderedMove, Selection
from core.model.spans import SequenceNumber, Span

CONFLICT_LIMIT = 5  # conflicts in a row; then the fault goes to the caller
KEEPER = "redrive"  # the author of a move that no person orders
SAMPLED, CAUSES = 5, 100


@dataclass(frozen=True, slots=True)
class RedriveMeans:
    """The means of the redrives of one stream; `rest` sleeps for a time."""

    stream: Stream
    store: Redrives
    chosen: LetterListing
    clock: Clock
    rest: Callable[[timedelta], None]


@dataclass(frozen=True, slots=True)
class RedriveSliceReport:
    """The outcome of a slice of work. `is_over`: nothing is left, or the job does not run."""

    is_over: bool
    pieces: int
    looked_at: int

    def to_json(self) -> dict[str, int | bool]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def preview_redrive(move: OrderedMove, wanted: LetterFilter, chosen: LetterListing) -> RedrivePreview:
    """Return the letters that a job would move now, by cause and with a sample; nothing changes."""
    statuses = MOVES[move].sources
    causes = chosen.cause_matching(wanted, statuses, CAUSES)
    sample = chosen.sample_matching(wanted, statuses, SAMPLED)
    return RedrivePreview(chosen.count_matching(wanted, statuses), causes, sample)


def request_redrive(order: LetterOrder, per_second: int | None, means: RedriveMeans) -> Redrive | CountDiffers:
    """Open the job that a person requests, if the number of letters is as expected.

    Raises RedriveOverlap when an open job has the same filter or selection, TooManyRedrives when too many are open, and
    RedriveConflict when the next incarnation was opened since the letters were counted.
    """
    now, stream_id = means.clock.now(), means.chosen.find_stream()
    ranges = _ranges(order, means.chosen, now)
    total = sum(one.letters for one in ranges)
    if total != order.expected_count or not total or stream_id is None:
        return CountDiffers(total)
    request = RedriveRequest(
        redrive_id=means.clock.new_id(),
        stream=means.stream,
        stream_id=stream_id,
        move=order.move,
        wanted=order.chosen if isinstance(order.chosen, LetterFilter) else None,
        ranges=ranges,
        total=total,
        per_second=per_second,
        requested_by=order.mover.by,
        reason=order.mover.why,
        requested_at=now,
    )
    return _opened(request, means.store)


def redrive_slice(redrive_id: UUID, means: RedriveMeans, until: datetime) -> RedriveSliceReport:
    """Work on a job until a time, or until nothing is left; the first piece is always tried.

    Raises InfrastructureFault; the pieces before the fault remain.
    """
    pieces = looked_at = conflicts = 0
    while True:
        job = _begun(redrive_id, means)
        if job is None:
            return RedriveSliceReport(True, pieces, looked_at)
        if (pieces or conflicts) and means.clock.now() >= until:
            return RedriveSliceReport(False, pieces, looked_at)
        if _rested(job, means):
            continue
        try:
            found = _advance(job, means)
        except (RedriveConflict, CommitOutcomeUnknown):
            conflicts += 1
            if conflicts >= CONFLICT_LIMIT:
                raise
        else:
            conflicts, pieces, looked_at = 0, pieces + 1, looked_at + found


def note_fault(redrive_id: UUID, fault: InfrastructureFault | None, means: RedriveMeans) -> None:
    """Record the fault that holds up a job, or None when the job continues."""
    means.store.note_redrive_fault(redrive_id, None if fault is None else str(fault), means.clock.now())


def _ranges(order: LetterOrder, chosen: LetterListing, now: datetime) -> tuple[RedriveRange, ...]:
    statuses = MOVES[order.move].sources
    if isinstance(order.chosen, LetterFilter):
        return chosen.range_matching(until_request(order.chosen, now), statuses)
    return _selected(chosen.find_selected(order.chosen, statuses))


def _selected(positions: Selection) -> tuple[RedriveRange, ...]:
    numbers: dict[PartitionId, list[SequenceNumber]] = {}
    for one in positions:
        numbers.setdefault(one.partition_id, []).append(one.sequence_number)
    return tuple(
        RedriveRange(id, Span(min(own), max(own)), len(own), tuple(sorted(own))) for id, own in sorted(numbers.items())
    )


def _opened(request: RedriveRequest, store: Redrives) -> Redrive:
    try:
        store.open_redrive(request)
    except CommitOutcomeUnknown:
        if store.find_redrive(request.redrive_id) is None:
            store.open_redrive(request)
    job = store.find_redrive(request.redrive_id)
    if job is None:
        raise CommitOutcomeUnknown(f"redrive {request.redrive_id} was opened but cannot be read; find it in the list")
    return job


def _begun(redrive_id: UUID, means: RedriveMeans) -> Redrive | None:
    """Return a job that runs, begun if it was planned; None when it does not run."""
    job = means.store.find_redrive(redrive_id)
    if job is not None and job.status == "planned":
        means.store.move_redrive(_move(redrive_id, "begin", means))
        job = means.store.find_redrive(redrive_id)
    return job if job is not None and job.status == "running" else None


def _move(redrive_id: UUID, move: JobVerb, means: RedriveMeans) -> JobMove:
    return JobMove(redrive_id, move, KEEPER, "", means.clock.now())


def _rested(job: Redrive, means: RedriveMeans) -> bool:
    """Rest until the time of the next piece; False when that time has come.

    A time that is farther away was set by a clock that was ahead, so it does not count.
    """
    wait = job.next_piece_at - means.clock.now()
    if not timedelta() < wait <= LONGEST_REST:
        return False
    means.rest(wait)
    return True


def _advance(job: Redrive, means: RedriveMeans) -> int:
    """READ the next letters, DECIDE, and write them as one piece; when none is left, close the partition."""
    progress = job.open_progress
    walked = None if progress is None else _walk(job, progress, means.store)
    if progress is None or walked is None:
        means.store.close_partition(job, means.clock.now())
        return 0
    means.store.commit_piece(plan_piece(job, progress, walked, means.clock.now()))
    return len(walked.numbers)


def _walk(job: Redrive, progress: RedriveProgress, store: Redrives) -> Walked | None:
    """Return the letters of the next piece; None when none is left."""
    request, most = job.request, piece_limit(job.request.per_second)
    selected = progress.range.numbers
    if selected is None:
        return store.walk(job, MOVES[request.move].sources, most)
    if request.walks_up:
        left = [number for number in selected if number > progress.walked_to][:most]
    else:
        left = [number for number in reversed(selected) if number < progress.walked_to][:most]
    return Walked(tuple(left), left[-1]) if left else None


def plan_piece(job: Redrive, progress: RedriveProgress, walked: Walked, at: datetime) -> RedrivePiece:
    """Return the piece of these letters: their move, and the time before which no further piece begins."""
    request = job.request
    move = LetterMove(
        move=request.move,
        partition=request.stream.partition(progress.range.partition_id),
        sequence_numbers=tuple(sorted(walked.numbers)),
        move_id=str(request.redrive_id),
        moved_at=at,
        due_at=at,
        by=request.requested_by,
        why=request.reason,
    )
    due = next_piece_at(at, len(walked.numbers), request.per_second)
    return RedrivePiece(job, move, walked.walked_to, due)

"""Redrive: accept the request of a person, and move its letters piece by piece, each piece one transaction."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from core.letters.listing import LetterFilter
from core.letters.redrive import (
    CountDiffers,
    LetterOrder,
    Redrive,
    RedriveAsked,
    RedrivePiece,
    RedrivePreview,
    RedriveProgress,
    RedriveRange,
    Walked,
    given_fields,
    next_piece_at,
    piece_limit,
    progress_of,
    redrive_of,
    redrive_request,
    until_request,
)
from core.letters.store.listing import LetterListing
from core.letters.store.redrives import Redrives
from core.model.clock import Clock
from core.model.events import PartitionId, Stream
from core.model.letters import MOVES, LetterMove, OrderedMove, Selection
from core.model.spans import SequenceNumber, Span
from core.tasks.run import Done, Kind, Rest
from core.tasks.store import Tasks
from core.tasks.task import Task, TaskOrder, TaskPart, TaskRequest

SAMPLED, CAUSES = 5, 100


@dataclass(frozen=True, slots=True)
class RedriveKind(Kind):
    """The redrives of one stream, and their means; `sleep` sleeps for a time."""

    stream: Stream
    store: Redrives
    chosen: LetterListing
    clock: Clock
    sleep: Rest

    name = "redrive"

    @property
    def tasks(self) -> Tasks:
        return self.store.tasks

    def rest(self, pause: timedelta) -> None:
        """Sleep until the rate allows the next piece."""
        self.sleep(pause)

    def advance(self, task: Task, part: TaskPart, until: datetime) -> Done:
        """READ the next letters, DECIDE, and write them as one piece; when none is left, close the partition."""
        job = redrive_of(task)
        progress = progress_of(part)
        walked = _walk(job, progress, self.store)
        if walked is None:
            self.store.close_partition(job, self.clock.now())
            return Done(1, 0)
        self.store.commit_piece(plan_piece(job, progress, walked, self.clock.now()))
        return Done(1, len(walked.numbers))


def preview_redrive(move: OrderedMove, wanted: LetterFilter, chosen: LetterListing) -> RedrivePreview:
    """Return the letters that a job would move now, by cause and with a sample; nothing changes."""
    statuses = MOVES[move].sources
    causes = chosen.cause_matching(wanted, statuses, CAUSES)
    sample = chosen.sample_matching(wanted, statuses, SAMPLED)
    return RedrivePreview(chosen.count_matching(wanted, statuses), causes, sample)


def redrive_task(order: TaskOrder, wanted: LetterOrder, chosen: LetterListing) -> TaskRequest | CountDiffers:
    """Return the task of a redrive, if the number of letters is as expected."""
    ranges = _ranges(wanted, chosen, order.at)
    total = sum(one.letters for one in ranges)
    if total != wanted.expected_count or not total:
        return CountDiffers(total)
    given = given_fields(wanted.chosen) if isinstance(wanted.chosen, LetterFilter) else None
    return redrive_request(order, RedriveAsked(wanted.move, given), ranges, wanted.per_second)


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


def _walk(job: Redrive, progress: RedriveProgress, store: Redrives) -> Walked | None:
    """Return the letters of the next piece; None when none is left."""
    most = piece_limit(job.task.per_second)
    selected = progress.asked.numbers
    if selected is None:
        return store.walk(job, MOVES[job.asked.move].sources, most)
    if job.asked.walks_up:
        left = [number for number in selected if number > progress.part.position][:most]
    else:
        left = [number for number in reversed(selected) if number < progress.part.position][:most]
    return Walked(tuple(left), left[-1]) if left else None


def plan_piece(job: Redrive, progress: RedriveProgress, walked: Walked, at: datetime) -> RedrivePiece:
    """Return the piece of these letters: their move, and the time before which no further piece begins."""
    task = job.task
    move = LetterMove(
        move=job.asked.move,
        partition=task.stream.partition(PartitionId(progress.part.name)),
        sequence_numbers=tuple(sorted(walked.numbers)),
        move_id=str(task.task_id),
        moved_at=at,
        due_at=at,
        by=task.requested_by,
        why=task.reason,
    )
    due = next_piece_at(at, len(walked.numbers), task.per_second)
    return RedrivePiece(job, progress, move, walked.walked_to, due)

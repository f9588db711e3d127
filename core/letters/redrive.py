"""A redrive: an operator's order to try letters again, its pieces, and its report.

A job moves only letters that had failed when it was requested. It walks through each partition by sequence number, a
retry upwards and a discard downwards: so a letter is looked at once, also when it fails again, and no letter is freed
that the same job discards. Each piece is one transaction that also counts the piece, by compare and set: so a letter is
moved once, however many workers drive the job, and a job that is not `running` does not proceed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from json import dumps
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from core.errors import RequestRefused
from core.letters.listing import (
    LetterChoice,
    LetterFilter,
    LetterListing,
    ListedLetter,
    RedriveCause,
    RedriveRange,
    filter_of,
    filter_values,
)
from core.letters.store import move_steps
from core.model.commits import LetterStatus
from core.model.events import PartitionId, SequenceNumber, Span, Stream
from core.model.letters import MOVES, TRANSACTION_LIMIT, LetterMove, LetterPosition, OrderedMove, Selection
from core.model.ports import Clock
from core.model.shapes import NumberText, PartitionText, Reason, Shape, number_of, shape_of, written
from core.store.columns import decoded, span_values
from core.store.database import Database
from core.store.script import Script
from core.tasks.run import Done, Sleep, TaskKind
from core.tasks.store import Ending, Tasks, advance_steps
from core.tasks.task import (
    Advance,
    PartRequest,
    Task,
    TaskAnswer,
    TaskOrder,
    TaskPart,
    TaskRequest,
    TaskShape,
    report_of,
    report_text,
)

RedriveResult = Literal["not_tried", "helped", "helped_in_part", "did_not_help", "unknown"]
MOST_OPEN = 10  # planned, running and paused jobs of a stream


@dataclass(frozen=True, slots=True)
class LetterOrder:
    """The order of a person: the move, the letters, the number of letters that the person saw, and the rate."""

    move: OrderedMove
    chosen: LetterFilter | Selection
    expected_count: int
    per_second: int | None = None


@dataclass(frozen=True, slots=True)
class CountDiffers:
    """The number of letters that this move may take differs from the expected one. Nothing was moved."""

    found: int


@dataclass(frozen=True, slots=True)
class RedriveReport:
    """The stored report of a partition: how many of its letters were moved, and how many were not."""

    moved: int = 0
    unmoved: int = 0


@dataclass(frozen=True, slots=True)
class RedriveAsked:
    """The stored request of a redrive. `chosen` has the given fields of the filter, and is None for a selection."""

    move: OrderedMove
    chosen: dict[str, str] | None

    @property
    def walks_up(self) -> bool:
        """True when pieces go from the first letter to the last."""
        return self.move == "requeue"


@dataclass(frozen=True, slots=True)
class RangeAsked:
    """The stored request for one partition: the number of letters, and their numbers if they were selected."""

    letters: int
    numbers: tuple[SequenceNumber, ...] | None


@dataclass(frozen=True, slots=True)
class RedriveProgress:
    """The progress of a job in one partition: the position of its part is the last number that it walked to.

    `unmoved` letters were in no status that the move allows any more. Letters that had changed before the job came to
    them are counted when the partition is closed.
    """

    part: TaskPart
    asked: RangeAsked
    report: RedriveReport


@dataclass(frozen=True, slots=True)
class Redrive:
    """A job as it is now: its task, its request, and its progress in each partition."""

    task: Task
    asked: RedriveAsked
    progress: tuple[RedriveProgress, ...]

    @property
    def wanted(self) -> LetterFilter | None:
        """The filter, or None for a selection."""
        return None if self.asked.chosen is None else filter_of_fields(self.asked.chosen)

    @property
    def selection(self) -> Selection | None:
        """The selected letters, or None for a filter."""
        if self.asked.chosen is not None:
            return None
        named = [(PartitionId(one.part.name), one.asked.numbers or ()) for one in self.progress]
        return tuple(LetterPosition(id, number) for id, numbers in named for number in numbers)

    @property
    def moved(self) -> int:
        return sum(one.report.moved for one in self.progress)

    @property
    def unmoved(self) -> int:
        return sum(one.report.unmoved for one in self.progress)

    @property
    def open_progress(self) -> RedriveProgress | None:
        """The partition of the next piece, or None when all are closed."""
        return next((one for one in self.progress if one.part.closed_at is None), None)


def redrive_of(task: Task) -> Redrive:
    """Return the redrive of a task."""
    return Redrive(task, report_of(task.asked, RedriveAsked), tuple(map(progress_of, task.parts)))


def progress_of(part: TaskPart) -> RedriveProgress:
    """Return the progress of a redrive in the partition of a part."""
    return RedriveProgress(part, report_of(part.asked, RangeAsked), report_of(part.report, RedriveReport))


def redrive_request(
    order: TaskOrder, asked: RedriveAsked, ranges: tuple[RedriveRange, ...], per_second: int | None = None
) -> TaskRequest:
    """Return the task of a redrive. Its key names the filter or the selection, but not the move."""
    named = [(one.partition_id, one.numbers) for one in ranges] if asked.chosen is None else asked.chosen
    parts = []
    for one in ranges:
        first, last = one.span.ends
        start = first - 1 if asked.walks_up else last + 1  # the walk begins next to the first letter
        wanted = report_text(RangeAsked(one.letters, one.numbers))
        parts.append(PartRequest(one.partition_id, start, one.span, wanted, report_text(RedriveReport())))
    return TaskRequest(
        order=order,
        kind="redrive",
        key=sha256(dumps(named, sort_keys=True).encode()).hexdigest(),
        asked=report_text(asked),
        parts=tuple(parts),
        total=sum(one.letters for one in ranges),
        per_second=per_second,
        most_open=MOST_OPEN,
    )


@dataclass(frozen=True, slots=True)
class Walked:
    """The next letters of a job in one partition, in the order of its walk, and the last number that was looked at. No
    letter in it: the walk goes on there."""

    numbers: tuple[SequenceNumber, ...]
    walked_to: SequenceNumber


@dataclass(frozen=True, slots=True)
class RedrivePiece:
    """Everything that one transaction of a job writes: the move of its letters, and the progress after it."""

    job: Redrive
    progress: RedriveProgress
    move: LetterMove
    walked_to: SequenceNumber
    next_piece_at: datetime


@dataclass(frozen=True, slots=True)
class RedriveOutcome:
    """The outcome of the first try since a retry, of `letters` of the letters that it moved.

    `failed_again` letters failed, `same_cause` of them for the cause that they had before.
    """

    letters: int
    resolved: int
    failed_again: int
    same_cause: int
    not_tried: int
    discarded: int

    @property
    def result(self) -> RedriveResult:
        if self.not_tried:
            return "not_tried"
        if self.failed_again:
            return "helped_in_part" if self.resolved else "did_not_help"
        return "helped" if self.resolved else "unknown"

    @property
    def words(self) -> str:
        """The counts in words, such as "0 resolved, 40 failed again for the same cause"."""
        same = {0: " for other causes", self.failed_again: " for the same cause"}
        why = (
            same.get(self.same_cause, f", {self.same_cause:,} of them for the same cause") if self.failed_again else ""
        )
        parts = [f"{self.resolved:,} resolved", f"{self.failed_again:,} failed again{why}"]
        rest = {"not tried yet": self.not_tried, "discarded": self.discarded}
        return ", ".join([*parts, *(f"{count:,} {word}" for word, count in rest.items() if count)])


@dataclass(frozen=True, slots=True)
class RedrivePreview:
    """The letters that a job would move: their number, the largest causes, and the letters that failed first."""

    count: int
    causes: tuple[RedriveCause, ...]
    sample: tuple[ListedLetter, ...]


def until_request(wanted: LetterFilter, requested_at: datetime) -> LetterFilter:
    """Return the filter without the letters that failed after the request."""
    return replace(wanted, failed_before=min(wanted.failed_before, requested_at))


def given_fields(wanted: LetterFilter) -> dict[str, str]:
    """Return the given fields of a filter as texts: filters that choose the same letters have the same fields."""
    named = {name: getattr(wanted, name) for name in wanted.__dataclass_fields__}
    nothing = LetterFilter()
    return {
        name: value.isoformat() if isinstance(value, datetime) else str(value)
        for name, value in named.items()
        if value != getattr(nothing, name)
    }


def filter_of_fields(given: Mapping[str, str]) -> LetterFilter:
    """Return the filter of its given fields."""
    times = {name: datetime.fromisoformat(given[name]) for name in ("failed_from", "failed_before") if name in given}
    return LetterFilter(**{**given, **times})  # type: ignore[arg-type]


def piece_limit(per_second: int | None) -> int:
    """Return the limit of the letters of a piece: half of a second's, so that a cap never waits long."""
    return TRANSACTION_LIMIT if per_second is None else max(1, min(TRANSACTION_LIMIT, per_second // 2))


def next_piece_at(begun_at: datetime, letters: int, per_second: int | None) -> datetime:
    """Return the time before which no further piece may begin."""
    return begun_at if per_second is None else begun_at + timedelta(seconds=letters / per_second)


LOOKED_AT = 1_000  # letters that one statement of a walk reads


class Redrives:
    """Redrives and their progress. A change of a job conflicts when its status or its pieces are not as expected."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def outcome(self, redrive_id: UUID, most: int) -> RedriveOutcome:
        """Return what became of the letters that a job retried, at most this number."""
        (found,) = decoded(RedriveOutcome, self._database.ask("count_redriven", task_id=str(redrive_id), most=most))
        return found

    def walk(self, job: Redrive, statuses: Sequence[LetterStatus], most: int) -> Walked | None:
        """Look at the next letters of the open partition of a job, and return those of its filter, at most this number.

        None: no letter of it is left. A page of many others may be short, or empty.
        """
        wanted, progress = job.wanted, job.open_progress
        if progress is None or wanted is None:
            return None
        assert progress.part.span is not None  # each part of a redrive has a range
        values = {
            **filter_values(until_request(wanted, job.task.requested_at)),
            **span_values(progress.part.span),
            "stream_id": job.task.stream_id,
            "partition_id": progress.part.name,
            "walked_to": progress.part.position,
            "sources": f",{','.join(statuses)},",
            "most": LOOKED_AT,
        }
        looked_at = self._database.ask("walk_up" if job.asked.walks_up else "walk_down", **values)
        numbers = tuple(SequenceNumber(number) for number, is_chosen in looked_at if is_chosen)[:most]
        if not numbers and len(looked_at) < LOOKED_AT:
            return None
        return Walked(numbers, numbers[-1] if len(numbers) == most else SequenceNumber(looked_at[-1][0]))

    def commit_piece(self, piece: RedrivePiece) -> None:
        """Move the letters whose status allows it, add an attempt to each, and count the piece, in one transaction.

        A discard locks the partition and frees the next held letter of the key of each. Raises TaskConflict (another
        driver was first, the job does not run, or it is not yet time), with nothing written. Raises
        CommitOutcomeUnknown when the answer was lost.
        """
        self._database.run(piece_script(piece))

    def close_partition(self, job: Redrive, at: datetime) -> None:
        """Close the open partition of a job. The last one ends the job. Raises as commit_piece does."""
        self._database.run(close_script(job, at))

    @property
    def tasks(self) -> Tasks:
        """The tasks of the same database."""
        return Tasks(self._database)


def piece_script(piece: RedrivePiece) -> Script:
    """Return the transaction of a piece: the move of its letters, then the job and its progress.

    It need not be durable: a loss of power takes back the move together with its progress.
    """
    task, move = piece.job.task, piece.move
    part, looked_at = piece.progress.part, {"looked_at": len(move.sequence_numbers)}
    ahead = Advance(part.name, part.step, piece.walked_to, report_text(piece.progress.report), counts=looked_at)
    return Script(
        f"{move.partition}: redrive {task.task_id}",
        (
            *move_steps(move, task.stream_id, counts="moved"),
            *advance_steps(_ending(piece.job, move.moved_at, piece.next_piece_at), ahead, "advance_redrive"),
        ),
        durable=False,
    )


def close_script(job: Redrive, at: datetime) -> Script:
    """Return the transaction that closes the open partition of a job. With the last one, it ends the job.

    A requested letter that was not moved counts as `unmoved`: it had changed before the job came to it.
    """
    progress = job.open_progress
    assert progress is not None  # a job that runs has one
    part, unmoved = progress.part, max(0, progress.asked.letters - progress.report.moved)
    report = report_text(replace(progress.report, unmoved=unmoved))
    ahead = Advance(part.name, part.step, part.position, report, is_last=True)
    return Script(f"redrive {job.task.task_id}", tuple(advance_steps(_ending(job, at), ahead)))


def _ending(job: Redrive, at: datetime, next_piece_at: datetime | None = None) -> Ending:
    return Ending(job.task.task_id, "redrive", at, next_piece_at)


SAMPLED, CAUSES = 5, 100
MOST_SELECTED = 3_000  # letters in one selection: more do not fit into a body
MOST_SHOWN = 100  # selected letters in an answer
MOST_COUNTED, MOST_COUNTED_OF_MANY = 20_000, 1_000  # letters in the outcome of one redrive, and of each in a list
RedriveMove = Literal["retry", "discard"]
MOVED: dict[RedriveMove, OrderedMove] = {"retry": "requeue", "discard": "discard"}
NAMED: dict[OrderedMove, RedriveMove] = {move: name for name, move in MOVED.items()}


class LetterName(Shape):
    """A letter, by its position."""

    partition_id: PartitionText
    sequence_number: NumberText


class RedriveShape(TaskShape, tag="redrive"):
    """The move; the letters, by exactly one of `letters` and `filter` ({} is all); the number of them that can be
    moved, as the person saw it; why; and the limit of letters per second, if there is one."""

    ONE_OF = ("letters", "filter")

    move: RedriveMove
    expected_count: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    reason: Reason
    letters: Annotated[list[LetterName], msgspec.Meta(min_length=1, max_length=MOST_SELECTED)] | None = None
    filter: LetterChoice | None = None
    per_second: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None


_Selected: Any = shape_of(LetterPosition)


class SelectedAnswer(_Selected):
    """A selected letter."""


_Outcome: Any = shape_of(RedriveOutcome)


class OutcomeAnswer(_Outcome):
    """The outcome of the letters that a retry moved, at the first try since. It counts at most 20,000 letters, 1,000 in
    a list, and none that was purged. `same_cause` counts those that failed again for the cause that they had before.
    `words` says the counts."""

    result: RedriveResult
    words: str


class RedriveAnswer(TaskAnswer, tag_field="kind", tag="redrive"):
    """A redrive. `filter` holds the given fields, a partition key hidden; of a selection, `letters` are the first
    hundred. `total` letters could be moved at the request; those that had changed when the task came to them are
    `unmoved`. `done` counts both. A discard,
    and a retry that has moved nothing, have no `outcome`."""

    move: RedriveMove
    filter: dict[str, str] | None
    letters: list[SelectedAnswer] | None
    moved: int
    unmoved: int
    outcome: OutcomeAnswer | None


@dataclass(frozen=True, slots=True)
class RedriveKind(TaskKind):
    """The redrives of one stream."""

    stream: Stream
    store: Redrives
    chosen: LetterListing
    clock: Clock
    sleep: Sleep

    name = "redrive"
    asked = RedriveShape
    answer = RedriveAnswer
    at_once = timedelta(seconds=5)  # some ten thousand letters; longer, and a person would ask what goes on

    @property
    def tasks(self) -> Tasks:
        return self.store.tasks

    def request(self, order: TaskOrder, asked: RedriveShape) -> TaskRequest:
        """Return the task of a redrive, if the number of letters is as expected."""
        chosen: LetterFilter | Selection = filter_of(asked.filter or LetterChoice(), "filter.")
        if asked.letters is not None:
            named: dict[LetterPosition, None] = {}
            for at, one in enumerate(asked.letters):
                number = number_of(one.sequence_number, f"letters[{at}].sequence_number")
                named[LetterPosition(PartitionId(one.partition_id), number)] = None
            chosen = tuple(named)
        wanted = LetterOrder(MOVED[asked.move], chosen, asked.expected_count, asked.per_second)
        found = redrive_task(order, wanted, self.chosen)
        if isinstance(found, CountDiffers):
            why = f"{found.found} letters can be moved now, not {asked.expected_count}; nothing was changed"
            raise RequestRefused("", why, "count-differs", count=found.found)
        return found

    def rest(self, pause: timedelta) -> None:
        """Sleep until the rate allows the next piece."""
        self.sleep(pause.total_seconds())

    def advance(self, task: Task, part: TaskPart, until: datetime) -> Done:
        """READ the next letters, DECIDE, and write them as one piece. When none is left, close the partition."""
        job = redrive_of(task)
        progress = progress_of(part)
        walked = _walk(job, progress, self.store)
        if walked is None:
            self.store.close_partition(job, self.clock.now())
            return Done(1, 0)
        self.store.commit_piece(plan_piece(job, progress, walked, self.clock.now()))
        return Done(1, len(walked.numbers))

    def report(self, task: Task, *, is_listed: bool) -> dict[str, Any]:
        """Return the moves so far, and the outcome of some letters."""
        job = redrive_of(task)
        selection, given, outcome = job.selection, job.asked.chosen, None
        if job.moved and job.asked.walks_up:
            found = self.store.outcome(task.task_id, MOST_COUNTED_OF_MANY if is_listed else MOST_COUNTED)
            outcome = written(OutcomeAnswer, found, result=found.result, words=found.words)
        hidden = {"partition_key": "hidden"} if given and "partition_key" in given else {}
        return {
            "done": job.moved + job.unmoved,
            "move": NAMED[job.asked.move],
            "filter": None if given is None else {**given, **hidden},
            "letters": None if selection is None else [written(SelectedAnswer, one) for one in selection[:MOST_SHOWN]],
            "moved": job.moved,
            "unmoved": job.unmoved,
            "outcome": outcome,
        }


def preview_redrive(move: OrderedMove, wanted: LetterFilter, chosen: LetterListing) -> RedrivePreview:
    """Return the letters that a job would move now, by cause and with a sample. Nothing changes."""
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
    numbers: dict[PartitionId, list[SequenceNumber]] = {}
    for one in chosen.find_selected(order.chosen, statuses):
        numbers.setdefault(one.partition_id, []).append(one.sequence_number)
    return tuple(
        RedriveRange(id, Span(min(own), max(own)), len(own), tuple(sorted(own))) for id, own in sorted(numbers.items())
    )


def _walk(job: Redrive, progress: RedriveProgress, store: Redrives) -> Walked | None:
    """Return the letters of the next piece, or None."""
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

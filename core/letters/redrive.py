"""Redrives: jobs that retry or discard the letters of a filter or a selection, of any number, piece by piece.

A job moves only letters that had failed when it was requested. It walks through each partition by sequence number, a
retry upwards and a discard downwards: so a letter is looked at once, also when it fails again, and no letter is freed
that the same job discards. Each piece is one transaction that also counts the piece, by compare and set: so a letter is
moved once, however many workers drive the job, and a job that is not `running` does not proceed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from json import dumps
from typing import Literal

from core.letters.listing import LetterFilter, ListedLetter
from core.model.events import PartitionId
from core.model.letters import TRANSACTION_LIMIT, LetterMove, LetterPosition, OrderedMove, Selection
from core.model.spans import SequenceNumber, Span
from core.tasks.task import PartRequest, Task, TaskOrder, TaskPart, TaskRequest, report_of, report_text

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
    """The number of letters that this move may take differs from the expected one; nothing was moved."""

    found: int


@dataclass(frozen=True, slots=True)
class RedriveRange:
    """The letters of one partition at the request; the `numbers` of a selection, or None for a filter."""

    partition_id: PartitionId
    span: Span
    letters: int
    numbers: tuple[SequenceNumber, ...] | None = None


@dataclass(frozen=True, slots=True)
class RedriveReport:
    """The stored report of a partition: how many of its letters were moved, and how many were not."""

    moved: int = 0
    unmoved: int = 0


@dataclass(frozen=True, slots=True)
class RedriveAsked:
    """The stored request of a redrive. `chosen` has the given fields of the filter; it is None for a selection."""

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

    `unmoved` letters were in no status that the move allows any more; those that had changed before the job came to
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
        """The filter; None for a selection."""
        return None if self.asked.chosen is None else filter_of_fields(self.asked.chosen)

    @property
    def selection(self) -> Selection | None:
        """The selected letters; None for a filter."""
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
        """The partition of the next piece; None when all are closed."""
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
    """Return the task of a redrive. Its key is that of the filter or the selection; the move does not count."""
    named = [(one.partition_id, one.numbers) for one in ranges] if asked.chosen is None else asked.chosen
    return TaskRequest(
        order=order,
        kind="redrive",
        key=sha256(dumps(named, sort_keys=True).encode()).hexdigest(),
        asked=report_text(asked),
        parts=tuple(_part(asked, one) for one in ranges),
        total=sum(one.letters for one in ranges),
        per_second=per_second,
        most_open=MOST_OPEN,
    )


def _part(asked: RedriveAsked, one: RedriveRange) -> PartRequest:
    """Return a partition of a new job: the walk begins next to its first letter."""
    first, last = one.span.ends
    start = first - 1 if asked.walks_up else last + 1
    wanted = report_text(RangeAsked(one.letters, one.numbers))
    return PartRequest(one.partition_id, start, one.span, wanted, report_text(RedriveReport()))


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
class RedriveCause:
    """The letters of one cause that a job would move; `sample` is one letter of the cause."""

    fingerprint: str
    letters: int
    sample: ListedLetter


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

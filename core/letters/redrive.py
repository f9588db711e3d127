"""A redrive: an operator's order to try letters again or to discard them, its pieces, and its report.

A task moves only letters that had failed when it was requested, and no more of them than the person has confirmed. An
order that names the time of its preview (`failed_before`) takes the letters of the preview: those that have changed
since are not moved, and those that came later are not in it. A task walks through each partition by sequence number, a
retry upwards and a discard downwards: so a letter is looked at once, also when it fails again, and no letter is freed
that the same task discards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from json import dumps
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import structs

from core.errors import RequestRefused
from core.letters.listing import BEGINNING, END, LetterChoice, LetterListing, RedriveRange, filter_of, filter_values
from core.letters.store import move_steps
from core.model.events import PartitionId, SequenceNumber, Span, Stream
from core.model.letters import MOVES, TRANSACTION_LIMIT, LetterMove, LetterPosition, OrderedMove, Selection
from core.model.ports import Clock, utc_text
from core.model.shapes import NumberText, PartitionText, Reason, Shape, number_of, shape_of, written
from core.settle.cause import cause_of
from core.store.columns import decoded, span_values
from core.store.database import Database
from core.store.script import Script
from core.tasks.run import ONE_PIECE, Done, Sleep, TaskKind
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
RedriveMove = Literal["retry", "discard"]
MOVED: dict[RedriveMove, OrderedMove] = {"retry": "requeue", "discard": "discard"}
NAMED: dict[OrderedMove, RedriveMove] = {move: name for name, move in MOVED.items()}
MOST_OPEN = 10  # planned, running and paused redrives of a stream
LOOKED_AT = 1_000  # letters that one statement of a walk reads
MOST_SELECTED = 3_000  # letters in one selection: more do not fit into a body
MOST_SHOWN = 100  # selected letters in an answer
MOST_COUNTED, MOST_COUNTED_OF_MANY = 20_000, 1_000  # letters in the outcome of one redrive, and of each in a list


@dataclass(frozen=True, slots=True)
class LetterOrder:
    """The order of a person: the move, the letters, the number of letters that the person confirmed, and the rate."""

    move: OrderedMove
    chosen: LetterChoice | Selection
    expected_count: int
    per_second: int | None = None


@dataclass(frozen=True, slots=True)
class RedriveReport:
    """The stored report of a partition. `unmoved` letters were in no status that the move allows any more. Letters that
    had changed before the task came to them are counted when the partition is closed."""

    moved: int = 0
    unmoved: int = 0


@dataclass(frozen=True, slots=True)
class RedriveAsked:
    """The stored request of a redrive. `chosen` has the given fields of the filter, and is None for a selection.
    `came_later` letters fitted the filter at the request, but failed or began to fit after its preview."""

    move: OrderedMove
    chosen: dict[str, str] | None
    came_later: int = 0


@dataclass(frozen=True, slots=True)
class RangeAsked:
    """The stored request for one partition: the number of letters, and their numbers if they were selected."""

    letters: int
    numbers: tuple[SequenceNumber, ...] | None


@dataclass(frozen=True, slots=True)
class RedriveProgress:
    """The progress in one partition: the position of its part is the last number that the walk came to."""

    part: TaskPart
    asked: RangeAsked
    report: RedriveReport


@dataclass(frozen=True, slots=True)
class Redrive:
    """A redrive as it is now: its task, its request, and its progress in each partition."""

    task: Task
    asked: RedriveAsked
    progress: tuple[RedriveProgress, ...]

    @property
    def walks_up(self) -> bool:
        return self.asked.move == "requeue"

    @property
    def moved(self) -> int:
        return sum(one.report.moved for one in self.progress)

    @property
    def unmoved(self) -> int:
        return sum(one.report.unmoved for one in self.progress)

    @property
    def left(self) -> int:
        """The confirmed letters that are neither moved nor known to have changed."""
        return max(0, self.task.total - self.moved - self.unmoved)

    @property
    def gone(self) -> int:
        """The confirmed letters that had changed before the request, and have not come back since."""
        counts = [max(one.asked.letters, one.report.moved + one.report.unmoved) for one in self.progress]
        return max(0, self.task.total - sum(counts))

    @property
    def selection(self) -> Selection | None:
        """The selected letters, or None for a filter."""
        if self.asked.chosen is not None:
            return None
        named = [(PartitionId(one.part.name), one.asked.numbers or ()) for one in self.progress]
        return tuple(LetterPosition(id, number) for id, numbers in named for number in numbers)

    @property
    def open_progress(self) -> RedriveProgress:
        """The partition of the next piece: a task that runs has one."""
        return next(one for one in self.progress if one.part.closed_at is None)


def redrive_of(task: Task) -> Redrive:
    """Return the redrive of a task."""
    progress = [
        RedriveProgress(one, report_of(one.asked, RangeAsked), report_of(one.report, RedriveReport))
        for one in task.parts
    ]
    return Redrive(task, report_of(task.asked, RedriveAsked), tuple(progress))


def redrive_task(order: TaskOrder, wanted: LetterOrder, listing: LetterListing) -> TaskRequest:
    """Return the task of a redrive. Raises RequestRefused when there is no letter, or more than expected.

    Fewer have changed since the person looked. After a preview a retry ends at the expected number. A discard takes no
    letter that changed since. It is refused for more letters that did not: the preview cannot have shown them all.
    """
    statuses, expected = MOVES[wanted.move].sources, wanted.expected_count
    given, later, most, named = None, 0, expected, expected
    if isinstance(wanted.chosen, LetterChoice):
        given = given_fields(wanted.chosen)
        until, kept = until_request(wanted.chosen, order.at), unchanged_since(wanted.move, given)
        ranges = listing.range_matching(**filter_values(until), **kept, statuses=dumps(statuses))
        if "failed_before" in given:
            more = listing.count_matching(until, statuses) - expected
            later = listing.count_matching(since_preview(wanted.chosen), statuses) + max(0, more)
            most = expected if wanted.move == "discard" else 2**63
    else:
        named = len(wanted.chosen)
        numbers: dict[PartitionId, list[SequenceNumber]] = {}
        for one in listing.find_selected(wanted.chosen, statuses):
            numbers.setdefault(one.partition_id, []).append(one.sequence_number)
        ranges = tuple(
            RedriveRange(id, Span(min(own), max(own)), len(own), tuple(sorted(own)))
            for id, own in sorted(numbers.items())
        )
    found = sum(one.letters for one in ranges)
    if not 0 < found <= most or named < expected:
        why = f"{found} letters can be moved now, not {expected}; nothing was changed: look at a new preview"
        raise RequestRefused("", why, "count-differs", count=found)
    asked = RedriveAsked(wanted.move, given, later)
    return replace(redrive_request(order, asked, ranges, wanted.per_second), total=expected)


def redrive_request(
    order: TaskOrder, asked: RedriveAsked, ranges: tuple[RedriveRange, ...], per_second: int | None = None
) -> TaskRequest:
    """Return the task of a redrive. Its key names the filter or the selection, but neither the move nor the time of
    the preview: of two filters that differ only by this, one has all letters of the other."""
    named: Any = [(one.partition_id, one.numbers) for one in ranges]
    if asked.chosen is not None:
        named = {name: value for name, value in asked.chosen.items() if name != "failed_before"}
    parts = []
    for one in ranges:
        first, last = one.span.ends
        start = first - 1 if asked.move == "requeue" else last + 1  # the walk begins next to the first letter
        letters = report_text(RangeAsked(one.letters, one.numbers))
        parts.append(PartRequest(one.partition_id, start, one.span, letters, report_text(RedriveReport())))
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


def until_request(wanted: LetterChoice, requested_at: datetime) -> LetterChoice:
    """Return the filter without the letters that failed after the request."""
    return structs.replace(wanted, failed_before=min(wanted.failed_before or END, requested_at))


def since_preview(wanted: LetterChoice) -> LetterChoice:
    """Return the filter of the letters that fit but failed too late."""
    begin = max(wanted.failed_before or END, wanted.failed_from or BEGINNING)
    return structs.replace(wanted, failed_from=begin, failed_before=None)


def unchanged_since(move: OrderedMove, given: Mapping[str, str]) -> dict[str, str | None]:
    """Return the time of the preview if later changes exclude a letter: in a discard by status, class or cause."""
    is_bound = move == "discard" and not given.keys().isdisjoint(("status", "error_class", "fingerprint"))
    return {"unchanged_since": given.get("failed_before") if is_bound else None}


def given_fields(wanted: LetterChoice) -> dict[str, str]:
    """Return the given fields of a filter as texts: filters that choose the same letters have the same fields."""
    given = {name: value for name, value in structs.asdict(wanted).items() if value is not None}
    return {name: utc_text(one) if isinstance(one, datetime) else one for name, one in given.items()}


def filter_of_fields(given: Mapping[str, str]) -> LetterChoice:
    """Return the filter of its given fields."""
    times = {name: datetime.fromisoformat(given[name]) for name in ("failed_from", "failed_before") if name in given}
    return LetterChoice(**{**given, **times})  # type: ignore[arg-type]


def piece_limit(per_second: int | None) -> int:
    """Return the limit of the letters of a piece: half of a second's, so that a cap never waits long."""
    return TRANSACTION_LIMIT if per_second is None else max(1, min(TRANSACTION_LIMIT, per_second // 2))


@dataclass(frozen=True, slots=True)
class NextLetters:
    """The next letters in one partition, in the order of the walk, and the last number that was looked at. Without a
    letter, the walk goes on there."""

    numbers: tuple[SequenceNumber, ...]
    walked_to: SequenceNumber


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


class Redrives:
    """Redrives and their progress. A change conflicts when the status or the pieces of the task are not as expected."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def tasks(self) -> Tasks:
        """The tasks of the same database."""
        return Tasks(self._database)

    def outcome(self, redrive_id: UUID, most: int) -> RedriveOutcome:
        """Return what became of the letters that a redrive retried, at most this number."""
        (found,) = decoded(RedriveOutcome, self._database.ask("count_redriven", task_id=str(redrive_id), most=most))
        return found

    def walk(self, job: Redrive) -> NextLetters | None:
        """Return the letters of the next piece. A page of many others may be short, or empty. None: none is left."""
        progress, most = job.open_progress, min(job.left, piece_limit(job.task.per_second))
        if not most:
            return None
        if job.asked.chosen is None:
            selected = progress.asked.numbers or ()
            at = progress.part.position
            ahead = [number for number in selected if (number > at if job.walks_up else number < at)]
            left = tuple(ahead if job.walks_up else ahead[::-1])[:most]
            return NextLetters(left, left[-1]) if left else None
        assert progress.part.span is not None  # each part of a redrive has a range
        values = {
            **filter_values(until_request(filter_of_fields(job.asked.chosen), job.task.requested_at)),
            **span_values(progress.part.span),
            "stream_id": job.task.stream_id,
            "partition_id": progress.part.name,
            "walked_to": progress.part.position,
            **unchanged_since(job.asked.move, job.asked.chosen),
            "sources": f",{','.join(MOVES[job.asked.move].sources)},",
            "most": LOOKED_AT,
        }
        looked_at = self._database.ask("walk_up" if job.walks_up else "walk_down", **values)
        numbers = tuple(SequenceNumber(number) for number, is_chosen in looked_at if is_chosen)[:most]
        if not numbers and len(looked_at) < LOOKED_AT:
            return None
        return NextLetters(numbers, numbers[-1] if len(numbers) == most else SequenceNumber(looked_at[-1][0]))

    def commit_piece(self, job: Redrive, walked: NextLetters, at: datetime) -> None:
        """Move the letters whose status allows it, add an attempt to each, and count the piece, in one transaction.

        A discard locks the partition and frees the next held letter of the key of each. Raises TaskConflict (another
        driver was first, the task does not run, or it is not yet time), with nothing written. Raises
        CommitOutcomeUnknown when the answer was lost.
        """
        self._database.run(piece_script(job, walked, at))

    def close_partition(self, job: Redrive, at: datetime) -> None:
        """Close the open partition. The last one ends the task. Raises as commit_piece does."""
        self._database.run(close_redrive_script(job, at))


def piece_script(job: Redrive, walked: NextLetters, at: datetime) -> Script:
    """Return the transaction of a piece: the move of its letters, then the task and its progress.

    It need not be durable: a loss of power takes back the move together with its progress.
    """
    task, progress, letters = job.task, job.open_progress, len(walked.numbers)
    part = progress.part
    move = LetterMove(
        move=job.asked.move,
        partition=task.stream.partition(PartitionId(part.name)),
        sequence_numbers=tuple(sorted(walked.numbers)),
        move_id=str(task.task_id),
        moved_at=at,
        due_at=at,
        by=task.requested_by,
        why=task.reason,
    )
    due = at if task.per_second is None else at + timedelta(seconds=letters / task.per_second)
    report, counts = report_text(progress.report), {"looked_at": letters}
    ahead = Advance(part.name, part.step, walked.walked_to, report, counts=counts)
    ending = Ending(task.task_id, "redrive", at, due)
    steps = (
        *move_steps(move, task.stream_id, counts="moved"),
        *advance_steps(ending, ahead, "advance_redrive"),
    )
    return Script(f"{move.partition}: redrive {task.task_id}", steps, durable=False)


def close_redrive_script(job: Redrive, at: datetime) -> Script:
    """Return the transaction that closes the open partition. A requested letter that was not moved counts as `unmoved`:
    it had changed before the task came to it."""
    progress = job.open_progress
    part, most = progress.part, job.left + progress.report.unmoved
    unmoved = max(0, min(progress.asked.letters - progress.report.moved, most))
    report = report_text(replace(progress.report, unmoved=unmoved))
    ahead = Advance(part.name, part.step, part.position, report, is_last=True)
    steps = advance_steps(Ending(job.task.task_id, "redrive", at), ahead)
    return Script(f"redrive {job.task.task_id}", tuple(steps))


class LetterName(Shape):
    """A letter, by its position."""

    partition_id: PartitionText
    sequence_number: NumberText


class RedriveShape(TaskShape, tag="redrive"):
    """Exactly one of `letters` and `filter` ({} is all) chooses the letters. `expected_count` is the number of letters
    that the operator has confirmed: no more are moved. A filter has the `failed_before` of the preview, so that letters
    may fail meanwhile. `per_second` is a limit of letters, or null."""

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
    """A redrive. `filter` holds the given fields, with a partition key hidden, and only the cause of a fingerprint.
    `letters` are the first hundred of a selection. `total` letters were confirmed. `unmoved` letters had changed since.
    `done` counts moved and unmoved letters. `came_later` letters are not in it: they failed after the filter's
    `failed_before`, or fitted it only after the preview. A discard, and a retry of nothing, have no `outcome`."""

    move: RedriveMove
    filter: dict[str, str] | None
    letters: list[SelectedAnswer] | None
    moved: int
    unmoved: int
    came_later: int
    outcome: OutcomeAnswer | None


@dataclass(frozen=True, slots=True)
class RedriveKind(TaskKind):
    """The redrives of one stream."""

    stream: Stream
    store: Redrives
    listing: LetterListing
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
        """Return the task of a redrive, if it has letters, and no more than expected."""
        chosen: LetterChoice | Selection = filter_of(asked.filter or LetterChoice(), "filter.")
        if asked.letters is not None:
            named: dict[LetterPosition, None] = {}
            for at, one in enumerate(asked.letters):
                number = number_of(one.sequence_number, f"letters[{at}].sequence_number")
                named[LetterPosition(PartitionId(one.partition_id), number)] = None
            chosen = tuple(named)
        wanted = LetterOrder(MOVED[asked.move], chosen, asked.expected_count, asked.per_second)
        return redrive_task(order, wanted, self.listing)

    def rest(self, pause: timedelta) -> None:
        """Sleep until the rate allows the next piece."""
        self.sleep(pause.total_seconds())

    def advance(self, task: Task, part: TaskPart, until: datetime) -> Done:
        """Move the next letters. When none is left, close the partition."""
        job = redrive_of(task)
        walked = self.store.walk(job)
        if walked is None:
            self.store.close_partition(job, self.clock.now())
            return ONE_PIECE
        self.store.commit_piece(job, walked, self.clock.now())
        return Done(1, len(walked.numbers))

    def report(self, task: Task, *, is_listed: bool) -> dict[str, Any]:
        """Return the moves so far, and the outcome of some letters."""
        job = redrive_of(task)
        selection, given, outcome = job.selection, job.asked.chosen, None
        if job.moved and job.walks_up:
            found = self.store.outcome(task.task_id, MOST_COUNTED_OF_MANY if is_listed else MOST_COUNTED)
            outcome = written(OutcomeAnswer, found, result=found.result, words=found.words)
        hidden = {"partition_key": "hidden"} if given and "partition_key" in given else {}
        if given and "fingerprint" in given:
            hidden["fingerprint"] = cause_of(given["fingerprint"])
        return {
            "done": job.moved + job.unmoved + job.gone,
            "move": NAMED[job.asked.move],
            "filter": None if given is None else {**given, **hidden},
            "letters": None if selection is None else [written(SelectedAnswer, one) for one in selection[:MOST_SHOWN]],
            "moved": job.moved,
            "unmoved": job.unmoved + job.gone,
            "came_later": job.asked.came_later,
            "outcome": outcome,
        }

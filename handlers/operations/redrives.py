"""Retry or discard letters as a task: the preview, the request, the task, and how it is shown."""

import logging
import time
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any, Literal

import msgspec

from core.api.operation import Call, number_of, operation
from core.api.problems import COUNT_DIFFERS, Problem
from core.errors import InfrastructureFault
from core.letters.listing import LetterFilter, LetterListing
from core.letters.redrive import (
    CountDiffers,
    LetterOrder,
    Redrive,
    RedriveKind,
    RedriveOutcome,
    RedriveResult,
    Redrives,
    redrive_of,
    redrive_task,
)
from core.letters.redrive import preview_redrive as preview_of
from core.model.events import PartitionId
from core.model.letters import LetterPosition, OrderedMove, Selection
from core.model.shapes import Answered, Nothing, NumberText, PartitionText, Reason, Shape, shape_of, written
from core.tasks.run import note_fault, work_on
from core.tasks.task import Task, TaskAnswer, TaskOrder, TaskRequest, of_every_kind
from handlers.app import App, app, in_time
from handlers.operations.letters import HidingChoice, LetterAnswer, LetterChoice, filter_of, hide_letter, letter_answer
from handlers.operations.task_shapes import TaskShape

MOST_SELECTED = 3_000  # letters in one selection: more do not fit into a body
MOST_SHOWN = 100  # selected letters in an answer
MOST_COUNTED, MOST_COUNTED_OF_MANY = 20_000, 1_000  # letters in the outcome of one redrive, and of each in a list
RedriveMove = Literal["retry", "discard"]


class PreviewQuery(HidingChoice, kw_only=True):
    """The letters that fit every given field, and the move that a redrive would make."""

    move: RedriveMove


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


class CauseAnswer(Answered):
    """The letters of a cause."""

    fingerprint: str
    error_class: str
    error_type: str
    letters: int


class PreviewAnswer(Answered):
    """The letters that a redrive would move now: their number, the largest causes, and the ones that failed first."""

    count: int
    causes: list[CauseAnswer]
    sample: list[LetterAnswer]


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


log = logging.getLogger("hubledger.api")
MOVED: dict[RedriveMove, OrderedMove] = {"retry": "requeue", "discard": "discard"}
NAMED: dict[OrderedMove, RedriveMove] = {move: name for name, move in MOVED.items()}
AT_ONCE = timedelta(seconds=5)  # of a request: some ten thousand letters; longer, and a person would ask what goes on


@operation("The letters that a redrive would move", "tasks")
def preview_redrive(call: Call[Nothing, PreviewQuery, Nothing]) -> PreviewAnswer:
    """Count the letters by cause, with a sample; nothing changes."""
    found = preview_of(MOVED[call.query.move], filter_of(call.query), LetterListing(app().stream))
    sample = [hide_letter(letter_answer(one)) for one in found.sample]
    causes = [
        written(CauseAnswer, one, error_class=one.sample.error_class, error_type=one.sample.error_type)
        for one in found.causes
    ]
    return PreviewAnswer(count=found.count, causes=causes, sample=sample)


def request(own: App, order: TaskOrder, body: RedriveShape) -> TaskRequest:
    """Return the task of a redrive; raise a problem when the number of letters is a different one."""
    wanted = LetterOrder(MOVED[body.move], _chosen(body), body.expected_count, body.per_second)
    found = redrive_task(order, wanted, LetterListing(own.stream))
    if isinstance(found, CountDiffers):
        said = f"{found.found} letters can be moved now, not {body.expected_count}; nothing was changed"
        raise Problem(COUNT_DIFFERS, said, more={"count": found.found})
    return found


def at_once(own: App, task: Task) -> Task:
    """Work for some seconds on a new task without a rate, and return it as it is then. A fault is the task's, not the
    request's: the task is stored, and goes on. No wait for the database takes longer than the work may."""
    if task.per_second is not None:
        return task
    redrives = kind(own)
    with in_time(AT_ONCE):
        try:
            work_on(task.task_id, None, redrives, redrives.clock.now() + AT_ONCE)
        except InfrastructureFault as fault:
            log.warning("redrive not done at once", extra={"task_id": str(task.task_id), "error": str(fault)})
            with suppress(InfrastructureFault):
                note_fault(task.task_id, fault, redrives)
        own.letter_counts.forget()
        with suppress(InfrastructureFault):
            return redrives.tasks.find(task.task_id) or task
    return task


def kind(own: App) -> RedriveKind:
    """Return the redrives of the stream."""
    return RedriveKind(own.settings.stream, Redrives(own.core.patient), LetterListing(own.stream), own.clock, _rest)


def listed(task: Task) -> RedriveAnswer:
    """Show a redrive in a list, where many are shown."""
    return shown(task, MOST_COUNTED_OF_MANY)


def shown(task: Task, most: int = MOST_COUNTED) -> RedriveAnswer:
    """Show a redrive, and what became of at most so many of its letters."""
    job = redrive_of(task)
    selection, given = job.selection, job.asked.chosen
    hidden = {"partition_key": "hidden"} if given and "partition_key" in given else {}
    return RedriveAnswer(
        **of_every_kind(task, job.moved + job.unmoved, task.total),
        move=NAMED[job.asked.move],
        filter=None if given is None else {**given, **hidden},
        letters=None if selection is None else [written(SelectedAnswer, one) for one in selection[:MOST_SHOWN]],
        moved=job.moved,
        unmoved=job.unmoved,
        outcome=_outcome(job, most),
    )


def _outcome(job: Redrive, most: int) -> OutcomeAnswer | None:
    if not (job.moved and job.asked.walks_up):
        return None
    found = Redrives(app().core.patient).outcome(job.task.task_id, most)
    return written(OutcomeAnswer, found, result=found.result, words=found.words)


def _chosen(body: RedriveShape) -> LetterFilter | Selection:
    if body.letters is None:
        return filter_of(body.filter or LetterChoice(), "filter.")
    return tuple(dict.fromkeys(_position(one, f"letters[{at}].sequence_number") for at, one in enumerate(body.letters)))


def _position(name: LetterName, field: str) -> LetterPosition:
    return LetterPosition(PartitionId(name.partition_id), number_of(name.sequence_number, field))


def _rest(pause: timedelta) -> None:
    time.sleep(pause.total_seconds())

"""Work on a task, piece by piece, each piece one transaction: the loop of every kind.

SQL holds how far a task is and the time of its next piece. The caller only drives it. If it calls too often, too late,
twice at once or never again, nothing is done twice and the cap of the rate holds.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from core.errors import CommitOutcomeUnknown, InfrastructureFault, TaskConflict, VersionChanged
from core.measured import measured
from core.model.ports import Clock
from core.model.shapes import reader_of, written
from core.tasks.statuses import OPEN, TaskMove, TaskVerb
from core.tasks.store import PLAIN_OPENING, Ending, TaskOpening, Tasks
from core.tasks.task import (
    LONGEST_REST,
    MoveAnswer,
    Task,
    TaskAnswer,
    TaskOrder,
    TaskPart,
    TaskRequest,
    TaskShape,
)

VERSION_PATIENCE = timedelta(minutes=10)  # in a rolling deployment, a driver of the task's version still runs
CONFLICT_LIMIT = 5  # conflicts in a row; then the fault goes to the caller


class Done(NamedTuple):
    """The pieces that were committed, the events, letters or rows that they looked at, and whether the time that is
    left is too short for the next piece."""

    pieces: int
    looked_at: int
    is_late: bool = False


ONE_PIECE = Done(1, 0)
Sleep = Callable[[float], None]  # seconds


class TaskKind(ABC):
    """A kind of task: its request, how it does a piece, and its report.

    `asked` is the shape of its request. `answer` has the fields of every task and then those of the report. `fan_out`
    parts are worked on at once. With 1, one after the other, in order. A task that is not over at its `deadline` after
    the request fails, because an open one keeps others out. A new task without a rate is worked on for the time
    `at_once`, while its client waits. A kind that calls a transform has its `transform_version`.
    """

    name: ClassVar[str]
    asked: ClassVar[type[TaskShape]]
    answer: ClassVar[type[TaskAnswer]]
    fan_out: ClassVar[int] = 1
    deadline: ClassVar[timedelta | None] = None
    at_once: ClassVar[timedelta | None] = None
    clock: Clock

    @property
    def transform_version(self) -> str | None:
        return None

    @property
    @abstractmethod
    def tasks(self) -> Tasks:
        """The tasks of its database."""

    @abstractmethod
    def request(self, order: TaskOrder, asked: Any) -> TaskRequest:
        """Return the task of a request. Raises RequestRefused."""

    def opening(self, request: TaskRequest) -> TaskOpening:
        """Return the steps that the transaction of a new task has in addition, and those that find its parts."""
        return PLAIN_OPENING

    @abstractmethod
    def advance(self, task: Task, part: TaskPart, until: datetime) -> Done:
        """Do the next piece of a part, and further ones until a time. Each is one transaction that ends with
        `advance_steps`. Raises TaskConflict and CommitOutcomeUnknown if no piece was settled, and InfrastructureFault.
        """

    @abstractmethod
    def report(self, task: Task, *, is_listed: bool) -> dict[str, Any]:
        """Return the report of a task, and `done` if it counts more than closed parts. In a list it must be quick."""

    def shown(self, task: Task, *, is_listed: bool = False) -> TaskAnswer:
        """Return the answer that shows a task."""
        own = {"done": sum(one.closed_at is not None for one in task.parts), **self.report(task, is_listed=is_listed)}
        return written(
            self.answer,
            task,
            task_id=str(task.task_id),
            dry_run=task.is_dry_run,
            deadline_at=None if self.deadline is None else task.requested_at + self.deadline,
            history=[reader_of(MoveAnswer).decode(line) for line in task.history.splitlines()],
            **own,
        )

    def ending(self, task: Task) -> Ending:
        """Return how the transaction of a piece ends that is done now."""
        return Ending(task.task_id, self.name, self.clock.now(), transform_version=self.transform_version)

    def rest(self, pause: timedelta) -> None:  # noqa: B027 - without a rate, no piece waits
        """Sleep until the rate of a task allows its next piece."""

    def over(self, task_id: UUID) -> None:  # noqa: B027 - most kinds leave nothing behind
        """Clean up after a task that was cancelled or has failed."""


@dataclass(frozen=True, slots=True)
class SliceReport:
    """The outcome of a slice of work on a part, or on all parts in order. `is_over`: nothing is left of it, or the task
    does not run."""

    is_over: bool
    pieces: int
    looked_at: int
    part: str | None = None

    def facts(self) -> dict[str, str | int | bool | None]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def open_task(request: TaskRequest, tasks: Tasks, opening: TaskOpening = PLAIN_OPENING) -> Task:
    """Open a task and return it. If the answer of the first try is lost, find out whether it is open. Raises as
    `Tasks.open`."""
    try:
        tasks.open(request, opening)
    except CommitOutcomeUnknown:
        if tasks.find(request.order.task_id) is None:
            tasks.open(request, opening)
    found = tasks.find(request.order.task_id)
    if found is None:
        named = f"{request.kind} {request.order.task_id}"
        raise CommitOutcomeUnknown(f"{named} was opened but cannot be read; look for it in the list")
    return found


def open_parts(task_id: UUID, kind: TaskKind) -> tuple[str | None, ...]:
    """Begin a planned task, and return its parts to work on at once, at most `fan_out`. (None,) means all parts in
    order. Nothing is returned when the task does not run or has no open part."""
    task = _running(task_id, kind)
    if task is None or task.open_part is None:
        return ()
    if kind.fan_out == 1:
        return (None,)
    return tuple(one.name for one in task.parts if one.closed_at is None)[: kind.fan_out]


@measured("task slice")
def work_on(task_id: UUID, part: str | None, kind: TaskKind, until: datetime) -> SliceReport:
    """Work on a part of a task, or on all parts in order, until a time or until nothing is left.

    The first piece is always tried. Raises InfrastructureFault. The pieces before the fault remain.
    """
    pieces = looked_at = conflicts = 0
    while True:
        task = _running(task_id, kind)
        own = None if task is None else task.open_part if part is None else task.part(part)
        if task is None or own is None or own.closed_at is not None:
            return SliceReport(True, pieces, looked_at, part)
        if (pieces or conflicts) and kind.clock.now() >= until:
            return SliceReport(False, pieces, looked_at, part)
        wait = task.next_piece_at - kind.clock.now()
        if task.per_second is not None and timedelta() < wait <= LONGEST_REST:  # farther: by a clock that was ahead
            kind.rest(wait)
            continue
        try:
            done = kind.advance(task, own, until)
        except (TaskConflict, CommitOutcomeUnknown):
            conflicts += 1
            if conflicts >= CONFLICT_LIMIT:
                raise
        else:
            conflicts, pieces, looked_at = 0, pieces + done.pieces, looked_at + done.looked_at
            if done.is_late:
                return SliceReport(False, pieces, looked_at, part)


def note_fault(task_id: UUID, fault: InfrastructureFault | None, kind: TaskKind) -> None:
    """Record the fault that holds up a task, or None when the task continues."""
    kind.tasks.note_fault(task_id, None if fault is None else str(fault), kind.clock.now())


def end_overdue(task: Task, kind: TaskKind) -> bool:
    """Fail an open task, also a paused one, whose deadline has passed. Return True if it is over."""
    late = kind.deadline is not None and kind.clock.now() >= task.requested_at + kind.deadline
    if not late or task.status not in OPEN:
        return task.status not in OPEN
    why = f"the {kind.name} was not done in {kind.deadline}" + (f": {task.fault}" if task.fault else "")
    return move_task(task.task_id, "fail", kind, why)


def move_task(task_id: UUID, verb: TaskVerb, kind: TaskKind, fault: str | None = None) -> bool:
    """Change the status of a task for the app itself, not for a person."""
    moved = kind.tasks.move(TaskMove(task_id, verb, kind.name, "", kind.clock.now(), fault))
    if moved and verb == "fail":
        kind.over(task_id)
    return moved


def _running(task_id: UUID, kind: TaskKind) -> Task | None:
    """Return a task if it runs, otherwise None. A planned one begins.

    Raises VersionChanged for a driver of a different version. Pauses the task when no other driver came in time.
    """
    task = kind.tasks.find(task_id)
    if task is None or end_overdue(task, kind) or task.status == "paused":
        return None
    if task.transform_version != kind.transform_version:
        fault = VersionChanged(task.transform_version, kind.transform_version)
        if task.fault != str(fault) or kind.clock.now() < task.updated_at + VERSION_PATIENCE:
            raise fault
        move_task(task_id, "pause", kind, str(fault))
        return None
    if task.status == "planned":
        move_task(task_id, "begin", kind)
        task = kind.tasks.find(task_id)
    return task if task is not None and task.status == "running" else None

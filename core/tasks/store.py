"""Tasks in SQL: open, find, list and move them. Also the last steps of the transaction of a piece."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from core.errors import StoreUnavailable, TaskConflict, TaskDiffers, TaskOverlap, TooManyTasks
from core.model.commits import ROWS_AT_ONCE
from core.store.columns import (
    cut,
    decoded,
    decoder,
    instant_of,
    instant_text,
)
from core.store.database import Database, StreamClosed, lock_step, write
from core.store.script import Script, Step
from core.tasks.statuses import TASK_MOVES, TaskMove, TaskStatus
from core.tasks.task import LONGEST_REST, Advance, Task, TaskFacts, TaskPart, TaskRequest


def forget_states(database: Database) -> None:
    """Delete the states that jobs carried which are over, a part in a transaction, because a job may carry many.

    They are rubbish from the job's end on, so a fault leaves them to the end of the next job.
    """
    step = Step("forget_states", {"most": ROWS_AT_ONCE}, counts="forgotten")
    script = Script("states of replays", (step,), may_repeat=True, gives_way=True)
    with suppress(StoreUnavailable):
        while database.run(script).kept["forgotten"] == ROWS_AT_ONCE:
            pass


PERSON_LENGTH, REASON_LENGTH, FAULT_LENGTH = 200, 1_000, 2_000  # characters that are stored
LATEST = (datetime.max.replace(tzinfo=UTC), "~")  # after every task
_FACTS = tuple(TaskFacts.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Ending:
    """The values that the transaction of a piece writes to its task.

    The rate allows no further piece before `next_piece_at`. `transform_version` did the piece.
    """

    task_id: UUID
    kind: str
    at: datetime
    next_piece_at: datetime | None = None
    transform_version: str | None = None

    def conflict(self) -> TaskConflict:
        """Return the error when another driver was first."""
        return TaskConflict(self.kind, self.task_id)


class TaskOpening(NamedTuple):
    """Steps of the transaction of a new task: `streams` lock every stream, `before` come before the task, and `parts`
    add its parts. Without `parts`, the task has the parts of the request."""

    streams: tuple[Step, ...] = ()
    before: tuple[Step, ...] = ()
    parts: tuple[Step, ...] = ()


PLAIN_OPENING = TaskOpening()


class Tasks:
    """The tasks of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(self, request: TaskRequest, opening: TaskOpening = PLAIN_OPENING) -> None:
        """Write a new task, planned, unless the same request has opened it.

        Raises TaskDiffers, TaskOverlap, TooManyTasks and StreamClosed, each with nothing written, and
        CommitOutcomeUnknown when the answer was lost.
        """
        script = open_script(request, opening)
        while True:
            try:
                self._database.run(script)
            except _NotAdded:
                self._refuse(request)
                if self.find_ordered(request.order.task_id, request.order.digest):
                    return  # otherwise the task that kept it out has just ended
            else:
                return

    def find_ordered(self, task_id: UUID, digest: str) -> Task | None:
        """Return the task that this request has opened, or None. Raises TaskDiffers when a different one has."""
        found = self.find(task_id)
        if found is not None and found.request_digest != digest:
            raise TaskDiffers(found.kind, task_id)
        return found

    def find(self, task_id: UUID) -> Task | None:
        """Return a task as it is now, or None."""
        found = self._with_parts(self._database.ask("find_task", task_id=str(task_id)))
        return found[0] if found else None

    def read(
        self,
        stream_id: int,
        most: int,
        before: tuple[datetime, UUID] | None = None,
        *,
        kind: str | None = None,
        status: TaskStatus | None = None,
    ) -> tuple[Task, ...]:
        """Return tasks of a stream, the newest first. With `before`, only those after the task of that time and id."""
        at, task_id = LATEST if before is None else before
        page = {"requested_at": instant_text(at), "task_id": str(task_id), "most": most}
        chosen = {"stream_id": stream_id, "kind": kind, "status": status}
        return self._with_parts(self._database.ask("read_tasks", **chosen, **page))

    def read_open(self, stream_id: int) -> tuple[tuple[UUID, str, TaskStatus], ...]:
        """Return the tasks of a stream that are not over, the oldest first."""
        found = self._database.ask("read_open_tasks", stream_id=stream_id)
        return tuple((UUID(task_id), kind, status) for task_id, kind, status in found)

    def find_last(self, stream_id: int, kind: str) -> datetime | None:
        """Return the time of the last request of a kind that was no dry run."""
        found = self._database.ask("find_last_task", stream_id=stream_id, kind=kind)
        return instant_of(found[0][0]) if found else None

    def move(self, move: TaskMove) -> bool:
        """Change a task's status if TASK_MOVES allows it. Otherwise return False and change nothing."""
        allowed, at = TASK_MOVES[move.move], instant_text(move.moved_at)
        entry = {"at": at, "move": move.move, "by": move.by, "why": move.why}
        values = {
            "task_id": str(move.task_id),
            "status": allowed.target,
            "sources": f",{','.join(allowed.sources)},",
            "moved_at": at,
            "fault": cut(move.fault or "", FAULT_LENGTH),
            "entry": json.dumps(entry) + "\n",
            "transform_version": move.transform_version or "",
        }
        return bool(write(self._database, f"task {move.task_id}", "move_task", **values))

    def advance(self, ending: Ending, ahead: Advance) -> None:
        """Commit a piece that writes nothing but its report. Raises TaskConflict and CommitOutcomeUnknown."""
        self._database.run(Script(f"{ending.kind} {ending.task_id}", tuple(advance_steps(ending, ahead))))

    def note_fault(self, task_id: UUID, fault: str | None, at: datetime) -> None:
        """Record the fault that holds up an open task, or None when the task continues."""
        values = {"task_id": str(task_id), "fault": cut(fault or "", FAULT_LENGTH), "moved_at": instant_text(at)}
        write(self._database, f"task {task_id}", "note_task_fault", **values)

    def _refuse(self, request: TaskRequest) -> None:
        chosen = {name: value for name, value in _request_values(request).items() if name in _STANDING}
        if standing := self._database.ask("find_standing", **chosen):
            task_id, kind = standing[0]
            if UUID(task_id) == request.order.task_id:
                return
            raise TaskOverlap(kind, UUID(task_id)) from None
        ((count,),) = self._database.ask("count_open_tasks", stream_id=request.order.stream_id, kind=request.kind)
        if count >= request.most_open:
            raise TooManyTasks(request.kind, request.most_open) from None

    def _with_parts(self, rows: Sequence[Sequence[Any]]) -> tuple[Task, ...]:
        if not rows:
            return ()
        parts: dict[str, list[TaskPart]] = {}
        for task_id, *part in self._database.ask("read_parts", task_ids=json.dumps([(row[0],) for row in rows])):
            parts.setdefault(task_id, []).append(_PART(part))
        facts = decoded(TaskFacts, rows)
        return tuple(
            Task(**{name: getattr(one, name) for name in _FACTS}, parts=tuple(parts.get(str(one.task_id), ())))
            for one in facts
        )


class _NotAdded(Exception):
    """The task was not added: an open one keeps it out, or the limit of open tasks is reached."""


_PART: Callable[[Sequence[Any]], TaskPart] = decoder(TaskPart)
_STANDING = ("stream_id", "kind", "task_key", "holds_numbers", "parts")


def open_script(request: TaskRequest, opening: TaskOpening = PLAIN_OPENING) -> Script:
    """Return the transaction of a new task. It locks the stream, whose tasks are opened one after the other. An opening
    that locks all streams does so before: otherwise two openings could each hold one row, and wait for each other."""
    values = _request_values(request)
    return Script(
        f"{request.kind} {request.order.task_id}",
        (
            *opening.streams,
            lock_step(request.order.stream_id, StreamClosed),
            *opening.before,
            Step("add_task", values, expect=1, otherwise=_NotAdded),
            *(opening.parts or [Step("add_parts", {"task_id": values["task_id"], "parts": values["parts"]})]),
        ),
    )


def advance_steps(ending: Ending, ahead: Advance, statement: str = "advance_part") -> list[Step]:
    """Return the last steps of a piece's transaction: they advance a part of its task, and end it with its last part.

    They touch no row, which is a conflict, when the task does not run or another driver was first. Another statement
    than `advance_part` adds to the report what only the transaction knows.
    """
    own = {"task_id": str(ending.task_id), "moved_at": instant_text(ending.at)}
    rest = {"next_piece_at": instant_text(ending.next_piece_at or ending.at)}
    held = {**own, **rest, "latest": instant_text(ending.at + LONGEST_REST)}
    held["transform_version"] = ending.transform_version or ""
    advanced = {
        **ahead.counts,
        **own,
        "part": ahead.part,
        "expected": ahead.step,
        "position": ahead.position,
        "report": ahead.report,
        "is_last": int(ahead.is_last),
    }
    return [
        Step("hold_task", held, expect=1, otherwise=ending.conflict),
        Step(statement, advanced, expect=1, otherwise=ending.conflict),
        *([Step("end_task", own)] if ahead.is_last else []),
    ]


def _request_values(request: TaskRequest) -> dict[str, Any]:
    order = request.order
    parts = [
        (one.name, *(one.span.ends if one.span else (None, None)), one.position, one.asked, one.report, place)
        for place, one in enumerate(request.parts)
    ]
    return {
        "task_id": str(order.task_id),
        "stream_id": order.stream_id,
        "kind": request.kind,
        "is_dry_run": int(request.is_dry_run),
        "task_key": request.key,
        "asked": request.asked,
        "request_digest": order.digest,
        "total": len(request.parts) if request.total is None else request.total,
        "per_second": request.per_second or 0,
        "requested_by": cut(order.by, PERSON_LENGTH),
        "reason": cut(order.why, REASON_LENGTH),
        "requested_at": instant_text(order.at),
        "most_open": request.most_open,
        "holds_numbers": int(request.holds_numbers and not request.is_dry_run),
        "transform_version": request.transform_version or "",
        "parts": json.dumps(parts),
    }

"""The shapes of requests about tasks, and the fields that the answer of every kind has."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from core.api.operation import Answered, Cursor, Reason, Shape
from core.api.problems import not_found
from core.model.tasks import TaskKind, TaskStatus
from core.tasks.task import Task
from handlers.app import App

PAGE, MOST_OF_A_PAGE = 20, 100
UUID_FORM = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z"
TaskText = Annotated[str, msgspec.Meta(pattern=UUID_FORM, description="A task's id.")]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MOST_OF_A_PAGE)]


class TaskPath(Shape):
    """A task."""

    task_id: TaskText


class TaskShape(Shape, tag_field="kind"):
    """A request for a task."""

    reason: Reason | Literal[""] = ""


class MoveShape(Shape):
    """The reason to pause or cancel a task."""

    reason: Reason


class ResumeShape(MoveShape):
    """The reason to resume a task, and the version of the app's transform if the task was opened with a different
    one."""

    transform_version: str | None = None


class TasksQuery(Shape):
    """A page of tasks, the newest first: of one kind or status, or of all."""

    kind: TaskKind | None = None
    status: TaskStatus | None = None
    limit: Limit = PAGE
    cursor: Cursor | None = None


class MoveAnswer(Answered):
    """A change of a task's status: its author, time and reason."""

    at: datetime
    move: str
    by: str
    why: str


class TaskAnswer(Answered):
    """A task: `done` of `total` numbers, letters or parts. `fault` is the fault that holds it up now, or that ended it.
    An open task fails at `deadline_at`, if it has one. `history` is the last of these fields: the pages and the command
    line show those after it as the kind's own."""

    task_id: str
    status: TaskStatus
    dry_run: bool
    done: int
    total: int
    per_second: int | None
    requested_by: str
    reason: str
    requested_at: datetime
    deadline_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    updated_at: datetime
    fault: str | None
    history: list[MoveAnswer]


def of_every_kind(task: Task, done: int, total: int, deadline_at: datetime | None = None) -> dict[str, Any]:
    """Return the fields that the answer of every kind has."""
    return {
        "task_id": str(task.task_id),
        "status": task.status,
        "dry_run": task.is_dry_run,
        "done": done,
        "total": total,
        "per_second": task.per_second,
        "requested_by": task.requested_by,
        "reason": task.reason,
        "requested_at": task.requested_at,
        "deadline_at": deadline_at,
        "started_at": task.started_at,
        "ended_at": task.ended_at,
        "updated_at": task.updated_at,
        "fault": task.fault,
        "history": [msgspec.json.decode(line, type=MoveAnswer) for line in task.history.splitlines()],
    }


def found_task(own: App, task_id: str, kind: TaskKind | None = None) -> Task:
    """Return a task of the stream, of a kind if one is given."""
    task = own.tasks.find(UUID(task_id))
    if task is None or task.stream != own.settings.stream or kind not in (None, task.kind):
        raise not_found("task_id", f"there is no {kind or 'task'} {task_id}")
    return task

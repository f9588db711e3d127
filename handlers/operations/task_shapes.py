"""The shapes of requests about tasks, and the fields that the answer of every kind has."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from core.api.problems import not_found
from core.model.shapes import PAGE, Cursor, Limit, Reason, Shape
from core.tasks.statuses import TaskKind, TaskStatus
from core.tasks.store import Tasks
from core.tasks.task import Task
from handlers.app import App

UUID_FORM = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z"
TaskText = Annotated[str, msgspec.Meta(pattern=UUID_FORM, description="A task's id.")]


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


def found_task(own: App, task_id: str, kind: TaskKind | None = None) -> Task:
    """Return a task of the stream, of a kind if one is given."""
    task = Tasks(own.brief).find(UUID(task_id))
    if task is None or task.stream != own.settings.stream or kind not in (None, task.kind):
        raise not_found("task_id", f"there is no {kind or 'task'} {task_id}")
    return task

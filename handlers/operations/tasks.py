"""List and show tasks of every kind, and pause, resume and cancel them."""

from typing import Any
from uuid import UUID

from core.api.cursors import Moment, key_of, page_of, query_of
from core.api.operation import Answered, Call, Nothing, operation
from core.api.problems import CONFLICT, NOT_FOUND, Problem
from core.model.tasks import TaskMove, TaskVerb
from core.tasks.task import Task
from handlers.app import app
from handlers.kinds import ANY_TASK, KINDS, kind_named
from handlers.operations.task_shapes import MoveShape, ResumeShape, TaskAnswer, TaskPath, TasksQuery, found_task


class TasksAnswer(Answered):
    """A page of tasks, and the kinds of tasks that there are."""

    tasks: list[ANY_TASK]
    next: str | None
    kinds: list[str]


@operation("A page of tasks", "tasks")
def list_tasks(call: Call[Nothing, TasksQuery, Nothing]) -> TasksAnswer:
    """List a page of tasks, the newest first."""
    own, query, before = app(), call.query, None
    bound_to = ("tasks", query_of(query))
    if query.cursor is not None:
        at, task_id = key_of(bound_to, query.cursor, tuple[Moment, UUID])
        before = (at, task_id)
    stream_id = own.find_stream()
    found: tuple[Task, ...] = ()
    if stream_id is not None:
        found = own.tasks.read(stream_id, query.limit + 1, before, kind=query.kind, status=query.status)
    page, following = page_of(found, query.limit, bound_to, lambda task: (task.requested_at, task.task_id))
    return TasksAnswer(tasks=[_shown(task, in_list=True) for task in page], next=following, kinds=[*KINDS])


@operation("One task with its progress", "tasks", {200: ANY_TASK}, (NOT_FOUND,))
def show_task(call: Call[TaskPath, Nothing, Nothing]) -> TaskAnswer:
    """Show a task."""
    return _shown(found_task(app(), call.path.task_id))


@operation("Pause a task between two pieces", "tasks", {200: ANY_TASK}, (NOT_FOUND, CONFLICT))
def pause_task(call: Call[TaskPath, Nothing, MoveShape]) -> TaskAnswer:
    """Begin no further piece; the current one is finished or rolled back."""
    return _moved(call, "pause")


@operation("Resume a paused task", "tasks", {200: ANY_TASK}, (NOT_FOUND, CONFLICT))
def resume_task(call: Call[TaskPath, Nothing, ResumeShape]) -> TaskAnswer:
    """Continue where the task was paused. With a new version of the transform only if it is named."""
    own, named = app(), call.body.transform_version
    task = found_task(own, call.path.task_id)
    of_app, versions = kind_named(own, task.kind).transform_version, (named, task.transform_version)
    if of_app not in versions or named not in (None, of_app):
        detail = f"resume: the task runs with the transform {task.transform_version}, and this app has {of_app}"
        raise Problem(CONFLICT, detail, more={"task_status": task.status, "transform_version": of_app})
    return _moved(call, "resume", named)


@operation("Cancel a task; what it has done stays done", "tasks", {200: ANY_TASK}, (NOT_FOUND, CONFLICT))
def cancel_task(call: Call[TaskPath, Nothing, MoveShape]) -> TaskAnswer:
    """Cancel the task for good. What it has done stays done."""
    return _moved(call, "cancel")


def _moved(call: Call[TaskPath, Nothing, Any], verb: TaskVerb, version: str | None = None) -> TaskAnswer:
    own = app()
    task = found_task(own, call.path.task_id)
    move = TaskMove(task.task_id, verb, call.who, call.body.reason, call.at, transform_version=version)
    if not own.tasks.move(move):
        status = found_task(own, call.path.task_id).status
        raise Problem(CONFLICT, f"{verb}: the {task.kind} is {status}", more={"task_status": status})
    if verb == "cancel":
        kind_named(own, task.kind).over(task.task_id)
    return _shown(found_task(own, call.path.task_id))


def _shown(task: Task, *, in_list: bool = False) -> TaskAnswer:
    kind = KINDS[task.kind]
    return ((in_list and kind.listed) or kind.shown)(task)

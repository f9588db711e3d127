"""Open, list and show tasks of every kind, and pause, resume and cancel them."""

import logging
from typing import Any
from uuid import UUID

import msgspec

from core.api.operation import Answer, Call, Moment, key_of, operation, page_of, query_of
from core.api.problems import CONFLICT, COUNT_DIFFERS, NOT_FOUND, TASK_OVERLAP, Problem, clipped, not_found
from core.errors import TaskDiffers, TaskOverlap, TooManyTasks
from core.model.shapes import Answered, Nothing
from core.store.database import StreamClosed
from core.tasks.run import open_task
from core.tasks.statuses import OPEN, TASK_MOVES, TaskKind, TaskMove, TaskVerb
from core.tasks.store import Tasks
from core.tasks.task import Task, TaskAnswer, TaskOrder
from handlers.app import App, app
from handlers.kinds import ANY_REQUEST, ANY_TASK, KINDS, kind_named
from handlers.operations.task_shapes import MoveShape, ResumeShape, TaskPath, TaskShape, TasksQuery, found_task

log = logging.getLogger("hubledger.api")


class TasksAnswer(Answered):
    """A page of tasks, and the kinds of tasks that there are."""

    tasks: list[ANY_TASK]
    next: str | None
    kinds: list[str]


@operation(
    "Open a task; the same request again is answered with the same task",
    "tasks",
    {200: ANY_TASK, 201: ANY_TASK},
    (NOT_FOUND, CONFLICT, TASK_OVERLAP, COUNT_DIFFERS),
)
def put_task(call: Call[TaskPath, Nothing, ANY_REQUEST]) -> Answer:
    """Open the task of an id that the client made; its orchestration works on it."""
    own, body, task_id = app(), call.body, UUID(call.path.task_id)
    name: TaskKind = body.__struct_config__.tag
    digest = own.settings.erasure.hash_of(msgspec.json.encode(body, order="deterministic").decode())
    try:
        task, status = Tasks(own.brief).find_ordered(task_id, digest), 200
        if task is None:
            task, status = _opened(own, name, call, digest), 201
    except (TaskDiffers, TaskOverlap) as other:
        kind = CONFLICT if isinstance(other, TaskDiffers) else TASK_OVERLAP
        raise Problem(kind, str(other), more={"task_id": str(other.task_id)}) from other
    except TooManyTasks as full:
        raise Problem(CONFLICT, str(full), more={"limit": full.limit}) from full
    except StreamClosed as closed:
        raise Problem(CONFLICT, "the next incarnation of the stream was opened: send the request again") from closed
    later = {"Retry-After": "2"} if task.status in OPEN else {}
    return Answer(_shown(task, in_list=True), status, {"Location": f"/api/tasks/{task_id}", **later})


def _opened(own: App, name: TaskKind, call: Call[TaskPath, Nothing, TaskShape], digest: str) -> Task:
    kind, stream_id = KINDS[name], own.stream.find()
    if stream_id is None:
        raise not_found("kind", f"there is no commit yet, so there is nothing for this {name}")
    order = TaskOrder(UUID(call.path.task_id), stream_id, call.who, call.body.reason, call.at, digest)
    task = open_task(kind.request(own, order, call.body), Tasks(own.brief))
    facts = {"kind": name, "task_id": call.path.task_id, "who": call.who, "why": clipped(call.body.reason)}
    log.info("task opened", extra={"action": "open", **facts, "total": task.total})
    return task if kind.at_once is None else kind.at_once(own, task)


@operation("A page of tasks", "tasks")
def list_tasks(call: Call[Nothing, TasksQuery, Nothing]) -> TasksAnswer:
    """List a page of tasks, the newest first."""
    own, query, before = app(), call.query, None
    bound_to = ("tasks", query_of(query))
    if query.cursor is not None:
        at, task_id = key_of(bound_to, query.cursor, tuple[Moment, UUID])
        before = (at, task_id)
    stream_id = own.stream.find()
    found: tuple[Task, ...] = ()
    if stream_id is not None:
        found = Tasks(own.brief).read(stream_id, query.limit + 1, before, kind=query.kind, status=query.status)
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
        detail = f"{detail}: to go on with the latter, name it as transform_version"
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
    is_moved, task = Tasks(own.brief).move(move), found_task(own, call.path.task_id)
    if not is_moved and task.status != TASK_MOVES[verb].target:
        raise Problem(CONFLICT, f"{verb}: the {task.kind} is {task.status}", more={"task_status": task.status})
    if verb == "cancel":
        kind_named(own, task.kind).over(task.task_id)
    return _shown(task)


def _shown(task: Task, *, in_list: bool = False) -> TaskAnswer:
    kind = KINDS[task.kind]
    return ((in_list and kind.listed) or kind.shown)(task)

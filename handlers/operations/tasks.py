"""The kinds of tasks. Open, list and show tasks of every kind, and pause, resume and cancel them."""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Literal, Union
from uuid import UUID

import msgspec

from core.aggregation.orders import Pipelines
from core.aggregation.store import Aggregations
from core.api.operation import Answer, Call, Moment, key_of, operation, page_of, query_of
from core.api.problems import CONFLICT, COUNT_DIFFERS, NOT_FOUND, TASK_OVERLAP, Problem, not_found
from core.audit.audit import verify_partition
from core.audit.task import AuditKind
from core.erasure.erasure import left_elsewhere
from core.erasure.store import Erasures
from core.erasure.task import ErasedRows, ErasureKind, erase_rows, erase_windows
from core.errors import InfrastructureFault, TaskDiffers, TaskOverlap, TooManyTasks
from core.ledger.store import Ledger
from core.ledger.totals import count_without_key
from core.letters.listing import LetterListing
from core.letters.redrive import RedriveKind, Redrives
from core.model.shapes import PAGE, Answered, Cursor, Limit, Nothing, Reason, Shape
from core.purge.store import Purges
from core.purge.task import PurgeKind
from core.replay.store import Replays
from core.replay.task import ReplayKind
from core.settle.partition_store import Partitions
from core.store.database import StreamClosed
from core.tasks.run import TaskKind, note_fault, open_task, work_on
from core.tasks.statuses import OPEN, TASK_MOVES, TaskMove, TaskStatus, TaskVerb
from core.tasks.store import Tasks
from core.tasks.task import Task, TaskAnswer, TaskOrder, TaskShape
from core.transforms.loading import load_aggregates
from handlers.app import CLOCK, App, aggregation, app, in_time
from handlers.operations.audits import audit_store

log = logging.getLogger("hubledger.api")


def replay_store(own: App) -> Replays:
    """Return the store of the replays, which waits for a database that does not answer."""
    return Replays(own.core.patient, Partitions(own.core.patient, key=own.settings.erasure))


def replays_of(own: App) -> ReplayKind:
    """Make the replays of the stream."""
    given, parts = own.settings, (replay_store(own), own.stream_hub, own.transform, own.clock)
    most, journal = given.replay_most_events, own.core.ingestion.journal
    return ReplayKind(given.stream, *parts, given.letters, journal=journal, most_events=most)


def redrives_of(own: App) -> RedriveKind:
    """Make the redrives of the stream."""
    store, listing = Redrives(own.core.patient), LetterListing(own.stream)
    return RedriveKind(own.settings.stream, store, listing, own.clock, time.sleep)


def purges_of(own: App) -> PurgeKind:
    """Make the purges of the stream."""
    jobs = own.jobs if own.settings.spark.engine != "none" else ()
    verify = partial(verify_partition, audit_store(own), own.clock)
    return PurgeKind(Purges(own.stream), verify, jobs, own.clock, own.settings.purging.days)


def erasures_of(own: App) -> ErasureKind:
    """Make the erasures of the stream."""

    def erase_lake(erased: ErasedRows) -> tuple[str, ...]:
        from core.remote.spark.open import open_lake  # nothing else here needs the engines

        engine = aggregation()
        lake = open_lake(given) if engine is None else engine.lake
        if engine is None:
            notes = erase_windows(erased, aggregates, Aggregations(own.brief, classes), lake)
        else:
            notes = erase_rows(erased, engine, Pipelines(own.brief))
        without_key = count_without_key(Ledger(own.stream).read_books())
        has_lake = lake is not None
        left = left_elsewhere(own.clock.now(), given.hub_retention, has_lake=has_lake, without_key=without_key)
        return (*notes, *left)

    classes, given = own.transform.row_classes, own.settings
    aggregates = load_aggregates(classes)
    store = Erasures(own.stream, classes, aggregates)
    return ErasureKind(given.stream, store, given.erasure, erase_lake, own.clock, CLOCK.now)


# The kinds of tasks, each with the function that makes it of the parts of the app. A new kind is a line here.
MADE: Mapping[type[TaskKind], Callable[[App], TaskKind]] = {
    ReplayKind: replays_of,
    RedriveKind: redrives_of,
    PurgeKind: purges_of,
    AuditKind: lambda own: AuditKind(audit_store(own), own.clock),
    ErasureKind: erasures_of,
}
KINDS: Mapping[str, type[TaskKind]] = {one.name: one for one in MADE}
KindName: Any = Literal[tuple(KINDS)]
ANY_TASK: Any = Union[tuple(one.answer for one in MADE)]  # noqa: UP007 - it is computed
ANY_REQUEST: Any = Union[tuple(one.asked for one in MADE)]  # noqa: UP007 - it is computed


def kind_named(own: App, name: str) -> TaskKind:
    """Return the kind with a name, made of the parts of the app."""
    return MADE[KINDS[name]](own)


UUID_FORM = r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z"
TaskText = Annotated[str, msgspec.Meta(pattern=UUID_FORM, description="A task's id.")]


class TaskPath(Shape):
    """A task."""

    task_id: TaskText


class MoveShape(Shape):
    """The reason to pause or cancel a task."""

    reason: Reason


class ResumeShape(MoveShape):
    """The reason to resume a task, and the version of the app's transform if the task was opened with a different
    one."""

    transform_version: str | None = None


class TasksQuery(Shape):
    """A page of tasks, the newest first: of one kind or status, or of all."""

    kind: KindName | None = None
    status: TaskStatus | None = None
    limit: Limit = PAGE
    cursor: Cursor | None = None


def found_task(own: App, task_id: str, kind: str | None = None) -> Task:
    """Return a task of the stream, of a kind if one is given."""
    task = Tasks(own.brief).find(UUID(task_id))
    if task is None or task.stream != own.settings.stream or kind not in (None, task.kind):
        raise not_found("task_id", f"there is no {kind or 'task'} {task_id}")
    return task


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
    """Open the task of an id that the client made. Its orchestration works on it."""
    own, body, task_id = app(), call.body, UUID(call.path.task_id)
    kind = kind_named(own, body.__struct_config__.tag)
    digest = own.settings.erasure.hash_of(msgspec.json.encode(body, order="deterministic").decode())
    try:
        task, status = Tasks(own.brief).find_ordered(task_id, digest), 200
        if task is None:
            task, status = _opened(own, kind, call, digest), 201
    except (TaskDiffers, TaskOverlap) as other:
        problem = CONFLICT if isinstance(other, TaskDiffers) else TASK_OVERLAP
        raise Problem(problem, str(other), more={"task_id": str(other.task_id)}) from other
    except TooManyTasks as full:
        raise Problem(CONFLICT, str(full), more={"limit": full.limit}) from full
    except StreamClosed as closed:
        own.stream.forget()
        raise Problem(CONFLICT, "the next incarnation of the stream was opened: send the request again") from closed
    later = {"Retry-After": "2"} if task.status in OPEN else {}
    return Answer(kind.shown(task, is_listed=True), status, {"Location": f"/api/tasks/{task_id}", **later})


def _opened(own: App, kind: TaskKind, call: Call[TaskPath, Nothing, TaskShape], digest: str) -> Task:
    """Open a task, and work on it for some seconds if its kind says so. A fault of that work is the task's, not the
    request's: the task is stored, and goes on. No wait for the database takes longer than the work may."""
    stream_id = own.stream.find()
    if stream_id is None:
        raise not_found("kind", f"there is no commit yet, so there is nothing for this {kind.name}")
    order = TaskOrder(UUID(call.path.task_id), stream_id, call.who, call.body.reason, call.at, digest)
    request = kind.request(order, call.body)
    task = open_task(request, Tasks(own.brief), kind.opening(request))
    facts = {"kind": kind.name, "task_id": call.path.task_id, "who": call.who}
    log.info("task opened", extra={"action": "open", **facts, "total": task.total})
    if kind.at_once is None or task.per_second is not None:
        return task
    with in_time(kind.at_once):
        try:
            work_on(task.task_id, None, kind, kind.clock.now() + kind.at_once)
        except InfrastructureFault as fault:
            log.warning("task not done at once", extra={"task_id": str(task.task_id), "error": str(fault)})
            with suppress(InfrastructureFault):
                note_fault(task.task_id, fault, kind)
        own.letter_counts.forget()
        with suppress(InfrastructureFault):
            return kind.tasks.find(task.task_id) or task
    return task


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
    shown = [kind_named(own, task.kind).shown(task, is_listed=True) for task in page]
    return TasksAnswer(tasks=shown, next=following, kinds=[*KINDS])


@operation("One task with its progress", "tasks", {200: ANY_TASK}, (NOT_FOUND,))
def show_task(call: Call[TaskPath, Nothing, Nothing]) -> TaskAnswer:
    """Show a task."""
    own = app()
    task = found_task(own, call.path.task_id)
    return kind_named(own, task.kind).shown(task)


@operation("Pause a task between two pieces", "tasks", {200: ANY_TASK}, (NOT_FOUND, CONFLICT))
def pause_task(call: Call[TaskPath, Nothing, MoveShape]) -> TaskAnswer:
    """Begin no further piece. The current piece is finished or rolled back."""
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
    kind = kind_named(own, task.kind)
    if verb == "cancel":
        kind.over(task.task_id)
    return kind.shown(task)

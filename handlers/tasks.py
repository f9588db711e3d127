"""The durable orchestration that drives tasks, and the timer that starts what stands still.

SQL is the truth, so two starts do no harm, and losing the orchestration changes nothing.
"""

import asyncio
import json
import logging
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

import azure.durable_functions as df
import azure.functions as func

from core.errors import HubledgerError, InfrastructureFault

if TYPE_CHECKING:
    from core.tasks.run import TaskKind
    from handlers.app import App


log = logging.getLogger("hubledger.tasks")
Result = TypeVar("Result")

VISIBILITY = timedelta(minutes=1)  # both timeouts of host.json: after it, another machine does the work of a dead one
SLICE = timedelta(seconds=14)  # of work in one activity, and of its waits; the last call still ends within VISIBILITY
PAUSE = timedelta(seconds=30)  # after a fault
SECOND = timedelta(seconds=1)
STALLED_AFTER = timedelta(minutes=5)  # without a sign of life; a step takes a minute at most
SILENT = "no sign of life for too long: an activity or a timer was lost"


def outlive(task: Any, otherwise: Result) -> Generator[Any, Any, Result]:
    """Wait for a task, and return its result. Return `otherwise` when it failed, or its worker died.

    A task of several must hold plain calls only: with calls that are retried, the SDK and the host number their tasks
    differently (azure-functions-durable-python#603).
    """
    try:
        result: Result = yield task
    except Exception:  # noqa: BLE001 - the SDK raises no other class; the host has logged it
        return otherwise
    return result


def sleep(context: df.DurableOrchestrationContext, wait: timedelta) -> Generator[Any, Any, None]:
    """Sleep for at least this time, and for a second.

    A timer is a message that its queue hides for whole seconds, cut: it fires up to a second early, and below a second
    at once. So it is set a second later.
    """
    yield context.create_timer(context.current_utc_datetime + max(wait, SECOND) + SECOND)


def refuse_foreign(context: df.DurableOrchestrationContext, given: object) -> str:
    """Log an instance that the app did not start, and return its output. It has no history, so it logs once."""
    facts = {"action": "orchestration_refused", "instance_id": context.instance_id, "error": f"input {given!r:.200}"}
    log.warning("orchestration ended: the app did not start it under this name", extra=facts)
    return "the app did not start this instance"


def is_silent(status: Any, now: datetime, patience: timedelta = STALLED_AFTER) -> bool:
    """Return True when a running orchestration has done no step for too long, and does not sleep by its own word."""
    woken_at = (
        datetime.fromisoformat(status.custom_status) if status.custom_status else datetime.min.replace(tzinfo=UTC)
    )
    return max(status.last_updated_time.replace(tzinfo=UTC), woken_at) < now - patience


bp = df.Blueprint()

DRIVEN = (df.OrchestrationRuntimeStatus.Running, df.OrchestrationRuntimeStatus.Pending)
SUSPENDED = df.OrchestrationRuntimeStatus.Suspended
DIED = {"error": "WorkerDied"}
RESUMED = "the task was resumed"
DAY = timedelta(days=1)


@bp.function_name("watch_tasks")
@bp.timer_trigger(arg_name="timer", schedule=os.environ.get("TASK_SCHEDULE") or "30 * * * * *", use_monitor=False)
@bp.durable_client_input(client_name="client")
async def watch_tasks(timer: func.TimerRequest, client: Any) -> None:
    """Open the purge of the day if the settings say so, fail what is overdue, and look after every task that may run.

    An orchestration that was lost or purged is started again. A task whose orchestration is suspended is paused, unless
    the task has just been resumed.
    """
    for task_id in await asyncio.to_thread(_standing):
        with _to_the_timer(task_id):
            status = await _started(client, str(task_id))
            if status is not None and status.runtime_status == SUSPENDED:
                if not await asyncio.to_thread(_pause, task_id):
                    await client.resume(f"task-{task_id}", RESUMED)
            elif status is not None and is_silent(status, datetime.now(UTC)):
                await client.terminate(f"task-{task_id}", SILENT)
                facts = {"action": "drive", "task_id": str(task_id), "error": SILENT}
                log.warning("task stalled; the next tick drives it again", extra=facts)


async def drive(client: Any, task_id: str) -> None:
    """Start the orchestration of a task unless it runs, or resume it if it is suspended. The timer does what fails."""
    with _to_the_timer(task_id):
        status = await _started(client, task_id)
        if status is not None and status.runtime_status == SUSPENDED:
            await client.resume(f"task-{task_id}", RESUMED)


async def _started(client: Any, task_id: str) -> Any:
    """Start the orchestration of a task unless there is one. Return the status of the one that there is."""
    instance = f"task-{task_id}"
    status = await client.get_status(instance)
    if status is not None and status.runtime_status in (*DRIVEN, SUSPENDED):
        return status
    await client.start_new("drive_task", instance, task_id)
    return None


@contextmanager
def _to_the_timer(task_id: object) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the client raises plain Exceptions
        facts = {"action": "drive", "task_id": str(task_id), "error": str(error)}
        log.warning("task not driven; the timer will drive it: %s", error, extra=facts)


def drive_task(context: df.DurableOrchestrationContext) -> Generator[Any, Any, Any]:
    """Work on the parts of a task, slice by slice, until none is left or the task does not run. Only ids travel.

    An instance that `drive` did not name ends at once.
    """
    task_id = context.get_input()
    if not is_id(task_id) or context.instance_id != f"task-{task_id}":
        return refuse_foreign(context, task_id)
    opened = yield from outlive(context.call_activity("open_task", task_id), DIED)
    is_faulty = "error" in opened
    if not is_faulty:
        if not opened["parts"]:
            return "nothing is left, or the task does not run"
        slices = [context.call_activity("task_slice", {"task_id": task_id, "part": part}) for part in opened["parts"]]
        done = yield from outlive(context.task_all(slices), [DIED])
        is_faulty = any("error" in one for one in done)
    if is_faulty:
        yield from sleep(context, PAUSE)
    context.continue_as_new(task_id)
    return None


bp.orchestration_trigger(context_name="context")(drive_task)


@bp.activity_trigger(input_name="task")
def open_task(task: str) -> dict:
    """Begin a planned task, and return {parts} to work on at once, or {error}."""
    from core.tasks.run import open_parts
    from handlers.app import app, in_time

    with in_time(SLICE):
        try:
            kind = _kind_of(app(), UUID(task))
            return {"parts": [] if kind is None else list(open_parts(UUID(task), kind))}
        except HubledgerError as fault:
            return _failed(task, fault)


@bp.activity_trigger(input_name="work")
def task_slice(work: dict) -> dict:
    """Do a slice of work on a part, or on all parts in order. Return {ok: its report}, or {error}. The pieces before a
    fault remain."""
    from core.tasks.run import note_fault, work_on
    from handlers.app import app, in_time

    task_id, own = UUID(work["task_id"]), app()
    with in_time(SLICE):
        try:
            kind = _kind_of(own, task_id)
            if kind is None:
                return {"ok": None}
            report = work_on(task_id, work["part"], kind, kind.clock.now() + SLICE)
            note_fault(task_id, None, kind)
        except HubledgerError as fault:
            return _failed(work["task_id"], fault)
    facts = {"action": kind.name, "task_id": work["task_id"], **report.facts()}
    log.info("task advanced", extra=facts)
    return {"ok": report.facts()}


def _failed(task_id: str, fault: HubledgerError) -> dict:
    from core.tasks.run import note_fault
    from handlers.app import app

    facts = {"action": "task", "task_id": task_id, "error": str(fault)}
    log.warning("task step failed; will retry: %s", fault, extra=facts)
    with suppress(HubledgerError):
        kind = _kind_of(app(), UUID(task_id))
        if kind is not None and isinstance(fault, InfrastructureFault):
            note_fault(UUID(task_id), fault, kind)
    return {"error": type(fault).__name__}


def is_id(given: object) -> bool:
    """Return True for the text of an id as the app writes it."""
    try:
        return given == str(UUID(str(given)))
    except ValueError:
        return False


def _pause(task_id: UUID) -> bool:
    """Pause a task. Return False for one that was just resumed: Durable follows after some seconds."""
    from core.store.columns import instant_of
    from core.tasks.run import move_task
    from core.tasks.store import Tasks
    from handlers.app import app

    own = app()
    task, kind = Tasks(own.brief).find(task_id), _kind_of(own, task_id)
    moves = [json.loads(line) for line in task.history.splitlines()] if task is not None else []
    if moves and moves[-1]["move"] == "resume" and own.clock.now() - instant_of(moves[-1]["at"]) < VISIBILITY:
        return False
    why = f"Durable holds the orchestration task-{task_id}: it is suspended. Resume the task"
    if kind is not None and move_task(task_id, "pause", kind, why):
        facts = {"action": "drive", "task_id": str(task_id), "error": why}
        log.warning("task paused, because its orchestration is suspended", extra=facts)
    return True


def _standing() -> list[UUID]:
    """Open the purge of the day, unless one was requested in the last 24 hours or is open. Return what may run."""
    from core.errors import TaskOverlap
    from core.purge.task import PurgeShape
    from core.store.database import StreamClosed
    from core.tasks.run import end_overdue, open_task
    from core.tasks.store import Tasks
    from core.tasks.task import TaskOrder
    from handlers.app import app
    from handlers.operations.tasks import kind_named

    own = app()
    stream_id, now, store, standing = own.stream.find(), own.clock.now(), Tasks(own.brief), list[UUID]()
    if stream_id is None:
        return []
    last = store.find_last(stream_id, "purge") if own.settings.purging.daily else now
    if last is None or now - last >= DAY:
        asked = PurgeShape(reason="PURGE_DAILY", dry_run=False)
        order = TaskOrder(own.clock.new_id(), stream_id, "timer", asked.reason, now)
        with suppress(TaskOverlap, StreamClosed):
            open_task(kind_named(own, "purge").request(order, asked), store)
    for task_id, name, _ in store.read_open(stream_id):
        task = store.find(task_id)
        if task is not None and not end_overdue(task, kind_named(own, name)) and task.status != "paused":
            standing.append(task_id)
    return standing


def _kind_of(own: "App", task_id: UUID) -> "TaskKind | None":
    from core.tasks.store import Tasks
    from handlers.operations.tasks import kind_named

    task = Tasks(own.core.patient).find(task_id)  # it waits for a database that does not answer
    return None if task is None else kind_named(own, task.kind)

"""/api/replays, and the durable orchestration that drives them: SQL is the truth, and losing it changes nothing."""

import asyncio
import json
import logging
import os
from collections.abc import Generator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import azure.durable_functions as df
import azure.functions as func

from core.errors import HubledgerError, InfrastructureFault
from core.model.events import PartitionId
from core.settings import replay_check_schedule
from handlers.http import changes, reads, respond

log = logging.getLogger("hubledger.replays")
bp = df.Blueprint()

SLICE = timedelta(seconds=30)  # of one activity's work: well inside any functionTimeout, and often enough looked at
PAUSE = timedelta(seconds=30)  # after a fault
FAN_OUT = 8  # partitions at once
DRIVEN = (df.OrchestrationRuntimeStatus.Running, df.OrchestrationRuntimeStatus.Pending)


@reads(bp, "replays")
def list_replays(req: func.HttpRequest) -> func.HttpResponse:
    """A page."""
    return respond(req, "list_replays")


@reads(bp, "replays/{job_id}")
def show_replay(req: func.HttpRequest) -> func.HttpResponse:
    """One of them."""
    return respond(req, "show_replay")


@reads(bp, "replays/{job_id}/diff")
def show_replay_diff(req: func.HttpRequest) -> func.HttpResponse:
    """What a dry run would change."""
    return respond(req, "show_replay_diff")


@bp.durable_client_input(client_name="client")
@changes(bp, "replays")
async def start_replay(req: func.HttpRequest, client: Any) -> func.HttpResponse:
    """Ask for one."""
    return await _answer_and_drive(req, "start_replay", client)


@changes(bp, "replays/{job_id}/pause")
def pause_replay(req: func.HttpRequest) -> func.HttpResponse:
    """Between two pieces."""
    return respond(req, "pause_replay")


@bp.durable_client_input(client_name="client")
@changes(bp, "replays/{job_id}/resume")
async def resume_replay(req: func.HttpRequest, client: Any) -> func.HttpResponse:
    """Go on."""
    return await _answer_and_drive(req, "resume_replay", client)


@changes(bp, "replays/{job_id}/cancel")
def cancel_replay(req: func.HttpRequest) -> func.HttpResponse:
    """For good."""
    return respond(req, "cancel_replay")


@bp.function_name("watch_replays")
@bp.timer_trigger(arg_name="timer", schedule=replay_check_schedule(os.environ), use_monitor=False)
@bp.durable_client_input(client_name="client")
async def watch_replays(timer: func.TimerRequest, client: Any) -> None:
    """Every job that is open has an orchestration; one that was lost or purged is started again."""
    for job_id in await asyncio.to_thread(_open_jobs):
        await _drive(client, str(job_id))


def drive_replay(context: df.DurableOrchestrationContext) -> Generator[Any, Any, Any]:
    """Work on the partitions of a job, slice by slice, until none is left or it does not run. Only ids travel."""
    job_id = context.get_input()
    opened = yield context.call_activity("open_replay_job", job_id)
    is_faulty = "error" in opened
    if not is_faulty:
        if not opened["partitions"]:
            return "nothing is left, or it does not run"
        pieces = [
            context.call_activity("replay_pieces", {"job_id": job_id, "partition_id": id})
            for id in opened["partitions"][:FAN_OUT]
        ]
        done = yield context.task_all(pieces)
        is_faulty = any("error" in one for one in done)
    if is_faulty:
        yield context.create_timer(context.current_utc_datetime + PAUSE)
    context.continue_as_new(job_id)
    return None


bp.orchestration_trigger(context_name="context")(drive_replay)


@bp.activity_trigger(input_name="job")
def open_replay_job(job: str) -> dict:
    """Begin a planned job; {partitions} that have work left, or {error}."""
    from core.replay.run import open_partitions  # what replays need is not needed to index the functions
    from handlers.replay_services import replay_services

    try:
        partitions = open_partitions(UUID(job), replay_services().means)
    except HubledgerError as fault:
        return _failed(job, fault)
    return {"partitions": list(partitions)}


@bp.activity_trigger(input_name="work")
def replay_pieces(work: dict) -> dict:
    """A slice of work on one partition: {ok: its report}, or {error}; the pieces before a fault stand."""
    from core.replay.run import note_fault, replay_slice
    from handlers.replay_services import replay_services

    job = work["job_id"]
    try:
        means = replay_services().means
        report = replay_slice(UUID(job), PartitionId(work["partition_id"]), means, datetime.now(UTC) + SLICE)
        note_fault(UUID(job), None, means)
    except HubledgerError as fault:
        return _failed(job, fault)
    log.info("replay went on", extra={"action": "replay", "job_id": job, **report.to_json()})
    return {"ok": report.to_json()}


def _failed(job: str, fault: HubledgerError) -> dict:
    from core.replay.run import note_fault
    from handlers.replay_services import replay_services

    log.warning("replay held up", extra={"action": "replay", "job_id": job, "error": str(fault)})
    with suppress(HubledgerError):
        if isinstance(fault, InfrastructureFault):
            note_fault(UUID(job), fault, replay_services().means)
    return {"error": type(fault).__name__}


def _open_jobs() -> tuple[UUID, ...]:
    from handlers.replay_services import replay_services

    means = replay_services().means
    return means.store.read_open_replays(means.stream)


async def _answer_and_drive(req: func.HttpRequest, operation: str, client: Any) -> func.HttpResponse:
    """The operation's answer; where it was done, the job is driven. Should that fail, the timer does it."""
    response = await asyncio.to_thread(respond, req, operation)
    if response.status_code < 300:
        await _drive(client, json.loads(response.get_body())["job_id"])
    return response


async def _drive(client: Any, job_id: str) -> None:
    """Start the job's orchestration unless it runs. Two at once would do no harm."""
    instance = f"replay-{job_id}"
    try:
        status = await client.get_status(instance)
        if status is None or status.runtime_status not in DRIVEN:
            await client.start_new("drive_replay", instance, job_id)
    except Exception as error:  # noqa: BLE001 - the client raises plain Exceptions; the job is there, and the timer watches
        log.warning("replay not driven yet", extra={"action": "drive", "job_id": job_id, "error": str(error)})

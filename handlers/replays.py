"""The durable orchestration that drives replays: SQL is the truth, and losing the orchestration changes nothing."""

import asyncio
import logging
import os
from collections.abc import Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

import azure.durable_functions as df
import azure.functions as func

from core.errors import HubledgerError, InfrastructureFault
from handlers.driving import drive
from handlers.orchestrations import PAUSE, SLICE, outlive, sleep

if TYPE_CHECKING:
    from core.replay.run import ReplayMeans

log = logging.getLogger("hubledger.replays")
bp = df.Blueprint()

FAN_OUT = 8  # partitions at once
DIED = {"error": "WorkerDied"}


@bp.function_name("watch_replays")
@bp.timer_trigger(
    arg_name="timer", schedule=os.environ.get("REPLAY_CHECK_SCHEDULE") or "30 * * * * *", use_monitor=False
)
@bp.durable_client_input(client_name="client")
async def watch_replays(timer: func.TimerRequest, client: Any) -> None:
    """Drive every open job: an orchestration that was lost or purged is started again."""
    for job_id in await asyncio.to_thread(_open_jobs):
        await drive(client, "drive_replay", str(job_id))


def drive_replay(context: df.DurableOrchestrationContext) -> Generator[Any, Any, Any]:
    """Work on the partitions of a job, slice by slice, until none is left or the job stops running. Only ids travel."""
    job_id = context.get_input()
    opened = yield from outlive(context.call_activity("open_replay_job", job_id), DIED)
    is_faulty = "error" in opened
    if not is_faulty:
        if not opened["partitions"]:
            return "nothing is left, or the job does not run"
        pieces = [
            context.call_activity("replay_pieces", {"job_id": job_id, "partition_id": id})
            for id in opened["partitions"][:FAN_OUT]
        ]
        done = yield from outlive(context.task_all(pieces), [DIED])
        is_faulty = any("error" in one for one in done)
    if is_faulty:
        yield from sleep(context, PAUSE)
    context.continue_as_new(job_id)
    return None


bp.orchestration_trigger(context_name="context")(drive_replay)


@bp.activity_trigger(input_name="job")
def open_replay_job(job: str) -> dict:
    """Begin a planned job; return {partitions} with work left, or {error}."""
    from core.replay.run import open_partitions
    from handlers.app import in_time

    with in_time(SLICE):
        try:
            return {"partitions": list(open_partitions(UUID(job), _means()))}
        except HubledgerError as fault:
            return _failed(job, fault)


@bp.activity_trigger(input_name="work")
def replay_pieces(work: dict) -> dict:
    """Do a slice of work on one partition; return {ok: its report}, or {error}. The pieces before a fault remain."""
    from core.model.events import PartitionId
    from core.replay.run import note_fault
    from handlers.app import app, in_time

    job = work["job_id"]
    with in_time(SLICE):
        try:
            means = _means()
            until = means.clock.now() + SLICE
            report = app().work.replay(UUID(job), PartitionId(work["partition_id"]), means, until)
            note_fault(UUID(job), None, means)
        except HubledgerError as fault:
            return _failed(job, fault)
    log.info("replay advanced", extra={"action": "replay", "job_id": job, **report.to_json()})
    return {"ok": report.to_json()}


def _failed(job: str, fault: HubledgerError) -> dict:
    from core.replay.run import note_fault

    log.warning("replay step failed; will retry", extra={"action": "replay", "job_id": job, "error": str(fault)})
    with suppress(HubledgerError):
        if isinstance(fault, InfrastructureFault):
            note_fault(UUID(job), fault, _means())
    return {"error": type(fault).__name__}


def _open_jobs() -> tuple[UUID, ...]:
    means = _means()
    return means.store.read_open_replays(means.stream)


def _means() -> "ReplayMeans":
    from handlers.app import app

    return app().replaying

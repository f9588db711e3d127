"""The durable orchestration that drives redrives: SQL is the truth, and losing the orchestration changes nothing."""

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
    from core.letters.redrive_run import RedriveMeans

log = logging.getLogger("hubledger.redrives")
bp = df.Blueprint()


@bp.function_name("watch_redrives")
@bp.timer_trigger(
    arg_name="timer", schedule=os.environ.get("REDRIVE_CHECK_SCHEDULE") or "45 * * * * *", use_monitor=False
)
@bp.durable_client_input(client_name="client")
async def watch_redrives(timer: func.TimerRequest, client: Any) -> None:
    """Drive every open job: an orchestration that was lost or purged is started again."""
    for redrive_id in await asyncio.to_thread(_open_jobs):
        await drive(client, "drive_redrive", str(redrive_id))


def drive_redrive(context: df.DurableOrchestrationContext) -> Generator[Any, Any, Any]:
    """Work on a job, slice by slice, until nothing is left or the job stops running. Only its id travels."""
    redrive_id = context.get_input()
    done = yield from outlive(context.call_activity("redrive_pieces", redrive_id), {"error": "WorkerDied"})
    if done.get("is_over"):
        return "nothing is left, or the job does not run"
    if "error" in done:
        yield from sleep(context, PAUSE)
    context.continue_as_new(redrive_id)
    return None


bp.orchestration_trigger(context_name="context")(drive_redrive)


@bp.activity_trigger(input_name="redrive")
def redrive_pieces(redrive: str) -> dict:
    """Do a slice of work on a job; return its report, or {error}. The pieces before a fault remain."""
    from core.letters.redrive_run import note_fault, redrive_slice
    from handlers.app import in_time

    with in_time(SLICE):
        try:
            means = _means()
            report = redrive_slice(UUID(redrive), means, means.clock.now() + SLICE)
            note_fault(UUID(redrive), None, means)
        except HubledgerError as fault:
            return _failed(redrive, fault)
    log.info("redrive advanced", extra={"action": "redrive", "redrive_id": redrive, **report.to_json()})
    return report.to_json()


def _failed(redrive: str, fault: HubledgerError) -> dict:
    from core.letters.redrive_run import note_fault

    extra = {"action": "redrive", "redrive_id": redrive, "error": str(fault)}
    log.warning("redrive step failed; will retry", extra=extra)
    with suppress(HubledgerError):
        if isinstance(fault, InfrastructureFault):
            note_fault(UUID(redrive), fault, _means())
    return {"error": type(fault).__name__}


def _open_jobs() -> tuple[UUID, ...]:
    means = _means()
    return means.store.read_open_redrives(means.stream)


def _means() -> "RedriveMeans":
    from handlers.app import app

    return app().redriving

"""The timer that works on the purge that is open, if any, and opens one a day if the settings say so."""

import logging
import os
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import azure.functions as func

if TYPE_CHECKING:
    from handlers.app import App

log = logging.getLogger("hubledger.purges")
bp = func.Blueprint()

SLICE = timedelta(seconds=45)  # of work in one tick; the piece that was begun is still purged
EVERY = timedelta(days=1)
TIMER = "timer"


@bp.function_name("run_purges")
@bp.timer_trigger(arg_name="timer", schedule=os.environ.get("PURGE_SCHEDULE") or "15 * * * * *", use_monitor=False)
def run_purges(timer: func.TimerRequest) -> None:
    """Work on the open purge, if there is one. A fault waits in the job for the next tick."""
    from core.ledger.retention.work import work_on_purge
    from handlers.app import app
    from handlers.operations.purges import purge_means

    own = app()
    now = own.clock.now()
    if own.settings.purging.daily:
        _open_daily(own, now)
    job = work_on_purge(purge_means(own), now + SLICE)
    if job is not None:
        rows = sum(found.rows for found in job.found.values())
        facts = {"purge_id": str(job.request.purge_id), "status": job.status, "rows": rows, "error": job.fault}
        log.info("purge advanced", extra={"action": "purge", **facts})


def _open_daily(own: "App", now: datetime) -> None:
    """Open the purge of the day, unless one was requested in the last 24 hours."""
    from core.ledger.retention.purge import PurgeRequest

    last = own.purges.find_last_purge()
    if last is None or now - last >= EVERY:
        days = own.settings.purging.days
        own.purges.open_purge(PurgeRequest(own.clock.new_id(), TIMER, "PURGE_DAILY", now, days, is_dry_run=False))

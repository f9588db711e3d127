"""The timer that works on the audit that is open, if any: one log line for each tick that did."""

import logging
import os
from datetime import timedelta

import azure.functions as func

log = logging.getLogger("hubledger.audits")
bp = func.Blueprint()

SLICE = timedelta(seconds=45)  # of work in one tick; the partition that was begun is still audited


@bp.function_name("run_audits")
@bp.timer_trigger(arg_name="timer", schedule=os.environ.get("AUDIT_SCHEDULE") or "*/10 * * * * *", use_monitor=False)
def run_audits(timer: func.TimerRequest) -> None:
    """Work on the open audit, if there is one. A fault waits in the job for the next tick."""
    from core.ledger.audit_work import work_on_audit
    from handlers.app import app
    from handlers.operations.audit_findings import audit_means

    own = app()
    job = work_on_audit(audit_means(own), own.clock.now() + SLICE)
    if job is not None:
        facts = {"audit_id": str(job.request.audit_id), "status": job.status, "left": len(job.left), "error": job.fault}
        log.info("audit advanced", extra={"action": "audit", **facts})

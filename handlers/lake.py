"""The timer of the lake: it compacts tables and removes unused files. No run waits for it, and none fails by it."""

import logging
import os
from typing import TYPE_CHECKING

import azure.functions as func

if TYPE_CHECKING:
    from core.aggregation.tick import Aggregation

log = logging.getLogger("hubledger.lake")
bp = func.Blueprint()


@bp.function_name("maintain_lake")
@bp.timer_trigger(arg_name="timer", schedule=os.environ.get("LAKE_SCHEDULE") or "0 40 3 * * *")
def maintain_lake(timer: func.TimerRequest) -> None:
    """Maintain the tables of all jobs, if there is a lake."""
    from handlers.app import aggregation

    own = aggregation()
    if own is not None:
        maintain(own)


def maintain(own: "Aggregation") -> None:
    """Maintain the tables of each job, and log them as one line each. A fault is logged, and left to the next time."""
    from core.aggregation.maintenance import maintain_job

    for job in own.jobs:
        facts: dict[str, object] = {"action": "maintain_lake", "job": job}
        try:
            did = maintain_job(own, job)
        except Exception as fault:  # noqa: BLE001 - whatever it is, no run may notice it
            log.warning("lake not maintained; the next time tries again", extra={**facts, "fault": repr(fault)})
        else:
            log.info("lake maintained", extra={**facts, "did": did})

"""The timer of the aggregation: it takes the open run one step further, or begins the next run."""

import logging
import os
from typing import TYPE_CHECKING

import azure.functions as func

if TYPE_CHECKING:
    from core.aggregation.tick import Aggregation, AggregationReport

log = logging.getLogger("hubledger.aggregation")
bp = func.Blueprint()


@bp.function_name("aggregate")
@bp.timer_trigger(arg_name="timer", schedule=os.environ.get("AGGREGATION_SCHEDULE") or "0 */5 * * * *")
def aggregate_on_time(timer: func.TimerRequest) -> None:
    """Take one step of each job, if SPARK_ENGINE names an engine. After a fault, the next tick continues."""
    from handlers.app import aggregation

    own = aggregation()
    if own is not None:
        take_steps(own)


def take_steps(own: "Aggregation") -> None:
    """Take one step of each job; a fault of one leaves the others to take theirs, and fails the tick at the end."""
    faults: list[Exception] = []
    for job in own.jobs:
        try:
            take_step(own, job)
        except Exception as fault:  # noqa: BLE001 - the first one is raised below
            faults.append(fault)
            log.warning("aggregation failed; the next tick continues", extra={"job": job, "fault": repr(fault)})
    if faults:
        raise faults[0]


def take_step(own: "Aggregation", job: str) -> "AggregationReport":
    """Take one step of a job, and log it as one line."""
    from core.aggregation.tick import aggregate, report_facts

    report = aggregate(own, job)
    is_sound = report.published and (report.quality is None or report.quality.fault is None)
    level = logging.INFO if is_sound else logging.WARNING
    log.log(level, "aggregation advanced", extra=report_facts(job, report))
    return report

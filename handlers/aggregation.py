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
    """Take one step, if SPARK_ENGINE names an engine. A fault fails this tick, and the next tick continues."""
    from handlers.app import aggregation

    own = aggregation()
    if own is not None:
        take_step(own)


def take_step(own: "Aggregation") -> "AggregationReport":
    """Take one step, and log it as one line."""
    from core.aggregation.tick import aggregate, report_facts

    report = aggregate(own)
    level = logging.INFO if report.published else logging.WARNING
    log.log(level, "aggregation advanced", extra=report_facts(report))
    return report

"""Aggregation: a timer that takes the open run a step further, the same on request, and the list of runs."""

import json
import logging
import os
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

import azure.functions as func

from core.aggregation import HOME_ACTIVITY, Aggregation, AggregationReport, aggregate, report_facts
from core.errors import HubledgerError
from core.runs import AggregationRun
from core.settings import read_aggregation_schedule
from handlers.aggregation_services import aggregation_services
from handlers.answers import answer, problem

log = logging.getLogger("hubledger.aggregation")
bp = func.Blueprint()
RUNS, MOST_RUNS, MOST_NUMBER = 20, 100, 2**63 - 1
_INSTANTS = ("planned_at", "intent_at", "submitted_at", "closed_at")


@bp.function_name("aggregate")
@bp.timer_trigger(arg_name="timer", schedule=read_aggregation_schedule(os.environ))
def aggregate_on_time(timer: func.TimerRequest) -> None:
    """One step of the open run, or a new run; a fault fails this tick, and the next one goes on."""
    own = aggregation_services().aggregation
    if own is not None:
        _take_step(own)


@bp.function_name("start_aggregation")
@bp.route(route="aggregations", methods=["POST"], auth_level=func.AuthLevel.FUNCTION)
def start_aggregation(req: func.HttpRequest) -> func.HttpResponse:
    """202 and the newest run, after the step that the timer would take; asking twice changes nothing.

    A run that failed does not rest when a person asks.
    """
    from handlers.bodies import read_aggregation_request  # msgspec is not needed to index the functions

    try:
        read_aggregation_request(req.get_body())
    except ValueError as error:
        return problem(400, "InvalidRequest", str(error))
    try:
        own = aggregation_services().aggregation
        if own is None:
            return problem(409, "NoEngine", "SPARK_ENGINE is none: name an engine to aggregate with")
        report = _take_step(replace(own, patience=replace(own.patience, rest=timedelta())))
    except HubledgerError as error:
        return problem(503, type(error).__name__, str(error))
    run = None if report.run is None else _run(report.run)
    return answer({"did": report.did, "published": report.published, "run": run}, 202, Location="/api/aggregations")


@bp.function_name("list_aggregations")
@bp.route(route="aggregations", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
def list_aggregations(req: func.HttpRequest) -> func.HttpResponse:
    """The cut that stands and the runs, the newest first: `limit` of them (20, at most 100) below number `before`."""
    try:
        limit = _whole(req.params, "limit", RUNS, MOST_RUNS)
        before = _whole(req.params, "before", MOST_NUMBER, MOST_NUMBER)
    except ValueError as error:
        return problem(400, "InvalidRequest", str(error))
    try:
        return answer(_list(limit, before))
    except HubledgerError as error:
        return problem(503, type(error).__name__, str(error))


def _take_step(own: Aggregation) -> AggregationReport:
    report = aggregate(own)
    level = logging.INFO if report.published else logging.WARNING
    log.log(level, "aggregation looked after", extra=report_facts(report))
    return report


def _list(limit: int, before: int) -> dict[str, Any]:
    store = aggregation_services().store
    standing = store.read_standing(HOME_ACTIVITY)
    runs = store.read_runs(HOME_ACTIVITY, before, limit)
    return {
        "job": HOME_ACTIVITY,
        "cut": json.loads(standing.cut),
        "reached": json.loads(standing.reached),
        "runs": [_run(run) for run in runs],
        "next_before": str(runs[-1].number) if len(runs) == limit else None,
    }


def _whole(given: Any, name: str, default: int, most: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_NUMBER)) else 0
    if not 1 <= number <= most:
        raise ValueError(f"{name} must be a number from 1 to {most}")
    return number


def _run(run: AggregationRun) -> dict[str, Any]:
    """A run as JSON: cuts as objects, instants as RFC 3339 has them."""
    body = asdict(run) | {"cut_from": json.loads(run.cut_from), "cut_to": json.loads(run.cut_to)}
    return body | {name: None if body[name] is None else _instant(body[name]) for name in _INSTANTS}


def _instant(moment: Any) -> str:
    return str(moment.isoformat()).replace("+00:00", "Z")

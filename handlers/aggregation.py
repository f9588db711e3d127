"""Aggregation: a timer that takes the open run a step further, the same on request, and the list of runs."""

import os

import azure.functions as func

from core.settings import read_aggregation_schedule
from handlers.aggregation_services import aggregation_services, take_step
from handlers.http import changes, reads, respond

bp = func.Blueprint()


@bp.function_name("aggregate")
@bp.timer_trigger(arg_name="timer", schedule=read_aggregation_schedule(os.environ))
def aggregate_on_time(timer: func.TimerRequest) -> None:
    """One step of the open run, or a new run; a fault fails this tick, and the next one goes on."""
    own = aggregation_services().aggregation
    if own is not None:
        take_step(own)


@changes(bp, "aggregations")
def start_aggregation(req: func.HttpRequest) -> func.HttpResponse:
    """202 and the newest run, after the step that the timer would take."""
    return respond(req, "start_aggregation")


@reads(bp, "aggregations")
def list_aggregations(req: func.HttpRequest) -> func.HttpResponse:
    """The cut that stands, and a page of runs."""
    return respond(req, "list_aggregations")

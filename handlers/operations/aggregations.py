"""Advance the aggregation on request, and list its runs."""

import json
from dataclasses import replace
from datetime import timedelta

import msgspec

from core.aggregation.runs import Pause
from core.api.cursors import Number, key_of, page_of, query_of
from core.api.operation import Answer, Call, Nothing, operation
from core.api.problems import CONFLICT, Problem
from core.api.shown import written
from handlers.aggregation import take_step
from handlers.app import aggregation, app
from handlers.operations.aggregation_shapes import (
    AggregationBody,
    AggregationsAnswer,
    AggregationsQuery,
    OrderAnswer,
    PausedAnswer,
    StepAnswer,
    job_of,
    run_answer,
    waiting_answer,
)

NEWEST = 2**63 - 1
SHOWN_ORDERS = 20


@operation("Advance the aggregation by one step now", "aggregations", {202: StepAnswer}, (CONFLICT,))
def start_aggregation(call: Call[Nothing, Nothing, AggregationBody]) -> Answer:
    """Take the timer's next step, without the pause after a failed run. A second request changes nothing."""
    job = job_of(call.body.job)
    own = aggregation()
    if own is None:
        raise Problem(CONFLICT, "SPARK_ENGINE is none: set an engine to aggregate with")
    report = take_step(replace(own, limits=replace(own.limits, rest=timedelta())), job)
    run = None if report.run is None else run_answer(report.run)
    answer = StepAnswer(did=list(report.did), published=report.published, run=run)
    return Answer(answer, 202, {"Location": "/api/aggregations"})


@operation("The runs of the aggregation", "aggregations")
def list_aggregations(call: Call[Nothing, AggregationsQuery, Nothing]) -> AggregationsAnswer:
    """List a page of runs; one run more is read, to see if there is a next page."""
    query, bound_to, job = call.query, query_of(call.query), job_of(call.query.job)
    before = NEWEST if query.cursor is None else key_of(bound_to, query.cursor, tuple[Number])[0]
    own = app()
    standing = own.aggregation_store.read_standing(job)
    found = own.aggregation_store.read_runs(job, before, query.limit + 1)
    oldest = own.pipelines.read_oldest_commit(job)
    page, following = page_of(found, query.limit, bound_to, lambda run: (run.number,))
    return AggregationsAnswer(
        job=job,
        engine=own.settings.spark.engine,
        cut=json.loads(standing.cut),
        reached=json.loads(standing.reached),
        lag_seconds=0.0 if oldest is None else max(0.0, (call.at - oldest).total_seconds()),
        paused=_paused(standing.pause),
        waiting=waiting_answer(standing.order),
        history=_orders(own.pipelines.read_history(job)),
        runs=[run_answer(one) for one in page],
        next=following,
    )


def _paused(pause: Pause | None) -> PausedAnswer | None:
    return None if pause is None else written(PausedAnswer, pause)


def _orders(history: str) -> list[OrderAnswer]:
    newest = history.splitlines()[::-1][:SHOWN_ORDERS]
    return [msgspec.json.decode(line, type=OrderAnswer) for line in newest]

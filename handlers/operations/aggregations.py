"""Aggregation on request: the step that the timer would take, and the list of runs."""

import json
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec

from core.aggregation.runs import AggregationRun
from core.aggregation.tick import HOME_ACTIVITY
from handlers.aggregation_services import aggregation_services, take_step
from handlers.cursors import cursor_of, key_of
from handlers.operation import Answer, Answered, Call, Cursor, Nothing, Operation, Shape
from handlers.problems import CONFLICT, Problem

MOST_RUNS = 100
NEWEST = 2**63 - 1


class AggregationBody(Shape):
    """Which job to take a step further."""

    job: Literal["home_activity"] = "home_activity"


class AggregationsQuery(Shape):
    """A page of runs, the newest first."""

    cursor: Cursor | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_RUNS)] = 20


class RunAnswer(Answered):
    """A run. Cuts are objects: the commit number by stream and partition. New statuses may be added."""

    run_id: str
    job: str
    number: int
    cut_from: dict[str, int]
    cut_to: dict[str, int]
    engine: str
    attempt: int
    submits: int
    status: str
    planned_at: datetime
    intent_at: datetime
    engine_job_id: str | None
    submitted_at: datetime | None
    closed_at: datetime | None
    failure: str | None
    readings: int | None
    windows: int | None
    lake_path: str | None
    is_snapshot: bool


class StepAnswer(Answered):
    """What the step did, and the newest run; `published` says whether the pointer of the lake is up to date."""

    did: list[str]
    published: bool
    run: RunAnswer | None


class AggregationsAnswer(Answered):
    """The cut that stands, how far the checkpoints are, and a page of runs."""

    job: str
    cut: dict[str, int]
    reached: dict[str, int]
    runs: list[RunAnswer]
    next: str | None


def start_aggregation(call: Call[Nothing, Nothing, AggregationBody]) -> Answer:
    """The step that the timer would take; asking twice changes nothing. A run that failed does not rest when a person
    asks."""
    own = aggregation_services().aggregation
    if own is None:
        raise Problem(CONFLICT, "SPARK_ENGINE is none: name an engine to aggregate with")
    report = take_step(replace(own, limits=replace(own.limits, rest=timedelta())))
    run = None if report.run is None else _run(report.run)
    answer = StepAnswer(did=list(report.did), published=report.published, run=run)
    return Answer(answer, 202, {"Location": "/api/aggregations"})


def list_aggregations(call: Call[Nothing, AggregationsQuery, Nothing]) -> AggregationsAnswer:
    """A page; one run more is read, to see whether there is a page behind it."""
    query = call.query
    bound_to = msgspec.structs.replace(query, cursor=None, limit=1)
    before = NEWEST if query.cursor is None else key_of(bound_to, query.cursor, tuple[int])[0]
    store = aggregation_services().store
    standing = store.read_standing(HOME_ACTIVITY)
    found = store.read_runs(HOME_ACTIVITY, before, query.limit + 1)
    page = found[: query.limit]
    return AggregationsAnswer(
        job=HOME_ACTIVITY,
        cut=json.loads(standing.cut),
        reached=json.loads(standing.reached),
        runs=[_run(one) for one in page],
        next=cursor_of(bound_to, (page[-1].number,)) if len(found) > query.limit else None,
    )


def _run(run: AggregationRun) -> RunAnswer:
    cuts: dict[str, Any] = {"cut_from": json.loads(run.cut_from), "cut_to": json.loads(run.cut_to)}
    return RunAnswer(**(asdict(run) | cuts))


OPERATIONS = (
    Operation(
        "start_aggregation",
        "Take the aggregation a step further now",
        start_aggregation,
        {202: StepAnswer},
        body=AggregationBody,
        problems=(CONFLICT,),
        tag="aggregations",
    ),
    Operation(
        "list_aggregations",
        "The runs of the aggregation",
        list_aggregations,
        {200: AggregationsAnswer},
        query=AggregationsQuery,
        tag="aggregations",
    ),
)

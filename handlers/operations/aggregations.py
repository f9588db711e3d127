"""Advance the aggregation on request, and list its runs."""

import json
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec

from core.aggregation.runs import AggregationRun
from core.transforms.aggregates import load_aggregates
from handlers.aggregation import take_step
from handlers.app import aggregation, app
from handlers.web.cursors import key_of, page_of, query_of
from handlers.web.operation import Answer, Answered, Call, Cursor, Nothing, Shape, operation
from handlers.web.problems import CONFLICT, Problem, invalid

MOST_RUNS = 100
NEWEST = 2**63 - 1
JobName = Annotated[
    str,
    msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,39}$", description="The name of an aggregate of the app's transform."),
]


class AggregationBody(Shape):
    """The job to advance by one step; by default the first by name."""

    job: JobName | None = None


class AggregationsQuery(Shape):
    """A page of the runs of a job, by default the first by name; the newest first."""

    job: JobName | None = None
    cursor: Cursor | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_RUNS)] = 20


class RunAnswer(Answered):
    """A run. A cut holds the commit number of each stream and partition. New statuses may be added."""

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
    committed_slices: int


class StepAnswer(Answered):
    """The actions of the step, and the newest run; `published` is true if the lake's pointer is up to date."""

    did: list[str]
    published: bool
    run: RunAnswer | None


class AggregationsAnswer(Answered):
    """The committed cut, the checkpoints that are `reached`, and a page of runs."""

    job: str
    cut: dict[str, int]
    reached: dict[str, int]
    runs: list[RunAnswer]
    next: str | None


@operation("Advance the aggregation by one step now", "aggregations", {202: StepAnswer}, (CONFLICT,))
def start_aggregation(call: Call[Nothing, Nothing, AggregationBody]) -> Answer:
    """Take the timer's next step, without the pause after a failed run. A second request changes nothing."""
    own = aggregation()
    if own is None:
        raise Problem(CONFLICT, "SPARK_ENGINE is none: set an engine to aggregate with")
    job = _job(call.body.job)
    report = take_step(replace(own, limits=replace(own.limits, rest=timedelta())), job)
    run = None if report.run is None else _run(report.run)
    answer = StepAnswer(did=list(report.did), published=report.published, run=run)
    return Answer(answer, 202, {"Location": "/api/aggregations"})


@operation("The runs of the aggregation", "aggregations")
def list_aggregations(call: Call[Nothing, AggregationsQuery, Nothing]) -> AggregationsAnswer:
    """List a page of runs; one run more is read, to see if there is a next page."""
    query, bound_to, job = call.query, query_of(call.query), _job(call.query.job)
    before = NEWEST if query.cursor is None else key_of(bound_to, query.cursor, tuple[int])[0]
    store = app().aggregation_store
    standing = store.read_standing(job)
    found = store.read_runs(job, before, query.limit + 1)
    page, following = page_of(found, query.limit, bound_to, lambda run: (run.number,))
    return AggregationsAnswer(
        job=job,
        cut=json.loads(standing.cut),
        reached=json.loads(standing.reached),
        runs=[_run(one) for one in page],
        next=following,
    )


def _job(requested: str | None) -> str:
    """Return the requested job, or the first one of the app's transform."""
    names = [one.name for one in load_aggregates(app().transform.row_classes)]
    if requested in names or (requested is None and names):
        return requested or names[0]
    raise invalid("job", f"must be one of {', '.join(names)}" if names else "the app's transform has no aggregate")


def _run(run: AggregationRun) -> RunAnswer:
    cuts: dict[str, Any] = {"cut_from": json.loads(run.cut_from), "cut_to": json.loads(run.cut_to)}
    return RunAnswer(**(asdict(run) | cuts))

"""Advance the aggregation on request, and list its runs."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal

import msgspec

from core.aggregation.orders import Pipelines
from core.aggregation.runs import (
    AggregationRun,
    Days,
    Failure,
    Move,
    Order,
    OrderedKind,
    PartitionRows,
    Pause,
    Quality,
    RunOrder,
)
from core.aggregation.spark_engine import SparkEngine
from core.aggregation.store import Aggregations
from core.api.operation import Answer, Call, Number, key_of, operation, page_of, query_of
from core.api.problems import CONFLICT, NOT_FOUND, Problem, invalid, not_found
from core.errors import AggregationConflict
from core.model.shapes import Answered, Cursor, Nothing, Reason, Shape, reader_of, shape_of, written
from handlers.app import aggregation, app
from handlers.operations.tasks import UUID_FORM
from handlers.timers import take_step

MOST_RUNS = 100
JobName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(rows\.)?[a-z][a-z0-9_]{0,39}\Z",
        description="An aggregate of the app's transform, or `rows.` and the table whose rows the lake keeps.",
    ),
]
RunText = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{16}\Z", description="A run's id.")]

OrderText = Annotated[str, msgspec.Meta(pattern=UUID_FORM, description="An id that the client makes for the order.")]


class AggregationBody(Shape):
    """The job to advance by one step, by default the first by name."""

    job: JobName | msgspec.UnsetType = msgspec.UNSET


class AggregationsQuery(Shape):
    """A page of the runs of a job, the newest first. The default is the first job by name."""

    job: JobName | None = None
    cursor: Cursor | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_RUNS)] = 20


class RunPath(Shape):
    """A run."""

    run_id: RunText


class CancelShape(Shape):
    """The reason to cancel the job of a run."""

    order_id: OrderText
    reason: Reason


class DiscardShape(CancelShape):
    """The reason to discard a run, or only its staged result."""

    what: Literal["run", "result"]


class PauseShape(CancelShape):
    """The job to pause or resume, and the reason."""

    job: JobName | msgspec.UnsetType = msgspec.UNSET


class DaysShape(PauseShape):
    """The job, the first and the last day of event time in UTC (by default there is no end), and the reason."""

    since_day: date | None = None
    until_day: date | None = None


_PartitionRows: Any = shape_of(PartitionRows)


class PartitionRowsAnswer(_PartitionRows):
    """A partition in which the tables have a different number of rows than the ledger counts."""


_Quality: Any = shape_of(Quality, partitions=list[PartitionRowsAnswer])


class QualityAnswer(_Quality):
    """The rows that a run read beside those that the ledger counts, with the `fault` in words if they differ. New
    figures may be added."""


_Run: Any = shape_of(
    AggregationRun,
    hidden=("days", "rows_from"),
    cut_from=dict[str, int],
    cut_to=dict[str, int],
    quality=QualityAnswer | None,
)


class RunAnswer(_Run, kw_only=True):  # type: ignore[call-arg]  # its base is made by `shape_of`
    """A run. A cut holds the commit number of each stream and partition. `rows_planned` are the rows that the ledger
    counts between the cuts. The run was ended after `rows_limit` rows. A repair or a backfill has the windows from
    `since_day` to `until_day`, of the rows at `rows_from`. New statuses and kinds may be added."""

    since_day: date | None
    until_day: date | None
    rows_from: str


class StepAnswer(Answered):
    """The actions of the step, and the newest run. `published` is true if the lake's tables are up to date."""

    did: list[str]
    published: bool
    run: RunAnswer | None


_Paused: Any = shape_of(Pause)


class PausedAnswer(_Paused):
    """The pause of a job: its time, author and reason."""


class WaitingAnswer(Answered):
    """A repair or a backfill whose run is not planned yet: its days, author, time and reason."""

    kind: str
    since_day: date | None
    until_day: date | None
    at: datetime
    who: str
    reason: str


class OrderAnswer(Answered):
    """An order about the job or one of its runs: its author, time, reason and days."""

    at: datetime
    move: str
    by: str
    why: str
    run_id: str | None
    days: str | None = None


class AggregationsAnswer(Answered):
    """The committed cut, the checkpoints that are `reached`, and a page of runs of one of the `jobs`. `lag_seconds` is
    the age of the oldest commit that is not in the aggregate. `waiting` is the order that has no run yet. `history` has
    the newest run first. With the `engine` "none" no step is taken, and nothing is summed."""

    job: str
    jobs: list[str]
    engine: str
    cut: dict[str, int]
    reached: dict[str, int]
    lag_seconds: float
    paused: PausedAnswer | None
    waiting: WaitingAnswer | None
    history: list[OrderAnswer]
    runs: list[RunAnswer]
    next: str | None


_Failure: Any = shape_of(Failure, hidden=("run_id",))


class FailureAnswer(_Failure):
    """A submit of a run that gave no result: what happened, the engine's own reason, the end of its log, and a link."""


class RunDetailAnswer(Answered):
    """A run with its failures, the newest first, and the time at which a result of it was staged."""

    run: RunAnswer
    staged_at: datetime | None
    failures: list[FailureAnswer]


def run_answer(run: AggregationRun) -> RunAnswer:
    """Return a run as it is shown."""
    return written(
        RunAnswer,
        run,
        cut_from=json.loads(run.cut_from),
        cut_to=json.loads(run.cut_to),
        quality=None if run.quality is None else reader_of(QualityAnswer).decode(run.quality),
        since_day=run.days.since,
        until_day=run.days.until,
    )


def waiting_answer(order: RunOrder | None) -> WaitingAnswer | None:
    """Return the order that waits as it is shown."""
    if order is None:
        return None
    since, until = order.days.since, order.days.until
    return WaitingAnswer(
        kind=order.kind, since_day=since, until_day=until, at=order.at, who=order.who, reason=order.reason
    )


def job_of(requested: str | msgspec.UnsetType | None) -> str:
    """Return the requested job, or the first one of the app's transform."""
    names = app().jobs
    if names and (requested is None or requested is msgspec.UNSET):
        return names[0]
    if isinstance(requested, str) and requested in names:
        return requested
    raise invalid("job", f"must be one of {', '.join(names)}" if names else "the app's transform has no aggregate")


class PauseAnswer(Answered):
    """The job, and its pause, or null when the job goes on."""

    job: str
    paused: PausedAnswer | None


class PlacedAnswer(Answered):
    """The job, and the order that waits for its run, or null after a withdrawal."""

    job: str
    waiting: WaitingAnswer | None


@operation("One run of the aggregation with its failures", "aggregations", problems=(NOT_FOUND,))
def show_aggregation(call: Call[RunPath, Nothing, Nothing]) -> RunDetailAnswer:
    """Show a run."""
    return detail_of(found_run(call.path.run_id))


@operation("Pause the aggregation", "aggregations", problems=(CONFLICT,))
def pause_aggregation(call: Call[Nothing, Nothing, PauseShape]) -> PauseAnswer:
    """Pause the planning, submits and commits of a job until it is resumed. A running Spark job finishes."""
    order = _order("pause", call)
    _carry_out(order, lambda: Pipelines(app().brief).pause(order))
    return _pause_answer(order.job)


@operation("Resume the aggregation", "aggregations", problems=(CONFLICT,))
def resume_aggregation(call: Call[Nothing, Nothing, PauseShape]) -> PauseAnswer:
    """Go on with the next tick."""
    order = _order("resume", call)
    _carry_out(order, lambda: Pipelines(app().brief).resume(order))
    return _pause_answer(order.job)


@operation("Sum the windows of some days again", "aggregations", {202: PlacedAnswer}, (CONFLICT,))
def repair_aggregation(call: Call[Nothing, Nothing, DaysShape]) -> Answer:
    """Order a repair: the next step without an open run plans it."""
    return _place_order("repair", call)


@operation("Sum some days with the first run", "aggregations", {202: PlacedAnswer}, (CONFLICT,))
def backfill_aggregation(call: Call[Nothing, Nothing, DaysShape]) -> Answer:
    """Order a backfill of an aggregate that has no commit yet."""
    return _place_order("backfill", call)


@operation("Withdraw a repair or a backfill that waits", "aggregations", problems=(CONFLICT,))
def withdraw_aggregation(call: Call[Nothing, Nothing, PauseShape]) -> PlacedAnswer:
    """End the order. A run that is planned already can be discarded."""
    order = _order("withdraw", call)
    _carry_out(
        order, lambda: Pipelines(app().brief).withdraw(order, Aggregations(app().brief).read_standing(order.job))
    )
    return _waiting(order.job)


@operation("Cancel the job of an open run; its next attempt follows", "aggregations", problems=(NOT_FOUND, CONFLICT))
def cancel_aggregation(call: Call[RunPath, Nothing, CancelShape]) -> RunDetailAnswer:
    """Ask the engine to end the job."""
    run = found_run(call.path.run_id)
    order = _order("cancel", call, run)
    _carry_out(order, lambda: Pipelines(app().brief).cancel(order, run, open_spark()))
    return detail_of(found_run(run.run_id))


@operation("Discard an open run, or its staged result", "aggregations", problems=(NOT_FOUND, CONFLICT))
def discard_aggregation(call: Call[RunPath, Nothing, DiscardShape]) -> RunDetailAnswer:
    """Close the run without a result, or take the result away. Nothing is lost, because the cut stays."""
    run = found_run(call.path.run_id)
    order = _order("discard_run" if call.body.what == "run" else "discard_result", call, run)
    if order.move == "discard_run":
        _carry_out(order, lambda: Pipelines(app().brief).discard_run(order, run, open_spark()))
    else:
        _carry_out(order, lambda: Pipelines(app().brief).discard_result(order, run))
    return detail_of(found_run(run.run_id))


def open_spark() -> SparkEngine | None:
    """Return the engine that SPARK_ENGINE names, or None for `none`."""
    own = aggregation()
    return None if own is None else own.engine


def _order(move: Move, call: Call[Any, Nothing, Any], run: AggregationRun | None = None) -> Order:
    """Return the order of a request about a run, or about the job in its body."""
    job, run_id = (job_of(call.body.job), None) if run is None else (run.job, run.run_id)
    return Order(job, move, call.who, call.body.reason, call.at, run_id, call.body.order_id)


def _place_order(kind: OrderedKind, call: Call[Nothing, Nothing, DaysShape]) -> Answer:
    order = replace(_order(kind, call), days=Days(call.body.since_day, call.body.until_day))
    standing = Aggregations(app().brief).read_standing(order.job)
    _carry_out(order, lambda: Pipelines(app().brief).place(order, standing))
    return Answer(_waiting(order.job), 202, {"Location": "/api/aggregations"})


def _carry_out(order: Order, act: Callable[[], None]) -> None:
    """Carry an order out, unless it was carried out under its id."""
    try:
        if not Pipelines(app().brief).is_given(order):
            act()
    except AggregationConflict as conflict:
        raise Problem(CONFLICT, str(conflict)) from conflict


def _pause_answer(job: str) -> PauseAnswer:
    pause = Aggregations(app().brief).read_standing(job).pause
    return PauseAnswer(job=job, paused=None if pause is None else written(PausedAnswer, pause))


def _waiting(job: str) -> PlacedAnswer:
    return PlacedAnswer(job=job, waiting=waiting_answer(Aggregations(app().brief).read_standing(job).order))


def found_run(run_id: str) -> AggregationRun:
    """Return a run of any job, or raise a problem without one."""
    for job in app().jobs:
        run = Pipelines(app().brief).find_run(job, run_id)
        if run is not None:
            return run
    raise not_found("run_id", f"there is no run {run_id}")


def detail_of(run: AggregationRun) -> RunDetailAnswer:
    """Write a run with its failures as an answer."""
    store = Pipelines(app().brief)
    staged = store.read_staged(run.run_id)
    failures = [written(FailureAnswer, one) for one in store.read_failures(run.run_id)]
    return RunDetailAnswer(
        run=run_answer(run), staged_at=None if staged is None else staged.staged_at, failures=failures
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
    """List a page of runs. One more run is read, to see if there is a next page."""
    query, bound_to, job = call.query, query_of(call.query), job_of(call.query.job)
    before = NEWEST if query.cursor is None else key_of(bound_to, query.cursor, tuple[Number])[0]
    own = app()
    store, placed = Aggregations(own.brief), Pipelines(own.brief)
    standing = store.read_standing(job)
    found = store.read_runs(job, before, query.limit + 1)
    oldest = placed.read_oldest_commit(job)
    history = placed.read_history(job).splitlines()
    page, following = page_of(found, query.limit, bound_to, lambda run: (run.number,))
    return AggregationsAnswer(
        job=job,
        jobs=list(own.jobs),
        engine=own.settings.spark.engine,
        cut=json.loads(standing.cut),
        reached=json.loads(standing.reached),
        lag_seconds=0.0 if oldest is None else max(0.0, (call.at - oldest).total_seconds()),
        paused=None if standing.pause is None else written(PausedAnswer, standing.pause),
        waiting=waiting_answer(standing.order),
        history=[reader_of(OrderAnswer).decode(line) for line in history[::-1][:SHOWN_ORDERS]],
        runs=[run_answer(one) for one in page],
        next=following,
    )

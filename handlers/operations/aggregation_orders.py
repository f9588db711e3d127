"""Show a run with its failures; pause and resume the aggregation, cancel a job, discard a run or its staged result,
order a repair or a backfill, and withdraw it."""

from collections.abc import Callable

from core.aggregation import orders
from core.aggregation.kinds import Days, Move, Order, OrderedKind, RunOrder
from core.aggregation.runs import AggregationRun, Failure
from core.aggregation.spark import SparkEngine
from core.api.operation import Answer, Answered, Call, Nothing, operation
from core.api.problems import CONFLICT, NOT_FOUND, Problem, not_found
from core.api.shown import written
from core.errors import AggregationConflict
from handlers.app import aggregation, app
from handlers.operations.aggregation_shapes import (
    CancelShape,
    DaysShape,
    DiscardShape,
    FailureAnswer,
    PausedAnswer,
    PauseShape,
    RunDetailAnswer,
    RunPath,
    WaitingAnswer,
    job_of,
    run_answer,
    waiting_answer,
)


class PauseAnswer(Answered):
    """The job, and who paused it; null when it goes on."""

    job: str
    paused: PausedAnswer | None


class PlacedAnswer(Answered):
    """The job, and the order that waits for its run; null after it was withdrawn."""

    job: str
    waiting: WaitingAnswer | None


@operation("One run of the aggregation with its failures", "aggregations", problems=(NOT_FOUND,))
def show_aggregation(call: Call[RunPath, Nothing, Nothing]) -> RunDetailAnswer:
    """Show a run."""
    return detail_of(found_run(call.path.run_id))


@operation("Pause the aggregation", "aggregations", problems=(CONFLICT,))
def pause_aggregation(call: Call[Nothing, Nothing, PauseShape]) -> PauseAnswer:
    """Pause the planning, submits and commits of a job until it is resumed; a running Spark job finishes."""
    body, job = call.body, job_of(call.body.job)
    order = Order(job, "pause", call.who, body.reason, call.at, order_id=body.order_id)
    _carry_out(order, lambda: orders.pause(order, app().pipelines))
    return _paused(job)


@operation("Resume the aggregation", "aggregations", problems=(CONFLICT,))
def resume_aggregation(call: Call[Nothing, Nothing, PauseShape]) -> PauseAnswer:
    """Go on with the next tick."""
    job = job_of(call.body.job)
    order = Order(job, "resume", call.who, call.body.reason, call.at, order_id=call.body.order_id)
    _carry_out(order, lambda: orders.resume(order, app().pipelines))
    return _paused(job)


@operation("Replace the windows of some days", "aggregations", {202: PlacedAnswer}, (CONFLICT,))
def repair_aggregation(call: Call[Nothing, Nothing, DaysShape]) -> Answer:
    """Order a repair: the next step without an open run plans it."""
    return _place("repair", call)


@operation("Begin an aggregate at a later cut", "aggregations", {202: PlacedAnswer}, (CONFLICT,))
def backfill_aggregation(call: Call[Nothing, Nothing, DaysShape]) -> Answer:
    """Order a backfill of an aggregate that has no commit yet."""
    return _place("backfill", call)


@operation("Withdraw a repair or a backfill that waits", "aggregations", problems=(CONFLICT,))
def withdraw_aggregation(call: Call[Nothing, Nothing, PauseShape]) -> PlacedAnswer:
    """End the order; a run that is planned already can be discarded."""
    job = job_of(call.body.job)
    order = Order(job, "withdraw", call.who, call.body.reason, call.at, order_id=call.body.order_id)
    _carry_out(order, lambda: orders.withdraw(order, app().aggregation_store.read_standing(job), app().pipelines))
    return _waiting(job)


@operation("Cancel the job of an open run; its next attempt follows", "aggregations", problems=(NOT_FOUND, CONFLICT))
def cancel_aggregation(call: Call[RunPath, Nothing, CancelShape]) -> RunDetailAnswer:
    """Ask the engine to end the job."""
    run = found_run(call.path.run_id)
    order = Order(run.job, "cancel", call.who, call.body.reason, call.at, run.run_id, call.body.order_id)
    _carry_out(order, lambda: orders.cancel(order, run, app().pipelines, open_spark()))
    return detail_of(found_run(run.run_id))


@operation("Discard an open run, or its staged result", "aggregations", problems=(NOT_FOUND, CONFLICT))
def discard_aggregation(call: Call[RunPath, Nothing, DiscardShape]) -> RunDetailAnswer:
    """Close the run without a result, or take the result away; nothing is lost, because the cut stays."""
    run = found_run(call.path.run_id)
    move: Move = "discard_run" if call.body.what == "run" else "discard_result"
    order = Order(run.job, move, call.who, call.body.reason, call.at, run.run_id, call.body.order_id)
    if call.body.what == "run":
        _carry_out(order, lambda: orders.discard_run(order, run, app().pipelines, open_spark()))
    else:
        _carry_out(order, lambda: orders.discard_result(order, run, app().pipelines))
    return detail_of(found_run(run.run_id))


def open_spark() -> SparkEngine | None:
    """Return the engine that SPARK_ENGINE names; None for `none`."""
    own = aggregation()
    return None if own is None else own.engine


def _place(kind: OrderedKind, call: Call[Nothing, Nothing, DaysShape]) -> Answer:
    body, job = call.body, job_of(call.body.job)
    wanted = RunOrder(kind, Days(body.since_day, body.until_day), call.at, call.who, body.reason)
    order = Order(job, kind, call.who, body.reason, call.at, order_id=body.order_id)
    standing = app().aggregation_store.read_standing(job)
    _carry_out(order, lambda: orders.place(order, wanted, standing, app().pipelines), wanted.days)
    return Answer(_waiting(job), 202, {"Location": "/api/aggregations"})


def _carry_out(order: Order, act: Callable[[], None], days: Days | None = None) -> None:
    """Carry an order out, unless it was carried out under its id."""
    store = app().pipelines
    try:
        if not store.is_given(order, days):
            act()
    except AggregationConflict as conflict:
        raise Problem(CONFLICT, str(conflict)) from conflict


def _paused(job: str) -> PauseAnswer:
    pause = app().aggregation_store.read_standing(job).pause
    return PauseAnswer(job=job, paused=None if pause is None else written(PausedAnswer, pause))


def _waiting(job: str) -> PlacedAnswer:
    return PlacedAnswer(job=job, waiting=waiting_answer(app().aggregation_store.read_standing(job).order))


def found_run(run_id: str) -> AggregationRun:
    """Return a run of any job; raise a problem where there is none."""
    for job in app().jobs:
        run = app().pipelines.find_run(job, run_id)
        if run is not None:
            return run
    raise not_found("run_id", f"there is no run {run_id}")


def detail_of(run: AggregationRun) -> RunDetailAnswer:
    """Write a run with its failures as an answer."""
    store = app().pipelines
    staged = store.read_staged(run.run_id)
    failures = [_failure(one) for one in store.read_failures(run.run_id)]
    return RunDetailAnswer(
        run=run_answer(run), staged_at=None if staged is None else staged.staged_at, failures=failures
    )


def _failure(one: Failure) -> FailureAnswer:
    return FailureAnswer(
        submit=one.submit,
        attempt=one.attempt,
        at=one.at,
        why=one.why,
        engine_job_id=one.engine_job_id,
        reason=one.reason,
        log=one.log,
        link=one.link,
    )

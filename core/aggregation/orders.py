"""A person's orders to the pipeline: pause and resume a job, cancel a Spark job, discard a run or a staged result,
repair or backfill an aggregate, and withdraw an order that waits."""

from contextlib import suppress

from core.aggregation.kinds import Order, RunOrder
from core.aggregation.ordered import fitting, misfit
from core.aggregation.runs import AggregationRun, Failure, Standing
from core.aggregation.silver import is_rows_job
from core.aggregation.spark import SparkEngine
from core.aggregation.store.pipeline import Pipelines
from core.errors import AggregationConflict, EngineRefused, EngineUnreachable

OPEN = ("submitting", "submitted")


def pause(order: Order, store: Pipelines) -> None:
    """Pause a job: nothing of it is planned, submitted or committed; a running Spark job finishes."""
    if not store.pause(order):
        raise AggregationConflict(f"{order.job} is paused already")


def resume(order: Order, store: Pipelines) -> None:
    """Resume a job."""
    if not store.resume(order):
        raise AggregationConflict(f"{order.job} is not paused")


def place(order: Order, wanted: RunOrder, standing: Standing, store: Pipelines) -> None:
    """Order a repair or a backfill: the next tick without an open run plans its run."""
    if is_rows_job(order.job):
        raise AggregationConflict(f"{order.job} keeps rows and no windows: order a {wanted.kind} of an aggregate")
    if not wanted.days.is_sound:
        raise AggregationConflict(f"the days are in the wrong order: {wanted.days}")
    if fitting(standing.cut) != wanted.kind:
        raise AggregationConflict(misfit(order.job, wanted.kind))
    if not store.place(order, wanted):
        raise AggregationConflict(f"a different order about {order.job} waits already: let it begin, or withdraw it")


def withdraw(order: Order, standing: Standing, store: Pipelines) -> None:
    """End the order of a repair or a backfill whose run is not planned yet."""
    if standing.order is None or not store.withdraw(order, standing.order):
        raise AggregationConflict(f"no order about {order.job} waits: discard its run, if it has one")


def cancel(order: Order, run: AggregationRun, store: Pipelines, engine: SparkEngine | None) -> None:
    """Ask the engine to end the job of an open run; the next tick begins the next attempt."""
    _refuse_closed(run)
    if run.engine_job_id is None:
        raise AggregationConflict(f"run {run.number} has no job in the engine yet: try again, or discard the run")
    if engine is None or engine.name != run.engine:
        raise AggregationConflict(f"the job of run {run.number} is in the engine {run.engine}, and SPARK_ENGINE is not")
    engine.cancel(run.engine_job_id)
    store.note_order(order)  # after it: an order in the history was carried out


def discard_run(order: Order, run: AggregationRun, store: Pipelines, engine: SparkEngine | None) -> None:
    """Close an open run without a result, and ask the engine to end its job; an engine that refuses stops nothing."""
    _refuse_closed(run)
    if not store.discard_run(order, run, _failure(order, run, "the run was discarded")):
        raise AggregationConflict(f"run {run.number} has moved on: look at it again")
    if run.engine_job_id is not None and engine is not None and engine.name == run.engine:
        with suppress(EngineUnreachable, EngineRefused):
            engine.cancel(run.engine_job_id)


def discard_result(order: Order, run: AggregationRun, store: Pipelines) -> None:
    """Take the staged result of an open run away; the next tick begins the next attempt."""
    _refuse_closed(run)
    staged = store.read_staged(run.run_id)
    if staged is None:
        raise AggregationConflict(f"run {run.number} has no staged result")
    if not store.discard_result(order, staged, _failure(order, run, "its result was discarded")):
        raise AggregationConflict(f"the result of run {run.number} is gone: look at the run again")


def _refuse_closed(run: AggregationRun) -> None:
    if run.status not in OPEN:
        raise AggregationConflict(f"run {run.number} is {run.status}")


def _failure(order: Order, run: AggregationRun, what: str) -> Failure:
    why = f"{what} by {order.who}: {order.reason}"
    return Failure(run.run_id, run.submits, run.attempt, order.at, run.engine_job_id, why)

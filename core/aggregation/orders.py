"""A person's orders to the pipeline: pause and resume a job, cancel a Spark job, discard a run or a staged result,
repair or backfill an aggregate, and withdraw an order that waits."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from core.aggregation.kinds import RunOrder
from core.aggregation.ordered import fitting, misfit
from core.aggregation.runs import AggregationRun, Failure, Staged, Standing
from core.aggregation.silver import is_rows_job
from core.aggregation.spark import SparkEngine
from core.errors import AggregationConflict, EngineRefused, EngineUnreachable

Move = Literal["pause", "resume", "cancel", "discard_run", "discard_result", "repair", "backfill", "withdraw"]
OPEN = ("submitting", "submitted")


@dataclass(frozen=True, slots=True)
class Order:
    """An order about a job, or about one of its runs, with its author and reason."""

    job: str
    move: Move
    who: str
    reason: str
    at: datetime
    run_id: str | None = None


class PipelineStore(Protocol):
    """Carries out orders. A method that returns a bool returns False, and writes nothing, when the state differs."""

    def find_run(self, job: str, run_id: str) -> AggregationRun | None:
        """Return a run of a job, or None."""

    def read_staged(self, run_id: str) -> Staged | None:
        """Return a complete staged result of a run, or None."""

    def read_failures(self, run_id: str) -> tuple[Failure, ...]:
        """Return why submits of a run gave no result, the newest first."""

    def read_history(self, job: str) -> str:
        """Return the orders about a job, one JSON object per line."""

    def read_oldest_commit(self, job: str) -> datetime | None:
        """Return the time of the oldest commit that is not in the aggregate; None when all are."""

    def count_failures(self, since: datetime) -> int:
        """Count the submits that failed since a time."""

    def count_quality_faults(self, since: datetime) -> int:
        """Count the runs that were committed since a time with a fault in the quality of their rows."""

    def pause(self, order: Order) -> bool:
        """Pause a job that is not paused."""

    def resume(self, order: Order) -> bool:
        """Resume a paused job."""

    def note_order(self, order: Order) -> None:
        """Write an order into the history of its job."""

    def place(self, order: Order, wanted: RunOrder) -> bool:
        """Write a repair or a backfill for the next tick, if it fits the cut and no other order waits."""

    def withdraw(self, order: Order, waiting: RunOrder) -> bool:
        """End an order that waits."""

    def discard_run(self, order: Order, run: AggregationRun, failure: Failure) -> bool:
        """Close an open run without a result; the next run takes over its commits."""

    def discard_result(self, order: Order, staged: Staged, failure: Failure) -> bool:
        """Take a staged result away, so that it is never committed."""


def pause(order: Order, store: PipelineStore) -> None:
    """Pause a job: nothing of it is planned, submitted or committed; a running Spark job finishes."""
    if not store.pause(order):
        raise AggregationConflict(f"{order.job} is paused already")


def resume(order: Order, store: PipelineStore) -> None:
    """Resume a job."""
    if not store.resume(order):
        raise AggregationConflict(f"{order.job} is not paused")


def place(order: Order, wanted: RunOrder, standing: Standing, store: PipelineStore) -> None:
    """Order a repair or a backfill: the next tick without an open run plans its run."""
    if is_rows_job(order.job):
        raise AggregationConflict(f"{order.job} keeps rows and no windows: order a {wanted.kind} of an aggregate")
    if not wanted.days.is_sound:
        raise AggregationConflict(f"the days are in the wrong order: {wanted.days}")
    if fitting(standing.cut) != wanted.kind:
        raise AggregationConflict(misfit(order.job, wanted.kind))
    if not store.place(order, wanted):
        raise AggregationConflict(f"a different order about {order.job} waits already: let it begin, or withdraw it")


def withdraw(order: Order, standing: Standing, store: PipelineStore) -> None:
    """End the order of a repair or a backfill whose run is not planned yet."""
    if standing.order is None or not store.withdraw(order, standing.order):
        raise AggregationConflict(f"no order about {order.job} waits: discard its run, if it has one")


def cancel(order: Order, run: AggregationRun, store: PipelineStore, engine: SparkEngine | None) -> None:
    """Ask the engine to end the job of an open run; the next tick begins the next attempt."""
    _refuse_closed(run)
    if run.engine_job_id is None:
        raise AggregationConflict(f"run {run.number} has no job in the engine yet: try again, or discard the run")
    if engine is None or engine.name != run.engine:
        raise AggregationConflict(f"the job of run {run.number} is in the engine {run.engine}, and SPARK_ENGINE is not")
    store.note_order(order)
    engine.cancel(run.engine_job_id)


def discard_run(order: Order, run: AggregationRun, store: PipelineStore, engine: SparkEngine | None) -> None:
    """Close an open run without a result, and ask the engine to end its job; an engine that refuses stops nothing."""
    _refuse_closed(run)
    if not store.discard_run(order, run, _failure(order, run, "the run was discarded")):
        raise AggregationConflict(f"run {run.number} has moved on: look at it again")
    if run.engine_job_id is not None and engine is not None and engine.name == run.engine:
        with suppress(EngineUnreachable, EngineRefused):
            engine.cancel(run.engine_job_id)


def discard_result(order: Order, run: AggregationRun, store: PipelineStore) -> None:
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
    return Failure(run.run_id, run.submits, run.attempt, order.at, why, run.engine_job_id)

"""A person's orders to the pipeline: pause and resume a job, cancel a Spark job, discard a run or a staged result,
repair or backfill an aggregate, and withdraw an order that waits."""

import json
from contextlib import suppress
from datetime import datetime

from core.aggregation.lake_tables import is_rows_job
from core.aggregation.runs import (
    NO_CUT,
    AggregationRun,
    Cut,
    Days,
    Failure,
    Order,
    RunOrder,
    Staged,
    Standing,
    fitting,
    misfit,
)
from core.aggregation.spark_engine import SparkEngine
from core.aggregation.store import (
    FAILURE_LENGTH,
    MovedOn,
    begun_json,
    end_values,
    ended_script,
    entry_values,
    failure_step,
    is_first,
    levels_text,
    pause_values,
    place_values,
    read_staged,
)
from core.errors import AggregationConflict, EngineRefused, EngineUnreachable
from core.store.columns import cut, decoded, decoder, instant_or_none, instant_text
from core.store.database import Database, write
from core.store.script import Script, Step


class Pipelines:
    """Orders in a database. A method that returns a bool returns False, and writes nothing, when the state differs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find_run(self, job: str, run_id: str) -> AggregationRun | None:
        """Return a run of a job, or None."""
        found = self._database.ask("find_run", job=job, run_id=run_id)
        return decoder(AggregationRun)(found[0]) if found else None

    def read_staged(self, run_id: str) -> Staged | None:
        """Return a complete staged result of a run, or None."""
        return read_staged(self._database, run_id)

    def read_failures(self, run_id: str) -> tuple[Failure, ...]:
        """Return why submits of a run gave no result, the newest first."""
        return decoded(Failure, self._database.ask("read_failures", run_id=run_id))

    def read_history(self, job: str) -> str:
        """Return the orders about a job, one JSON object per line."""
        found = self._database.ask("read_history", job=job)
        return str(found[0][0]) if found else ""

    def is_given(self, order: Order, days: Days | None = None) -> bool:
        """Return True if an order was carried out. Raises AggregationConflict when a different one has its id."""
        own = json.loads(entry_values(order, days)["entry"])
        for line in self.read_history(order.job).splitlines():
            given = json.loads(line)
            if given.get("order_id") == order.order_id:
                if any(own.get(name) != given.get(name) for name in ("move", "why", "run_id", "days")):
                    raise AggregationConflict(f"the id {order.order_id} is that of a different order about {order.job}")
                return True
        return False

    def read_oldest_commit(self, job: str) -> datetime | None:
        """Return the time of the oldest commit that is not in the aggregate, or None."""
        found = self._database.ask("read_cut", job=job)
        begun = begun_json(Cut(found[0][0]) if found else NO_CUT)
        return instant_or_none(self._database.ask("read_oldest_commit", begun=begun)[0][0])

    def count_failures(self, since: datetime) -> int:
        """Count the submits that failed since a time."""
        return int(self._database.ask("count_failures", since_at=instant_text(since))[0][0])

    def count_quality_faults(self, since: datetime) -> int:
        """Count the runs that were committed since a time with a fault in the quality of their rows."""
        return int(self._database.ask("count_quality_faults", since_at=instant_text(since))[0][0])

    def pause(self, order: Order) -> bool:
        """Pause a job that is not paused."""
        write(self._database, order.job, "open_cut", job=order.job, levels=levels_text(order.job))
        return bool(write(self._database, order.job, "pause_job", **pause_values(order)))

    def resume(self, order: Order) -> bool:
        """Resume a paused job."""
        return bool(write(self._database, order.job, "resume_job", **entry_values(order)))

    def note_order(self, order: Order) -> None:
        """Write an order into the history of its job."""
        write(self._database, order.job, "note_order", **entry_values(order))

    def place(self, order: Order, wanted: RunOrder) -> bool:
        """Write a repair or a backfill for the next tick, if it fits the cut and no other order waits."""
        write(self._database, order.job, "open_cut", job=order.job, levels=levels_text(order.job))
        values = {**entry_values(order, wanted.days), **place_values(wanted)}
        return bool(write(self._database, order.job, "place_order", **values))

    def withdraw(self, order: Order, waiting: RunOrder) -> bool:
        """End an order that waits."""
        return bool(write(self._database, order.job, "end_order", **end_values(order, waiting)))

    def discard_run(self, order: Order, run: AggregationRun, failure: Failure) -> bool:
        """Close an open run without a result. The next run takes over its commits."""
        return is_first(self._database, discard_run_script(order, run, failure))

    def discard_result(self, order: Order, staged: Staged, failure: Failure) -> bool:
        """Take a staged result away, so that it is never committed."""
        return is_first(self._database, discard_result_script(order, staged, failure))


def discard_run_script(order: Order, run: AggregationRun, failure: Failure) -> Script:
    """Return the transaction that closes an open run without a result."""
    closed = {"attempt": run.attempt, "failure": cut(failure.why, FAILURE_LENGTH), "closed_at": instant_text(order.at)}
    return _script(order, _noted(order), *ended_script("fail_run", run, closed, failure).steps)


def discard_result_script(order: Order, staged: Staged, failure: Failure) -> Script:
    """Return the transaction that takes a staged result away."""
    removed = Step("remove_staging", {"staging_id": staged.staging_id}, expect=1, otherwise=MovedOn)
    return _script(order, _noted(order), removed, failure_step(failure))


def _script(order: Order, *steps: Step) -> Script:
    return Script(f"{order.move} of {order.job}", steps)


def _noted(order: Order) -> Step:
    return Step("note_order", entry_values(order), expect=1, otherwise=MovedOn)


OPEN = ("submitting", "submitted")


def pause(order: Order, store: Pipelines) -> None:
    """Pause a job: nothing of it is planned, submitted or committed. A running Spark job finishes."""
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
    """Ask the engine to end the job of an open run. The next tick begins the next attempt."""
    _refuse_closed(run)
    if run.engine_job_id is None:
        raise AggregationConflict(f"run {run.number} has no job in the engine yet: try again, or discard the run")
    if engine is None or engine.name != run.engine:
        raise AggregationConflict(f"the job of run {run.number} is in the engine {run.engine}, and SPARK_ENGINE is not")
    engine.cancel(run.engine_job_id)
    store.note_order(order)  # after it: an order in the history was carried out


def discard_run(order: Order, run: AggregationRun, store: Pipelines, engine: SparkEngine | None) -> None:
    """Close an open run without a result, and ask the engine to end its job. An engine that refuses stops nothing."""
    _refuse_closed(run)
    if not store.discard_run(order, run, _failure(order, run, "the run was discarded")):
        raise AggregationConflict(f"run {run.number} has moved on: look at it again")
    if run.engine_job_id is not None and engine is not None and engine.name == run.engine:
        with suppress(EngineUnreachable, EngineRefused):
            engine.cancel(run.engine_job_id)


def discard_result(order: Order, run: AggregationRun, store: Pipelines) -> None:
    """Take the staged result of an open run away. The next tick begins the next attempt."""
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

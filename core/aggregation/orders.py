"""A person's orders to the pipeline: pause and resume a job, cancel a Spark job, discard a run or a staged result,
repair or backfill an aggregate, and withdraw an order that waits."""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from core.aggregation.lake_tables import is_rows_job
from core.aggregation.runs import NO_CUT, AggregationRun, Cut, Failure, Order, Staged, Standing, fitting, order_misfit
from core.aggregation.spark_engine import SparkEngine
from core.aggregation.store import (
    MovedOn,
    begun_json,
    entry_values,
    fail_steps,
    is_first,
    open_cut,
    order_values,
    pause_values,
    read_staged,
    removal_steps,
)
from core.errors import AggregationConflict, EngineRefused, EngineUnreachable
from core.store.columns import decoded, decoder, instant_of, instant_or_none, instant_text
from core.store.database import Database, write
from core.store.script import Script, Step


class Pipelines:
    """Orders in a database. An order raises AggregationConflict, and writes nothing, when the state does not fit it."""

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

    def is_given(self, order: Order) -> bool:
        """Return True if an order was carried out. Raises AggregationConflict when a different one has its id."""
        own = json.loads(entry_values(order)["entry"])
        for line in self.read_history(order.job).splitlines():
            given = json.loads(line)
            if given.get("order_id") == order.order_id:
                if any(own.get(name) != given.get(name) for name in ("move", "why", "run_id", "days")):
                    raise AggregationConflict(f"the id {order.order_id} is that of a different order about {order.job}")
                return True
        return False

    def read_oldest_commit(self, job: str) -> datetime | None:
        """Return the time of the oldest commit that changed rows and is not in the aggregate, or None."""
        found = self._database.ask("read_cut", job=job)
        begun = begun_json(Cut(found[0][0]) if found else NO_CUT)
        return instant_or_none(self._database.ask("read_oldest_commit", begun=begun)[0][0])

    def read_stale(self) -> Mapping[str, datetime]:
        """Return the tables in the lake that are not up to date, each with the time since which that is so."""
        tables = (json.loads(text) for (text,) in self._database.ask("read_stale"))
        return {table: instant_of(since) for one in tables for table, since in one.items()}

    def count_failures(self, since: datetime) -> int:
        """Count the submits that failed since a time."""
        return int(self._database.ask("count_failures", since_at=instant_text(since))[0][0])

    def count_quality_faults(self, since: datetime) -> int:
        """Count the runs that were committed since a time with a fault in the quality of their rows."""
        return int(self._database.ask("count_quality_faults", since_at=instant_text(since))[0][0])

    def pause(self, order: Order) -> None:
        """Pause a job: nothing of it is planned, submitted or committed. A running Spark job finishes."""
        open_cut(self._database, order.job)
        self._write("pause_job", order, f"{order.job} is paused already", **pause_values(order))

    def resume(self, order: Order) -> None:
        """Resume a job."""
        self._write("resume_job", order, f"{order.job} is not paused")

    def place(self, order: Order, standing: Standing) -> None:
        """Order a repair or a backfill: the next tick without an open run plans its run."""
        if is_rows_job(order.job):
            raise AggregationConflict(f"{order.job} keeps rows and no windows: order a {order.move} of an aggregate")
        if order.days is None or not order.days.is_sound:
            raise AggregationConflict(f"the days are in the wrong order: {order.days}")
        if (kind := fitting(standing.cut)) != order.move:
            raise AggregationConflict(order_misfit(order.job, "repair" if kind == "backfill" else "backfill"))
        open_cut(self._database, order.job)
        waits = f"a different order about {order.job} waits already: let it begin, or withdraw it"
        self._write("place_order", order, waits, **order_values(order, order.days))

    def withdraw(self, order: Order, standing: Standing) -> None:
        """End the order of a repair or a backfill whose run is not planned yet."""
        none = f"no order about {order.job} waits: discard its run, if it has one"
        if standing.order is None:
            raise AggregationConflict(none)
        self._write("end_order", order, none, ordered_at=instant_text(standing.order.at))

    def cancel(self, order: Order, run: AggregationRun, engine: SparkEngine | None) -> None:
        """Ask the engine to end the job of an open run. The next tick begins the next attempt."""
        _refuse_closed(run)
        if run.engine_job_id is None:
            raise AggregationConflict(f"run {run.number} has no job in the engine yet: try again, or discard the run")
        if engine is None or engine.name != run.engine:
            why = f"the job of run {run.number} is in the engine {run.engine}, and SPARK_ENGINE is not"
            raise AggregationConflict(why)
        engine.cancel(run.engine_job_id)
        write(self._database, order.job, "note_order", **entry_values(order))  # after it: it was carried out

    def discard_run(self, order: Order, run: AggregationRun, engine: SparkEngine | None) -> None:
        """Close an open run without a result, and ask the engine to end its job. The next run takes over its commits.

        An engine that refuses stops nothing.
        """
        _refuse_closed(run)
        if not is_first(self._database, discard_run_script(order, run)):
            raise AggregationConflict(f"run {run.number} has moved on: look at it again")
        if run.engine_job_id is not None and engine is not None and engine.name == run.engine:
            with suppress(EngineUnreachable, EngineRefused):
                engine.cancel(run.engine_job_id)

    def discard_result(self, order: Order, run: AggregationRun) -> None:
        """Take the staged result of an open run away. The next tick begins the next attempt."""
        _refuse_closed(run)
        staged = self.read_staged(run.run_id)
        if staged is None:
            raise AggregationConflict(f"run {run.number} has no staged result")
        if not is_first(self._database, discard_result_script(order, run, staged)):
            raise AggregationConflict(f"the result of run {run.number} is gone: look at the run again")

    def _write(self, statement: str, order: Order, conflict: str, **values: Any) -> None:
        if not write(self._database, order.job, statement, **entry_values(order), **values):
            raise AggregationConflict(conflict)


def discard_run_script(order: Order, run: AggregationRun) -> Script:
    """Return the transaction that closes an open run without a result."""
    failure = run.failed_submit(order.at, f"the run was discarded by {order.who}: {order.reason}")
    return Script(f"{order.move} of {order.job}", (_noted(order), *fail_steps(run, failure.why, order.at, failure)))


def discard_result_script(order: Order, run: AggregationRun, staged: Staged) -> Script:
    """Return the transaction that takes a staged result away."""
    failure = run.failed_submit(order.at, f"its result was discarded by {order.who}: {order.reason}")
    return Script(f"{order.move} of {order.job}", (_noted(order), *removal_steps(staged, failure)))


def _noted(order: Order) -> Step:
    return Step("note_order", entry_values(order), expect=1, otherwise=MovedOn)


def _refuse_closed(run: AggregationRun) -> None:
    if not run.is_open:
        raise AggregationConflict(f"run {run.number} is {run.status}")

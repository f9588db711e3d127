"""The pipeline in SQL, as operators and the watch see it: orders, failures, and the age of waiting commits."""

import json
from datetime import datetime

from core.aggregation.kinds import Days, Order, RunOrder
from core.aggregation.runs import NO_CUT, AggregationRun, Cut, Failure, Staged
from core.aggregation.store.commits import FAILURE_LENGTH, begun_json, ended_script, failure_step
from core.aggregation.store.levels import levels_text, read_staged
from core.aggregation.store.plans import MovedOn, end_values, entry_values, is_first, pause_values, place_values
from core.errors import AggregationConflict
from core.store.columns import cut, instant_or_none, instant_text
from core.store.database import Database, write
from core.store.decoding import decoded, decoder
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
        """Return the time of the oldest commit that is not in the aggregate; None when all are."""
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
        """Close an open run without a result; the next run takes over its commits."""
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

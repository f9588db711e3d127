"""Aggregation runs in the embedded store."""

import sqlite3
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from core.aggregation.activity import HomeActivity
from core.aggregation.runs import AggregationRun, Staged, Standing
from core.store.run_records import (
    activity_of,
    commit_values,
    failure_values,
    homes_values,
    intent_values,
    plan_values,
    run_of,
    span_values,
    staged_of,
    standing_of,
    submitted_values,
)
from core.store.sqlite import SqliteStore

_RESULT = ("remove_whole_windows", "add_to_windows", "open_windows")
_TIDYING = ("remove_staged_windows", "remove_staging")


class SqliteAggregationStore(SqliteStore):
    """An AggregationStore in the file of the ledger."""

    def read_standing(self, job: str) -> Standing:
        """See AggregationStore."""
        with self._reading():
            cut = self._found("read_cut", job=job)
            if not cut:
                self._written("open_cut", {"job": job})
                cut = self._found("read_cut", job=job)
            last_run = self._found("read_last_run", job=job)
            return standing_of(cut[0], last_run[0] if last_run else None, self._found("read_commit_numbers"))

    def open_run(self, run: AggregationRun) -> bool:
        """See AggregationStore."""
        values = plan_values(run)
        with self._changing() as connection:
            if not self._touched(connection, "number_run", values):
                return False
            connection.execute(self._queries["open_run"], values)
        return True

    def renew_intent(self, run: AggregationRun, attempt: int, intent_at: datetime) -> bool:
        """See AggregationStore."""
        return self._written("renew_intent", intent_values(run, attempt, intent_at))

    def note_submitted(self, run: AggregationRun, engine_job_id: str, submitted_at: datetime) -> bool:
        """See AggregationStore."""
        return self._written("note_submitted", submitted_values(run, engine_job_id, submitted_at))

    def fail_run(self, run: AggregationRun, failure: str, closed_at: datetime) -> bool:
        """See AggregationStore."""
        return self._written("fail_run", failure_values(run, failure, closed_at))

    def read_staged(self, run_id: str) -> Staged | None:
        """See AggregationStore."""
        with self._reading():
            found = self._found("read_staged", run_id=run_id)
        return staged_of(found[0]) if found else None

    def commit_run(self, run: AggregationRun, staged: Staged, closed_at: datetime) -> bool:
        """See AggregationStore."""
        values = commit_values(run, staged, closed_at)
        try:
            with self._changing() as connection:
                self._demand(connection, "move_cut", values)
                for name in _RESULT:
                    connection.execute(self._queries[name], values)
                self._demand(connection, "close_run", values)
                for name in _TIDYING:
                    connection.execute(self._queries[name])
        except _AnotherWasFirst:
            return False
        return True

    def read_runs(self, job: str, before: int, limit: int) -> tuple[AggregationRun, ...]:
        """See AggregationStore."""
        with self._reading():
            return tuple(map(run_of, self._found("read_runs", job=job, before_number=before, most=limit)))

    def read_committed_runs(self, job: str, after: int) -> tuple[AggregationRun, ...]:
        """See AggregationStore."""
        with self._reading():
            return tuple(map(run_of, self._found("read_committed_runs", job=job, after_number=after)))

    def read_activity(self, home_id: str, since: datetime, until: datetime) -> tuple[HomeActivity, ...]:
        """See AggregationStore."""
        with self._reading():
            return tuple(map(activity_of, self._found("read_activity", **span_values(home_id, since, until))))

    def find_homes(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        """See AggregationStore."""
        with self._reading():
            return tuple(row[0] for row in self._found("find_homes", **homes_values(prefix, after, limit)))

    def _found(self, query: str, **values: object) -> list[Any]:
        return self._connection().execute(self._queries[query], values).fetchall()

    def _written(self, query: str, values: Mapping[str, Any]) -> bool:
        with self._changing() as connection:
            return self._touched(connection, query, values)

    def _touched(self, connection: sqlite3.Connection, query: str, values: Mapping[str, Any]) -> bool:
        return bool(connection.execute(self._queries[query], values).fetchall())

    def _demand(self, connection: sqlite3.Connection, query: str, values: Mapping[str, Any]) -> None:
        if not self._touched(connection, query, values):
            raise _AnotherWasFirst


class _AnotherWasFirst(Exception):
    """Rolls the transaction back."""

"""Aggregation runs on SQL Server: a plan and a commit are one batch each, one transaction and one round trip."""

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

from core.aggregation.activity import HomeActivity
from core.aggregation.runs import AggregationRun, Staged, Standing
from core.errors import CommitOutcomeUnknown
from core.store.faults import Fault, classify
from core.store.queries import load_queries
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
from core.store.server_commit import declare, server_texts, template
from core.store.sqlserver import SqlServerStore

PLAN = ("number_run", "open_run")
COMMIT = (
    "move_cut",
    "remove_whole_windows",
    "add_to_windows",
    "open_windows",
    "close_run",
    "remove_staged_windows",
    "remove_staging",
)


class SqlServerAggregationStore(SqlServerStore):
    """An AggregationStore in the schema of the ledger."""

    def read_standing(self, job: str) -> Standing:
        """See AggregationStore."""
        with self._faults():
            cut = self._rows("read_cut", job=job)
            if not cut:
                self._rows("open_cut", job=job)
                cut = self._rows("read_cut", job=job)
            last_run = self._rows("read_last_run", job=job)
            return standing_of(cut[0], last_run[0] if last_run else None, self._rows("read_commit_numbers"))

    def open_run(self, run: AggregationRun) -> bool:
        """See AggregationStore."""
        return self._committed("open_run", PLAN, plan_values(run))

    def renew_intent(self, run: AggregationRun, attempt: int, intent_at: datetime) -> bool:
        """See AggregationStore."""
        return self._touched("renew_intent", intent_values(run, attempt, intent_at))

    def note_submitted(self, run: AggregationRun, engine_job_id: str, submitted_at: datetime) -> bool:
        """See AggregationStore."""
        return self._touched("note_submitted", submitted_values(run, engine_job_id, submitted_at))

    def fail_run(self, run: AggregationRun, failure: str, closed_at: datetime) -> bool:
        """See AggregationStore."""
        return self._touched("fail_run", failure_values(run, failure, closed_at))

    def read_staged(self, run_id: str) -> Staged | None:
        """See AggregationStore."""
        with self._faults():
            found = self._rows("read_staged", run_id=run_id)
        return staged_of(found[0]) if found else None

    def commit_run(self, run: AggregationRun, staged: Staged, closed_at: datetime) -> bool:
        """See AggregationStore. CommitOutcomeUnknown when the answer is lost: the next look tells."""
        return self._committed("commit_run", COMMIT, commit_values(run, staged, closed_at))

    def read_runs(self, job: str, before: int, limit: int) -> tuple[AggregationRun, ...]:
        """See AggregationStore."""
        with self._faults():
            return tuple(map(run_of, self._rows("read_runs", job=job, before_number=before, most=limit)))

    def read_committed_runs(self, job: str, after: int) -> tuple[AggregationRun, ...]:
        """See AggregationStore."""
        with self._faults():
            return tuple(map(run_of, self._rows("read_committed_runs", job=job, after_number=after)))

    def read_activity(self, home_id: str, since: datetime, until: datetime) -> tuple[HomeActivity, ...]:
        """See AggregationStore."""
        values = server_texts(span_values(home_id, since, until))
        with self._faults():
            return tuple(map(activity_of, self._rows("read_activity", **values)))

    def find_homes(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        """See AggregationStore."""
        with self._faults():
            return tuple(row[0] for row in self._rows("find_homes", **homes_values(prefix, after, limit)))

    def _touched(self, query: str, values: dict[str, Any]) -> bool:
        with self._faults():
            return bool(self._rows(query, **server_texts(values)))

    def _committed(self, script: str, names: tuple[str, ...], values: dict[str, Any]) -> bool:
        texts = server_texts(values)
        with self._faults():
            try:
                self._execute(batch(script, names), [texts[name] for name in parameters(names)])
            except self._driver().Error as error:
                fault = classify(error)
                if fault is Fault.CONFLICT:
                    return False
                if fault is Fault.LOST:
                    self._connections.drop()
                    raise CommitOutcomeUnknown(f"{script} of {values['run_id']} was not answered") from error
                raise
        return True


@cache
def batch(script: str, names: tuple[str, ...]) -> str:
    """A script of sql/sqlserver with its queries filled in."""
    queries = load_queries("sqlserver")
    texts = {name: queries[name].text for name in names}
    return template(script).format(declarations=declare(parameters(names)), **texts)


@cache
def parameters(names: Iterable[str]) -> tuple[str, ...]:
    """The parameters of several queries together, each once."""
    queries = load_queries("sqlserver")
    return tuple(dict.fromkeys(param for name in names for param in queries[name].params))

"""Databases with an aggregation store over them: tests stage the results of jobs by hand."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from core.aggregation.activity import HomeActivity
from core.aggregation.port import AggregationStore
from core.model.rows import Row
from core.store.aggregation import Aggregations
from core.store.columns import instant_text
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlserver.database import SqlServerDatabase
from core.store.sqlserver.json import server_instant_text
from core.store.sqlserver.odbc import Session
from tests.fakes.builders import commit, partition, settled
from tests.fakes.engines import SqliteEngine
from tests.fakes.server_engine import SqlServerEngine
from tests.fakes.store import Store

COLUMNS = (
    "staging_id, run_id, home_id, window_start, kind, is_whole, readings, active, ppm_hundredths,"
    " least_ppm_hundredths, most_ppm_hundredths, first_observed_at, last_observed_at"
)
FINISHED = "staging_id, run_id, attempt, lake_path, is_snapshot, staged_at"


class AggregatingStore(Store, Aggregations):
    """The store of events and of aggregation runs over one database."""


class AggregationEngine(Protocol):
    """A database under test."""

    def open(self) -> AggregationStore: ...

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None: ...

    def count(self, table: str) -> int: ...

    def instant(self, moment: datetime) -> str: ...


@dataclass(frozen=True, slots=True)
class SqliteAggregation:
    """The embedded store."""

    sqlite: SqliteEngine

    def open(self) -> AggregatingStore:
        return AggregatingStore(SqliteDatabase(self.sqlite.path))

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(columns.split(", ")))
        self.sqlite.sql_of_many(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)

    def count(self, table: str) -> int:
        return int(self.sqlite.sql(f"SELECT COUNT(*) FROM {table}")[0][0])

    def instant(self, moment: datetime) -> str:
        return instant_text(moment)


@dataclass(frozen=True, slots=True)
class ServerAggregation:
    """The T-SQL server that MSSQL_CONNECTION names."""

    server: SqlServerEngine

    def open(self) -> AggregatingStore:
        return AggregatingStore(SqlServerDatabase(self.server.connection_string, schema=self.server.schema))

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        session: Session = self.server.session
        for row in rows:
            values = ", ".join(_literal(value) for value in row)
            session.run(f"SET NOCOUNT ON; INSERT INTO {self.server.schema}.{table} ({columns}) VALUES ({values});")

    def count(self, table: str) -> int:
        return int(self.server.session.run(f"SELECT COUNT(*) AS rows FROM {self.server.schema}.{table};")[-1][0][0])

    def instant(self, moment: datetime) -> str:
        return server_instant_text(moment)


def engines(place: Path, connection: str) -> dict[str, Callable[[], AggregationEngine]]:
    """Return the engines that this machine has."""
    found: dict[str, Callable[[], AggregationEngine]] = {
        "sqlite": lambda: SqliteAggregation(SqliteEngine(place / "store.db"))
    }
    if connection:
        found["sqlserver"] = lambda: ServerAggregation(SqlServerEngine.on(connection))
    return found


def ingest(store: Any, rows: Sequence[Row], of: str = "0") -> None:
    """Commit one row for each event."""
    state = store.read_partition(partition(of))
    first = state.checkpoint.sequence_number + 1 if state.checkpoint else 0
    placed = {first + at: [row] for at, row in enumerate(rows)}
    store.commit_batch(commit(state, first, first + len(rows) - 1, settled(placed)))


def stage(
    engine: AggregationEngine, staging_id: str, run_id: str, windows: Sequence[HomeActivity], whole: bool = False
) -> None:
    """Stage windows as a job does; whole windows replace the stored ones."""
    rows = [
        (
            staging_id,
            run_id,
            one.home_id,
            engine.instant(one.window_start),
            one.kind,
            int(whole),
            one.readings,
            one.active,
            one.ppm_hundredths,
            one.least_ppm_hundredths,
            one.most_ppm_hundredths,
            engine.instant(one.first_observed_at) if one.readings else None,
            engine.instant(one.last_observed_at) if one.readings else None,
        )
        for one in windows
    ]
    engine.insert("home_activity_staging", COLUMNS, rows)


def finish(engine: AggregationEngine, staging_id: str, run_id: str, staged_at: datetime) -> None:
    """Mark a result as complete."""
    row = (staging_id, run_id, 1, f"/lake/{staging_id}", 0, engine.instant(staged_at))
    engine.insert("aggregation_staging", FINISHED, [row])


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "N" + json.dumps(value).replace('"', "'")

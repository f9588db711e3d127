"""Databases with an aggregation store over them: tests stage the results of jobs by hand."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any
from zlib import crc32

from core.aggregation.runs import AggregationRun
from core.aggregation.runs import Staged as StagedResult
from core.aggregation.store import Aggregations
from core.aggregation.tick import commit_run
from core.model.aggregates import SLICES, WINDOW_START, Aggregate, aggregate_table
from core.model.rows import Row
from core.store.columns import instant_text
from core.store.sqlserver.database import SqlServerDatabase
from core.store.sqlserver.statements import server_instant_text
from core.transforms.loading import load_aggregates
from tests.fakes.builders import commit, partition, settled
from tests.fakes.engines import SqliteEngine, SqlServerEngine
from tests.fakes.kept import PersistentEngine
from tests.fakes.store import Store

HOME_ACTIVITY = "home_activity"
FACTS = "staging_id, run_id, level, slice, windows, whole_windows, rows_hash"
FINISHED = "staging_id, run_id, attempt, windows, levels, rows_read, lake_path, is_snapshot, staged_at, quality"
ROW_LOST: dict[str, Any] = {  # the quality of a run
    "fault": "the ledger counts 12 rows, and the tables have 11: partition 3 has 7 of its 8",
    "rows_ledger": 12,
    "rows_read": 8,
    "rows_removed": 1,
    "rows_elsewhere": 2,
    "rows_difference": -1,
    "rows_late": 2,
    "partitions": [{"partition": "1/3", "ledger": 8, "found": 7}],
}
Staged = dict[str, dict[tuple[Any, ...], tuple[bool, Any]]]  # the windows of each staging, by their keys


class AggregatingStore(Store, Aggregations):
    """The store of events and of aggregation runs over one database."""


class AggregationEngine:
    """A database under test, with the windows that were staged in it."""

    def __init__(self) -> None:
        self.staged: Staged = {}

    def open(self) -> AggregatingStore:
        raise NotImplementedError

    def change(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement of a test. {p} is the prefix of a table."""
        raise NotImplementedError

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        raise NotImplementedError

    def instant(self, moment: datetime) -> str:
        return instant_text(moment)

    def row_hash(self, text: str) -> int:
        return crc32(text.encode())

    def count(self, table: str) -> int:
        return int(self.change(f"SELECT COUNT(*) AS n FROM {{p}}{table}")[0][0])


class SqliteAggregation(AggregationEngine):
    def __init__(self, sqlite: SqliteEngine) -> None:
        super().__init__()
        self.sqlite = sqlite

    def open(self) -> AggregatingStore:
        return AggregatingStore(self.sqlite.database())

    def change(self, statement: str) -> list[tuple[Any, ...]]:
        return self.sqlite.sql(statement.format(p=""))

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(columns.split(", ")))
        self.sqlite.sql_of_many(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)


class ServerAggregation(AggregationEngine):
    def __init__(self, server: SqlServerEngine) -> None:
        super().__init__()
        self.server = server

    def open(self) -> AggregatingStore:
        return AggregatingStore(SqlServerDatabase(self.server.connection_string, schema=self.server.schema))

    def change(self, statement: str) -> list[tuple[Any, ...]]:
        results = self.server.session.run(f"SET NOCOUNT ON; {statement.format(p=f'{self.server.schema}.')};")
        return list(results[-1]) if results else []

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        for row in rows:
            marks = ", ".join("NULL" if value is None else "?" for value in row)
            text = f"SET NOCOUNT ON; INSERT INTO {self.server.schema}.{table} ({columns}) VALUES ({marks});"
            self.server.session.run(text, [value for value in row if value is not None])

    def instant(self, moment: datetime) -> str:
        return server_instant_text(moment)

    def row_hash(self, text: str) -> int:
        return int.from_bytes(sha256(text.encode("utf-16-le")).digest()[:4], "big")


def aggregation_of(engine: PersistentEngine) -> AggregationEngine:
    if isinstance(engine, SqliteEngine):
        return SqliteAggregation(engine)
    assert isinstance(engine, SqlServerEngine)
    return ServerAggregation(engine)


def ingest(store: Any, rows: Sequence[Row], of: str = "0") -> None:
    state = store.read_partition(partition(of))
    first = state.checkpoint.sequence_number + 1 if state.checkpoint else 0
    placed = {first + at: [row] for at, row in enumerate(rows)}
    store.commit_batch(commit(state, first, first + len(rows) - 1, settled(placed)))


def stage(engine: AggregationEngine, staging_id: str, run_id: str, windows: Sequence[Any], whole: bool = False) -> None:
    """Stage windows of one aggregate as a job does. Whole windows replace the stored ones. A key is staged once."""
    known = engine.staged.setdefault(staging_id, {})
    for one in windows:
        of = aggregate_table(type(one))
        key = (of.name, *(getattr(one, name) for name in of.key))
        if key not in known:
            known[key] = (whole, one)
            columns, values = _row(engine, of, staging_id, run_id, one, whole)
            engine.insert(of.staged, columns, [values])


def committed(store: Aggregations, run: AggregationRun, staged: StagedResult, at: datetime) -> bool:
    """Commit a run without an end of the time. Return False when another tick was first."""
    return commit_run(store, run, staged, lambda: at, at + timedelta(minutes=1)) == "committed"


def slice_of(key: object) -> int:
    return crc32(str(key).encode()) % SLICES


def _row(
    engine: AggregationEngine, of: Aggregate, staging_id: str, run_id: str, one: Any, whole: bool
) -> tuple[str, tuple[Any, ...]]:
    given = {name: getattr(one, name) for name in of.columns}
    if not given[of.count]:
        given |= {measure.name: None for measure in of.measures if measure.holds is datetime}
    values = (engine.instant(value) if isinstance(value, datetime) else value for value in given.values())
    columns = ", ".join(["staging_id", "run_id", "slice", "is_whole", *(f"[{name}]" for name in given)])
    return columns, (staging_id, run_id, slice_of(given[of.keys[0].name]), int(whole), *values)


def finish(
    engine: AggregationEngine, staging_id: str, run_id: str, staged_at: datetime, quality: str | None = None
) -> None:
    """Write the facts of a result as a job does, computed here from the staged windows, and mark it as complete."""
    slices: dict[tuple[str, int], list[tuple[bool, Any]]] = {}
    known = engine.staged.get(staging_id, {})
    for whole, one in known.values():
        of = aggregate_table(type(one))
        slices.setdefault((of.name, slice_of(getattr(one, of.keys[0].name))), []).append((whole, one))
    facts = [_facts(engine, staging_id, run_id, number, each) for (_, number), each in slices.items()]
    engine.insert("staged_slice", FACTS, facts)
    levels = levels_of([one for _, one in known.values()])
    finest, *_ = levels
    windows = [one for _, one in known.values() if aggregate_table(type(one)).name == finest]
    rows = sum(getattr(one, aggregate_table(type(one)).count) for one in windows)
    row = (staging_id, run_id, 1, levels[finest], json.dumps(levels), rows, f"/lake/{staging_id}", 0)
    engine.insert("staged_result", FINISHED, [(*row, engine.instant(staged_at), quality)])


def levels_of(windows: Sequence[Any]) -> dict[str, int]:
    """Return the number of windows of each level of the aggregate of these windows, by default of home_activity."""
    found = Counter(aggregate_table(type(one)).name for one in windows) or Counter({HOME_ACTIVITY: 0})
    (of,) = (one for one in load_aggregates() if found.keys() & {level.name for level in one.levels})
    return {one.name: found[one.name] for one in of.levels}


def _facts(
    engine: AggregationEngine, staging_id: str, run_id: str, number: int, windows: Sequence[tuple[bool, Any]]
) -> tuple[Any, ...]:
    of = aggregate_table(type(windows[0][1]))
    whole = sum(is_whole for is_whole, _ in windows)
    hashed = sum(engine.row_hash(_row_text(of, is_whole, one)) for is_whole, one in windows)
    return (staging_id, run_id, of.name, number, len(windows), whole, hashed)


def _row_text(of: Aggregate, is_whole: bool, one: Any) -> str:
    texts = [each.name for each in of.keys if each.kind is str]
    values = [getattr(one, name).replace("\n", " ") for name in texts] + [str(int(is_whole))]
    values += [_text(of, one, name) for name in of.columns if name not in texts]
    return "|".join(values)


def _text(of: Aggregate, one: Any, name: str) -> str:
    value = getattr(one, name)
    if isinstance(value, datetime):
        is_missing = name != WINDOW_START and not getattr(one, of.count)
        return "" if is_missing else f"{value.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
    return "" if value is None else str(value)

"""The embedded store: Python on the executors reads and writes SQLite as Arrow; all executors share one file."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from core.model.aggregates import Aggregate
from core.model.ports import utc_text
from core.model.rows import ERASED, row_table
from jobs import as_of
from jobs.quality import count_queries, total_of, written_of, written_query
from jobs.ranges import CommitSpan, MergedRange, Place, Slice, WrittenCount
from jobs.row_texts import LINEAGE_KINDS, row_kinds
from jobs.tables import (
    EVENT_COLUMNS,
    REMOVED_COLUMNS,
    RUN_COLUMNS,
    Result,
    Run,
    event_form,
    fact_values,
    later_where,
    ledger_query,
    newest_where,
    position_of,
    quoted,
    rows_where,
    run_of,
    staged_columns,
    staged_form,
)
from jobs.transforms import schema_of, source_columns, window_columns

_TYPES = {"bigint": "INTEGER"}


class SqliteWords:
    """The SQL of SQLite. Its CROSS JOIN keeps the order: each wanted window seeks."""

    prefix = ""
    join = "CROSS JOIN"

    def named(self, column: str) -> str:
        return f"[{column}]"

    def sent(self, value: str, column: str, kind: str) -> str:
        return f"{value} AS [{column}]"

    def documents(self, columns: Mapping[str, str]) -> str:
        return ""

    def member(self, column: str, kind: str) -> str:
        return f"r.[row] ->> '{column}'"

    def places(self, cut: Sequence[CommitSpan]) -> str:
        rows = json.dumps([[one.stream_id, one.partition_id, one.up_to] for one in cut])
        columns = "value ->> 0 AS stream_id, value ->> 1 AS partition_id, value ->> 2 AS up_to"
        return f"(SELECT {columns} FROM json_each({quoted(rows)})) AS c"

    def wanted(self, kinds: Mapping[str, str], windows: Sequence[Mapping[str, Any]]) -> str:
        """DISTINCT has the windows computed once, and a typed column can have an index where a join needs one."""
        rows = json.dumps([[_text(one[name], kind) for name, kind in kinds.items()] for one in windows])
        typed = (f"CAST(value ->> {place} AS {_TYPES.get(kind, 'TEXT')})" for place, kind in enumerate(kinds.values()))
        columns = ", ".join(f"{value} AS [{name}]" for value, name in zip(typed, kinds, strict=True))
        return f"(SELECT DISTINCT {columns} FROM json_each({quoted(rows)})) AS k"

    def same(self, column: str, wanted: str, kind: str) -> str:
        return f"{column} = {wanted}"


def _text(value: Any, kind: str) -> Any:
    if kind == "timestamp":
        return utc_text(value)
    return value.date().isoformat() if kind == "date" else value


FETCHED = 20_000  # rows at a time
WRITTEN = 5_000  # rows in a transaction: the app writes to the same file
BUSY = 60.0  # seconds that a statement waits for a different writer
WORDS = SqliteWords()

_STORED = {"boolean": "bigint"}  # SQLite has no booleans; Spark reads 0 and 1 as such
_RUNS = f"SELECT {RUN_COLUMNS}, planned_at FROM aggregation_run WHERE"
_CHECKPOINTS = "SELECT partition_id, sequence_number FROM event_hub_checkpoint WHERE stream_id = ?"
_STAGE_EVENTS = (
    f"INSERT INTO staged_event ({', '.join(EVENT_COLUMNS)}) VALUES ({', '.join('?' * len(EVENT_COLUMNS))})"
    " ON CONFLICT (stream_id, partition_id, sequence_number) DO NOTHING"
)
_FACTS = (
    "INSERT INTO staged_slice (staging_id, run_id, level, slice, windows, whole_windows, rows_hash)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_FINISH = (
    "INSERT INTO staged_result (staging_id, run_id, attempt, windows, levels, rows_read, lake_path,"
    " is_snapshot, staged_at, quality, overflow) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class SqliteTables:
    """The tables in a SQLite file."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path

    def read_run(self, run_id: str) -> Run | None:
        found = self._rows(f"{_RUNS} run_id = ?", run_id)
        return _run_of(found[0]) if found else None

    def read_committed(self, job: str, below: int) -> Run | None:
        found = self._rows(f"{_RUNS} {newest_where(job, below)}")
        return _run_of(found[0]) if found else None

    def read_later(self, job: str, number: int) -> list[Run]:
        return list(map(_run_of, self._rows(f"{_RUNS} {later_where(job, number)} ORDER BY run_number")))

    def read_ledger(self, spans: Sequence[CommitSpan]) -> list[MergedRange]:
        return [MergedRange(*row) for span in spans for row in self._rows(ledger_query([span]))]

    def read_written(self, spans: Sequence[CommitSpan]) -> list[WrittenCount]:
        rows = [row for span in spans for row in self._rows(written_query([span], "batch_ledger", "MIN(committed_at)"))]
        return [written_of(row, datetime.fromisoformat(row[-1])) for row in rows]

    def count_rows(self, table: str, slices: Sequence[Slice], spans: Sequence[CommitSpan]) -> Counter[Place]:
        return total_of(row for query in count_queries(table, slices, spans) for row in self._rows(query))

    def read_checkpoints(self, stream_id: int) -> dict[str, int]:
        return dict(self._rows(_CHECKPOINTS, stream_id))

    def rows(self, of: Aggregate, slices: Sequence[Slice]) -> DataFrame:
        columns = source_columns(of)
        select = f"SELECT {', '.join(map(WORDS.named, columns))} FROM ({as_of.counting(of, WORDS)}) WHERE "
        return self._selected([select + as_of.counted_where(one) for one in slices], schema_of(columns))

    def removed(self, of: Aggregate, spans: Sequence[CommitSpan]) -> DataFrame:
        columns = source_columns(of)
        select = f"SELECT {', '.join(map(WORDS.named, columns))} FROM ({as_of.removed(of, WORDS)}) WHERE "
        return self._selected([select + as_of.removed_where(one) for one in spans], schema_of(columns))

    def rows_of_windows(self, of: Aggregate, windows: Sequence[as_of.Window], cut: Sequence[CommitSpan]) -> DataFrame:
        statements = [as_of.rows_of_windows(of, some, cut, WORDS) for some in as_of.portions(windows)]
        return self._selected(statements, schema_of(source_columns(of)))

    def standing(self, of: Aggregate, windows: Sequence[as_of.Window] | None) -> DataFrame:
        columns = {**window_columns(of), "run_number": "bigint"}
        if windows is None:
            every = f"SELECT {', '.join(map(WORDS.named, columns))} FROM {of.name}"
            return self._selected([every], schema_of(columns))
        statements = [as_of.standing_windows(of, some, WORDS) for some in as_of.portions(windows)]
        return self._selected(statements, schema_of(columns))

    def lineage_rows(self, row_class: type, slices: Sequence[Slice]) -> DataFrame:
        columns = {**LINEAGE_KINDS, **{name: _STORED.get(kind, kind) for name, kind in row_kinds(row_class).items()}}
        select = f"SELECT {', '.join(map(WORDS.named, columns))} FROM {row_table(row_class).name} WHERE "
        return self._selected([select + rows_where(one) for one in slices], schema_of(columns))

    def removed_rows(self, row_class: type, wanted: Sequence[str]) -> DataFrame:
        table = quoted(row_table(row_class).name)
        select = f'SELECT {", ".join(REMOVED_COLUMNS)}, "row" FROM retracted_row WHERE table_name = {table}'
        select += f" AND [row] <> '{ERASED}' AND "
        schema = schema_of({**REMOVED_COLUMNS, "document": "string"})
        return self._selected([f"{select}({one})" for one in wanted], schema)

    def texts(self, row_class: type, slices: Sequence[Slice] | None) -> DataFrame:
        position, columns = position_of(row_class), row_table(row_class).columns
        texts = [f"CAST({WORDS.named(name)} AS TEXT)" for name in columns]
        select = f"SELECT {', '.join([*position, *texts])} FROM {row_table(row_class).name} WHERE "
        wanted = ["1 = 1"] if slices is None else [rows_where(one) for one in slices]
        kinds = {**{name: LINEAGE_KINDS[name] for name in position}, **dict.fromkeys(columns, "string")}
        found = self._selected([select + where for where in wanted], schema_of(kinds))
        return found.select(*position, F.array(*columns).alias("texts"))

    def stage(self, of: Aggregate, windows: DataFrame, staging_id: str, run_id: str) -> None:
        columns = staged_columns(of)
        statement = (
            f"INSERT INTO {of.staged} ({', '.join(map(WORDS.named, columns))}) VALUES ({', '.join('?' * len(columns))})"
            f" ON CONFLICT ({', '.join(map(WORDS.named, ('staging_id', 'slice', *of.key)))}) DO NOTHING"
        )
        rows = staged_form(of, windows, staging_id, run_id, "Z")
        self._write(rows.sortWithinPartitions("slice", *of.key), statement)  # in the order of the table

    def row_hash(self, text: Column) -> Column:
        return F.crc32(text)

    def finish(self, result: Result) -> None:
        staged_at = result.staged_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        place = (result.staging_id, result.run_id)
        facts = [(*place, *fact_values(one)) for one in result.slices]
        figures = (result.attempt, result.windows, result.levels_text, result.rows_read)
        with closing(_open(self._path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(_FACTS, facts)
            how = (result.lake_path, result.is_snapshot, staged_at, result.quality, result.overflow)
            connection.execute(_FINISH, (*place, *figures, *how))
            connection.execute("COMMIT")

    def stage_events(self, events: DataFrame, stream_id: int) -> None:
        self._write(event_form(events, stream_id, "Z"), _STAGE_EVENTS)

    def _write(self, rows: DataFrame, statement: str) -> None:
        rows.mapInArrow(_writer(self._path, statement), "written bigint").agg(F.sum("written")).collect()

    def _selected(self, statements: list[str], schema: str) -> DataFrame:
        """Read the rows of these statements, with a task for each statement."""
        tasks = max(1, len(statements))
        plan = self._spark.createDataFrame([(one,) for one in statements], "statement string")
        return plan.repartition(tasks).mapInArrow(_reader(self._path, schema), schema)

    def _rows(self, statement: str, *values: object) -> list[Any]:
        with closing(_open(self._path)) as connection:
            return connection.execute(statement, values).fetchall()


def _run_of(row: Sequence[Any]) -> Run:
    *values, planned_at = row
    return run_of(values, datetime.fromisoformat(planned_at))


def _reader(path: str, schema: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    names, types = zip(*(column.split() for column in schema.split(", ")), strict=True)

    def read(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        kinds = {
            "string": pa.string(),
            "bigint": pa.int64(),
            "double": pa.float64(),
            "timestamp": pa.timestamp("us", tz="UTC"),
            "date": pa.date32(),
        }
        shape = pa.schema([(name.strip("`"), kinds[kind]) for name, kind in zip(names, types, strict=True)])
        with closing(_open(path)) as connection:
            for batch in batches:
                for statement in batch.column(0).to_pylist():
                    cursor = connection.execute(statement)
                    while rows := cursor.fetchmany(FETCHED):
                        columns = zip(*rows, strict=True)
                        arrays = [_array(pa, column, field.type) for column, field in zip(columns, shape, strict=True)]
                        yield pa.RecordBatch.from_arrays(arrays, schema=shape)

    return read


def _array(pa: Any, column: tuple[Any, ...], kind: Any) -> Any:
    is_text = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
    return pa.array(column, pa.string()).cast(kind) if is_text else pa.array(column, kind)


def _writer(path: str, statement: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def write(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        with closing(_open(path)) as connection:
            for batch in batches:
                rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
                for at in range(0, len(rows), WRITTEN):
                    connection.execute("BEGIN IMMEDIATE")
                    connection.executemany(statement, rows[at : at + WRITTEN])
                    connection.execute("COMMIT")
                yield pa.RecordBatch.from_arrays([pa.array([len(rows)], pa.int64())], names=["written"])

    return write


def _open(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=BUSY, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    return connection

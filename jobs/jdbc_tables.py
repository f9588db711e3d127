"""SQL Server and Azure SQL, which Spark's JDBC source reads and writes with one connection for each slice of rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from core.model.aggregates import EPOCH, Aggregate
from core.model.ports import utc_text
from core.model.rows import ERASED, OURS, row_table
from jobs import as_of
from jobs.quality import COUNT_COLUMNS, WRITTEN_COLUMNS, count_queries, total_of, written_of, written_query
from jobs.ranges import CommitSpan, MergedRange, Place, Slice, WrittenCount
from jobs.row_texts import LINEAGE_KINDS, kinds_of, row_kinds
from jobs.sign_in import SignIn
from jobs.tables import (
    EVENT_KEY,
    LEDGER_COLUMNS,
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
    staged_form,
)
from jobs.transforms import schema_of, source_columns, window_columns

TIMES = ("timestamp", "date")
MICROS = "CONVERT(bigint, DATEDIFF_BIG(microsecond, CONVERT(datetime2(7), '1970-01-01'), {}))"
BY_CODE_POINT = " COLLATE Latin1_General_100_BIN2"
_SENT = {"string": "nvarchar(max)", "bigint": "bigint", "timestamp": "varchar(40)", "date": "varchar(40)"}
_MEMBERS = {
    "string": f"j.[{{}}]{BY_CODE_POINT}",  # a text of a document has the database's collation, ids have this one
    "bigint": "j.[{}]",
    "timestamp": "CONVERT(datetime2(7), j.[{}], 127)",  # with a T and a Z
    "date": "CONVERT(date, j.[{}], 23)",
}


@dataclass(frozen=True, slots=True)
class ServerWords:
    """The SQL of SQL Server; tests name that of their stand-in.

    An instant never travels as a JDBC timestamp, because Java reads that in the time zone of its machine. `members`:
    columns of a removed row by their type in Spark; `instant`: a literal from its text or its microseconds.
    """

    prefix: str = "hubledger."
    join: str = "INNER JOIN"
    micros: str = MICROS
    name: str = "[{}]"
    opened: str = "CROSS APPLY OPENJSON(r.[row]) WITH ({}) AS j"
    members: Mapping[str, str] = field(default_factory=lambda: _MEMBERS)
    instant: str = "CONVERT(datetime2(7), '{text}', 126)"
    text: str = "N{}"
    by_code_point: str = BY_CODE_POINT

    def named(self, column: str) -> str:
        return self.name.format(column)

    def sent(self, value: str, column: str, kind: str) -> str:
        if kind in TIMES:
            return f"{self.micros.format(value)} AS {self.named(f'{OURS}{column}')}"
        return f"{value} AS {self.named(column)}"

    def documents(self, columns: Mapping[str, str]) -> str:
        typed = (f"""{self.named(name)} {_SENT[kind]} '$."{name}"'""" for name, kind in columns.items())
        return self.opened.format(", ".join(typed))

    def member(self, column: str, kind: str) -> str:
        return self.members[kind].format(column)

    def places(self, cut: Sequence[CommitSpan]) -> str:
        rows = ", ".join(f"({one.stream_id}, {quoted(one.partition_id)}, {one.up_to})" for one in cut)
        return f"(VALUES {rows}) AS c (stream_id, partition_id, up_to)"

    def wanted(self, kinds: Mapping[str, str], windows: Sequence[Mapping[str, Any]]) -> str:
        rows = (", ".join(self._literal(one[name], kind) for name, kind in kinds.items()) for one in windows)
        values = ", ".join(f"({row})" for row in rows)
        return f"(VALUES {values}) AS k ({', '.join(map(self.named, kinds))})"

    def same(self, column: str, wanted: str, kind: str) -> str:
        return f"{column} = {wanted}{self.by_code_point if kind == 'string' else ''}"

    def _literal(self, value: Any, kind: str) -> str:
        if kind in ("string", "ascii"):  # the column itself is converted where it has bytes and the literal has not
            return quoted(value) if kind == "ascii" and value.isascii() else self.text.format(quoted(value))
        if kind == "timestamp":
            text, micros = utc_text(value)[:-1], (value - EPOCH) // timedelta(microseconds=1)
            return self.instant.format(text=text, micros=micros)
        return f"CONVERT(date, '{value.date().isoformat()}', 23)" if kind == "date" else str(value)


SPANS = 50  # partitions of one query of the ledger
WRITERS = 8  # connections that stage at the same time
_FACTS = (
    "staging_id string, run_id string, level string, slice int, windows bigint, whole_windows bigint, rows_hash bigint"
)
_RESULT = (
    "staging_id string, run_id string, attempt int, windows bigint, levels string, rows_read bigint, is_snapshot int,"
    " staged_at string, quality string"
)
_SNAPSHOTS = "(SELECT name, is_read_committed_snapshot_on FROM sys.databases WHERE database_id = DB_ID()) r"


class NoSnapshots(Exception):
    """A statement of the database does not read one moment."""


class JdbcTables:
    """The tables on a server."""

    def __init__(self, spark: SparkSession, url: str, sign_in: SignIn, words: ServerWords | None = None) -> None:
        self._spark = spark
        self._url = url
        self._sign_in = sign_in
        self._words = words or ServerWords()

    def require_snapshots(self) -> None:
        """Raise NoSnapshots unless each statement reads one moment: then a row that a replay moves is read once."""
        found = self._spark.read.jdbc(self._url, _SNAPSHOTS, properties=self._properties())
        name, is_on = found.collect()[0]
        if not is_on:
            raise NoSnapshots(
                f"the database {name} does not read row versions, so a job may miss rows that a replay moves:"
                f" run ALTER DATABASE [{name}] SET READ_COMMITTED_SNAPSHOT ON, and submit the job again"
            )

    def read_run(self, run_id: str) -> Run | None:
        found = self._runs(f"run_id = {quoted(run_id)}")
        return found[0] if found else None

    def read_committed(self, job: str, below: int) -> Run | None:
        found = self._runs(newest_where(job, below, f"{self._words.prefix}aggregation_run"))
        return found[0] if found else None

    def read_later(self, job: str, number: int) -> list[Run]:
        return sorted(self._runs(later_where(job, number)), key=lambda run: run.run_number)

    def read_ledger(self, spans: Sequence[CommitSpan]) -> list[MergedRange]:
        table, names = self._words.prefix + "batch_ledger", LEDGER_COLUMNS.split(", ")
        ranges: list[MergedRange] = []
        for at in range(0, len(spans), SPANS):
            rows = self._answer(ledger_query(spans[at : at + SPANS], table), names)
            ranges += [MergedRange(*row) for row in rows]
        return ranges

    def read_written(self, spans: Sequence[CommitSpan]) -> list[WrittenCount]:
        ledger, first_at = f"{self._words.prefix}batch_ledger", self._words.micros.format("MIN(committed_at)")
        queries = [written_query(spans[at : at + SPANS], ledger, first_at) for at in range(0, len(spans), SPANS)]
        rows = [row for query in queries for row in self._answer(query, WRITTEN_COLUMNS.split(", "))]
        return [written_of(row, EPOCH + timedelta(microseconds=row[-1])) for row in rows]

    def count_rows(self, table: str, slices: Sequence[Slice], spans: Sequence[CommitSpan]) -> Counter[Place]:
        row = self._words.name.format("row")
        queries = count_queries(table, slices, spans, self._words.prefix, row)
        return total_of(row for query in queries for row in self._answer(query, COUNT_COLUMNS.split(", ")))

    def read_checkpoints(self, stream_id: int) -> dict[str, int]:
        columns = "partition_id, sequence_number, stream_id"
        found = self._selected("event_hub_checkpoint", columns, [f"stream_id = {stream_id}"])
        return {row[0]: row[1] for row in found.collect()}

    def rows(self, of: Aggregate, slices: Sequence[Slice]) -> DataFrame:
        letters = f"{self._words.prefix}event_hub_dead_letter"
        found = self._read(as_of.counting(of, self._words), [as_of.counted_where(one, letters) for one in slices])
        return _decoded(found, source_columns(of))

    def removed(self, of: Aggregate, spans: Sequence[CommitSpan]) -> DataFrame:
        found = self._read(as_of.removed(of, self._words), [as_of.removed_where(one) for one in spans])
        return _decoded(found, source_columns(of))

    def rows_of_windows(self, of: Aggregate, windows: Sequence[as_of.Window], cut: Sequence[CommitSpan]) -> DataFrame:
        queries = [as_of.rows_of_windows(of, some, cut, self._words) for some in as_of.portions(windows)]
        return self._union(queries, source_columns(of))

    def standing(self, of: Aggregate, windows: Sequence[as_of.Window] | None) -> DataFrame:
        columns = {**window_columns(of), "run_number": "bigint"}
        if windows is None:
            return self._typed(of.name, columns, ["1 = 1"])
        return self._union([as_of.standing_windows(of, some, self._words) for some in as_of.portions(windows)], columns)

    def lineage_rows(self, row_class: type, slices: Sequence[Slice]) -> DataFrame:
        wanted = [rows_where(one, f"{self._words.prefix}event_hub_dead_letter") for one in slices]
        return self._typed(row_table(row_class).name, {**LINEAGE_KINDS, **row_kinds(row_class)}, wanted)

    def removed_rows(self, row_class: type, wanted: Sequence[str]) -> DataFrame:
        table, row = quoted(row_table(row_class).name), self._words.name.format("row")
        names = f"{', '.join(REMOVED_COLUMNS)}, table_name, {row} AS document"
        rows = f"table_name = {table} AND document <> '{ERASED}'"
        found = self._selected("retracted_row", names, [f"{rows} AND ({one})" for one in wanted])
        return found.select(*(F.col(name).cast(kind) for name, kind in REMOVED_COLUMNS.items()), "document")

    def texts(self, row_class: type, slices: Sequence[Slice] | None) -> DataFrame:
        position, kinds, named = position_of(row_class), kinds_of(row_class), self._words.named
        lineage = "stream_id, partition_id, sequence_number, ordinal, commit_number, " if position else ""
        columns = [self._micros(name) if kind is datetime else named(name) for name, kind in kinds.items()]
        wanted = ["1 = 1"] if slices is None else [rows_where(one) for one in slices]
        found = self._selected(row_table(row_class).name, lineage + ", ".join(columns), wanted)
        return found.select(*position, F.array(*(_text(*column) for column in kinds.items())).alias("texts"))

    def stage(self, of: Aggregate, windows: DataFrame, staging_id: str, run_id: str) -> None:
        """Write windows that are computed already, so that every connection of the writers has a fresh token."""
        self._append(staged_form(of, windows, staging_id, run_id, "").coalesce(WRITERS), of.staged)

    def row_hash(self, text: Column) -> Column:
        digest = F.sha2(F.encode(text, "UTF-16LE"), 256)
        return F.conv(F.substring(digest, 1, 8), 16, 10).cast("bigint")

    def finish(self, result: Result) -> None:
        staged_at = result.staged_at.strftime("%Y-%m-%dT%H:%M:%S.%f")
        place = (result.staging_id, result.run_id)
        facts = [(*place, *fact_values(one)) for one in result.slices]
        self._append(self._spark.createDataFrame(facts, _FACTS).coalesce(1), "staged_slice")
        figures = (result.attempt, result.windows, result.levels_text, result.rows_read)
        row = (*place, *figures, int(result.is_snapshot), staged_at, result.quality)
        rows = self._spark.createDataFrame([row], _RESULT).coalesce(1)
        for name in ("lake_path", "overflow"):
            if (text := getattr(result, name)) is not None:  # drivers differ in how they send a text without a value
                rows = rows.withColumn(name, F.lit(text))
        self._append(rows, "staged_result")

    def stage_events(self, events: DataFrame, stream_id: int) -> None:
        """Stage the events that the table lacks; its key refuses those that a different job stages at the same time."""
        standing = self._selected("staged_event", ", ".join(EVENT_KEY), [f"stream_id = {stream_id}"])
        new = event_form(events, stream_id, "").join(standing, list(EVENT_KEY), "left_anti")
        self._append(new.coalesce(WRITERS), "staged_event")

    def _runs(self, where: str) -> list[Run]:
        columns = f"{RUN_COLUMNS}, {self._micros('planned_at')}"
        found = self._selected("aggregation_run", columns, [where]).collect()
        return [run_of(values, EPOCH + timedelta(microseconds=micros)) for *values, micros in found]

    def _typed(self, table: str, columns: Mapping[str, str], wanted: Sequence[str]) -> DataFrame:
        """Read columns of a table, given with their types; instants and days travel as microseconds."""
        sent = [self._words.sent(self._words.named(name), name, kind) for name, kind in columns.items()]
        return _decoded(self._selected(table, ", ".join(sent), wanted), columns)

    def _micros(self, column: str) -> str:
        return self._words.sent(self._words.named(column), column, "timestamp")

    def _selected(self, table: str, columns: str, wanted: Sequence[str]) -> DataFrame:
        """Read rows of a table, with a task for each condition and lower-case names; no condition gives no row."""
        return self._read(f"SELECT {columns} FROM {self._words.prefix}{table}", wanted)

    def _union(self, queries: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
        none = self._spark.createDataFrame([], schema_of(columns))
        found = (_decoded(self._read(query, ["1 = 1"]), columns) for query in queries)
        return reduce(DataFrame.unionByName, found, none)

    def _read(self, query: str, wanted: Sequence[str]) -> DataFrame:
        found = self._spark.read.jdbc(
            self._url, f"({query}) r", predicates=list(wanted) or ["1 = 0"], properties=self._properties()
        )
        return found.toDF(*(name.lower() for name in found.columns))

    def _answer(self, query: str, names: Sequence[str]) -> list[Any]:
        found = self._spark.read.jdbc(self._url, f"({query}) r", properties=self._properties())
        return [tuple(row) for row in found.toDF(*(name.lower() for name in found.columns)).select(*names).collect()]

    def _properties(self) -> dict[str, str]:
        return {"fetchsize": "10000", "batchsize": "10000", **self._sign_in()}

    def _append(self, rows: DataFrame, table: str) -> None:
        rows.write.jdbc(self._url, f"{self._words.prefix}{table}", mode="append", properties=self._properties())


def _decoded(found: DataFrame, columns: Mapping[str, str]) -> DataFrame:
    return found.select(*(_of_kind(name, kind) for name, kind in columns.items()))


def _of_kind(name: str, kind: str) -> Any:
    found = F.timestamp_micros(f"{OURS}{name}") if kind in TIMES else F.col(name)
    return found.cast(kind).alias(name)


def _text(name: str, kind: type) -> Any:
    if kind is datetime:
        return F.concat(F.date_format(F.timestamp_micros(f"{OURS}{name}"), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit("Z"))
    return (F.col(name).cast("int") if kind is bool else F.col(name)).cast("string")

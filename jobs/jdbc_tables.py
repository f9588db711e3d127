"""SQL Server and Azure SQL, which Spark's JDBC source reads and writes with one connection for each slice of rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from core.model.aggregates import EPOCH, Aggregate
from core.model.rows import row_table
from jobs.counts import COUNT_COLUMNS, WRITTEN_COLUMNS, count_queries, total_of, written_of, written_query
from jobs.ranges import CommitSpan, LedgerRange, Place, Slice, Written
from jobs.row_texts import kinds_of
from jobs.sign_in import SignIn
from jobs.tables import (
    EVENT_KEY,
    LEDGER_COLUMNS,
    RUN_COLUMNS,
    Result,
    Run,
    event_form,
    ledger_query,
    position_of,
    quoted,
    retracted_where,
    rows_where,
    staged_form,
)
from jobs.transforms import place_columns, source_columns, window_columns

SPANS = 50  # partitions of one query of the ledger
WRITERS = 8  # connections that stage at the same time
_TIMES = ("timestamp", "date")
_FACTS = (
    "staging_id string, run_id string, slice int, windows bigint, whole_windows bigint, sums string, rows_hash bigint"
)
_RESULT = (
    "staging_id string, run_id string, attempt int, windows bigint, rows_read bigint, is_snapshot int,"
    " staged_at string, quality string"
)
MICROS = "CONVERT(bigint, DATEDIFF_BIG(microsecond, CONVERT(datetime2(7), '1970-01-01'), {}))"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The SQL that differs between servers: the prefix of tables, an instant in microseconds since 1970, a JSON member.

    An instant never travels as a JDBC timestamp, because Java reads that in the time zone of its machine.
    """

    prefix: str = "hubledger."
    micros: str = MICROS
    members: str = "JSON_VALUE(row, '$.{}')"


class JdbcTables:
    """The tables on a server."""

    def __init__(self, spark: SparkSession, url: str, sign_in: SignIn, dialect: Dialect | None = None) -> None:
        self._spark = spark
        self._url = url
        self._sign_in = sign_in
        self._dialect = dialect or Dialect()

    def read_run(self, run_id: str) -> Run | None:
        found = self._rows("aggregation_run", RUN_COLUMNS, [f"run_id = {quoted(run_id)}"])
        return Run(*found[0]) if found else None

    def read_cut(self, job: str) -> str:
        found = self._rows("aggregation_cut", "cut, job", [f"job = {quoted(job)}"])
        return str(found[0][0]) if found else "{}"

    def read_ledger(self, spans: Sequence[CommitSpan]) -> list[LedgerRange]:
        table, names = self._dialect.prefix + "batch_ledger", LEDGER_COLUMNS.split(", ")
        ranges: list[LedgerRange] = []
        for at in range(0, len(spans), SPANS):
            rows = self._answer(ledger_query(spans[at : at + SPANS], table), names)
            ranges += [LedgerRange(*row) for row in rows]
        return ranges

    def read_written(self, spans: Sequence[CommitSpan]) -> list[Written]:
        ledger, first_at = f"{self._dialect.prefix}batch_ledger", self._dialect.micros.format("MIN(committed_at)")
        queries = [written_query(spans[at : at + SPANS], ledger, first_at) for at in range(0, len(spans), SPANS)]
        rows = [row for query in queries for row in self._answer(query, WRITTEN_COLUMNS.split(", "))]
        return [written_of(row, EPOCH + timedelta(microseconds=row[-1])) for row in rows]

    def count_rows(self, table: str, slices: Sequence[Slice], spans: Sequence[CommitSpan]) -> Counter[Place]:
        queries = count_queries(table, slices, spans, self._dialect.prefix)
        return total_of(row for query in queries for row in self._answer(query, COUNT_COLUMNS.split(", ")))

    def read_checkpoints(self, stream_id: int) -> dict[str, int]:
        columns = "partition_id, sequence_number, stream_id"
        return {row[0]: row[1] for row in self._rows("event_hub_checkpoint", columns, [f"stream_id = {stream_id}"])}

    def rows(self, of: Aggregate, slices: Sequence[Slice]) -> DataFrame:
        letters = f"{self._dialect.prefix}event_hub_dead_letter"
        wanted = [rows_where(one, letters) for one in slices]
        lineage = "stream_id, partition_id, sequence_number, commit_number, "
        return self._typed(row_table(of.source).name, source_columns(of), wanted, lineage)

    def retracted(self, of: Aggregate, replays: Sequence[LedgerRange]) -> DataFrame:
        columns = place_columns(of)
        members = ", ".join(f"{self._dialect.members.format(name)} AS {name}" for name in columns)
        lineage = "stream_id, partition_id, commit_number, table_name"
        found = self._selected("retracted_row", f"{lineage}, {members}", [retracted_where(of, one) for one in replays])
        return found.select(*(F.col(name).cast(kind).alias(name) for name, kind in columns.items()))

    def windows(self, of: Aggregate) -> DataFrame:
        return self._typed(of.name, window_columns(of), ["1 = 1"])

    def texts(self, row_class: type, slices: Sequence[Slice] | None) -> DataFrame:
        position, kinds = position_of(row_class), kinds_of(row_class)
        lineage = "stream_id, partition_id, sequence_number, ordinal, commit_number, " if position else ""
        columns = [self._micros(name) if kind is datetime else name for name, kind in kinds.items()]
        wanted = ["1 = 1"] if slices is None else [rows_where(one) for one in slices]
        found = self._selected(row_table(row_class).name, lineage + ", ".join(columns), wanted)
        return found.select(*position, F.array(*(_text(*column) for column in kinds.items())).alias("texts"))

    def staged(self, of: Aggregate, staging_id: str) -> DataFrame:
        where = [f"staging_id = {quoted(staging_id)}"]
        return self._typed(of.staged, window_columns(of), where, "staging_id, ")

    def stage(self, of: Aggregate, windows: DataFrame, staging_id: str, run_id: str) -> None:
        """Write windows that are computed already, so that every connection of the writers has a fresh token."""
        self._append(staged_form(of, windows, staging_id, run_id, "").coalesce(WRITERS), of.staged)

    def row_hash(self, text: Column) -> Column:
        digest = F.sha2(F.encode(text, "UTF-16LE"), 256)
        return F.conv(F.substring(digest, 1, 8), 16, 10).cast("bigint")

    def finish(self, result: Result) -> None:
        staged_at = result.staged_at.strftime("%Y-%m-%dT%H:%M:%S.%f")
        place = (result.staging_id, result.run_id)
        facts = [(*place, one.number, one.windows, one.whole_windows, one.sums, one.rows_hash) for one in result.slices]
        self._append(self._spark.createDataFrame(facts, _FACTS).coalesce(1), "staged_slice")
        row = (
            *place,
            result.attempt,
            result.windows,
            result.rows_read,
            int(result.is_snapshot),
            staged_at,
            result.quality,
        )
        rows = self._spark.createDataFrame([row], _RESULT).coalesce(1)
        if result.lake_path is not None:  # drivers differ in how they send a text without a value
            rows = rows.withColumn("lake_path", F.lit(result.lake_path))
        self._append(rows, "staged_result")

    def stage_events(self, events: DataFrame, stream_id: int) -> None:
        """Stage the events that the table lacks; its key refuses those that a different job stages at the same time."""
        standing = self._selected("staged_event", ", ".join(EVENT_KEY), [f"stream_id = {stream_id}"])
        new = event_form(events, stream_id, "").join(standing, list(EVENT_KEY), "left_anti")
        self._append(new.coalesce(WRITERS), "staged_event")

    def _typed(self, table: str, columns: Mapping[str, str], wanted: Sequence[str], before: str = "") -> DataFrame:
        """Read columns of a table, given with their types; instants and days travel as microseconds."""
        sent = [self._micros(name) if kind in _TIMES else name for name, kind in columns.items()]
        found = self._selected(table, before + ", ".join(sent), wanted)
        return found.select(*(_of_kind(name, kind) for name, kind in columns.items()))

    def _micros(self, column: str) -> str:
        return f"{self._dialect.micros.format(column)} AS {column}_micros"

    def _selected(self, table: str, columns: str, wanted: Sequence[str]) -> DataFrame:
        """Read rows of a table, with a task for each condition and lower-case names; no condition gives no row."""
        source = f"(SELECT {columns} FROM {self._dialect.prefix}{table}) r"
        found = self._spark.read.jdbc(
            self._url, source, predicates=list(wanted) or ["1 = 0"], properties=self._properties()
        )
        return found.toDF(*(name.lower() for name in found.columns))

    def _rows(self, table: str, columns: str, wanted: Sequence[str]) -> list[Any]:
        return [tuple(row) for row in self._selected(table, columns, wanted).select(*columns.split(", ")).collect()]

    def _answer(self, query: str, names: Sequence[str]) -> list[Any]:
        found = self._spark.read.jdbc(self._url, f"({query}) r", properties=self._properties())
        return [tuple(row) for row in found.toDF(*(name.lower() for name in found.columns)).select(*names).collect()]

    def _properties(self) -> dict[str, str]:
        return {"fetchsize": "10000", "batchsize": "10000", **self._sign_in()}

    def _append(self, rows: DataFrame, table: str) -> None:
        rows.write.jdbc(self._url, f"{self._dialect.prefix}{table}", mode="append", properties=self._properties())


def _of_kind(name: str, kind: str) -> Any:
    found = F.timestamp_micros(f"{name}_micros") if kind in _TIMES else F.col(name)
    return found.cast(kind).alias(name)


def _text(name: str, kind: type) -> Any:
    if kind is datetime:
        return F.concat(F.date_format(F.timestamp_micros(f"{name}_micros"), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit("Z"))
    return (F.col(name).cast("int") if kind is bool else F.col(name)).cast("string")

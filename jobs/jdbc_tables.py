"""SQL Server and Azure SQL, which Spark's JDBC source reads and writes with one connection for each slice of rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from core.model.rows import row_table
from jobs.ranges import CommitSpan, LedgerRange, Slice
from jobs.row_texts import kinds_of
from jobs.sign_in import SignIn
from jobs.tables import (
    EVENT_KEY,
    LEDGER_COLUMNS,
    Result,
    Run,
    event_form,
    ledger_query,
    position_of,
    quoted,
    readings_where,
    retracted_where,
    staged_form,
)
from jobs.transforms import KEY, VALUES

SPANS = 50  # partitions of one query of the ledger
WRITERS = 8  # connections that stage at the same time
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
        columns = "run_id, run_number, cut_from, cut_to, attempt, status"
        found = self._rows("aggregation_run", columns, [f"run_id = {quoted(run_id)}"])
        return Run(*found[0]) if found else None

    def read_cut(self, job: str) -> str:
        found = self._rows("aggregation_cut", "cut, job", [f"job = {quoted(job)}"])
        return str(found[0][0]) if found else "{}"

    def read_ledger(self, spans: Sequence[CommitSpan]) -> list[LedgerRange]:
        table, names = self._dialect.prefix + "batch_ledger", LEDGER_COLUMNS.split(", ")
        ranges: list[LedgerRange] = []
        for at in range(0, len(spans), SPANS):
            source = f"({ledger_query(spans[at : at + SPANS], table)}) r"
            found = self._spark.read.jdbc(self._url, source, properties=self._properties())
            rows = found.toDF(*(name.lower() for name in found.columns)).select(*names).collect()
            ranges += [LedgerRange(*row) for row in rows]
        return ranges

    def read_checkpoints(self, stream_id: int) -> dict[str, int]:
        columns = "partition_id, sequence_number, stream_id"
        return {row[0]: row[1] for row in self._rows("event_hub_checkpoint", columns, [f"stream_id = {stream_id}"])}

    def readings(self, slices: Sequence[Slice]) -> DataFrame:
        letters = f"{self._dialect.prefix}event_hub_dead_letter"
        wanted = [readings_where(one, letters) for one in slices]
        columns = (
            "stream_id, partition_id, sequence_number, commit_number, home_id, kind, state, ppm,"
            f" {self._micros('observed_at')}"
        )
        found = self._selected("sensor_reading", columns, wanted)
        return found.select(
            "home_id", "kind", "state", F.col("ppm").cast("bigint").alias("ppm"), _instant("observed_at")
        )

    def retracted(self, replays: Sequence[LedgerRange]) -> DataFrame:
        member = self._dialect.members.format
        columns = (
            f"stream_id, partition_id, commit_number, table_name, {member('home_id')} AS home_id,"
            f" {member('kind')} AS kind, {member('observed_at')} AS observed_at"
        )
        found = self._selected("retracted_row", columns, [retracted_where(one) for one in replays])
        return found.select("home_id", "kind", F.to_timestamp("observed_at").alias("observed_at"))

    def activity(self) -> DataFrame:
        return self._windows("home_activity", "1 = 1")

    def texts(self, row_class: type, slices: Sequence[Slice] | None) -> DataFrame:
        position, kinds = position_of(row_class), kinds_of(row_class)
        lineage = "stream_id, partition_id, sequence_number, ordinal, commit_number, " if position else ""
        columns = [self._micros(name) if kind is datetime else name for name, kind in kinds.items()]
        wanted = ["1 = 1"] if slices is None else [readings_where(one) for one in slices]
        found = self._selected(row_table(row_class).name, lineage + ", ".join(columns), wanted)
        return found.select(*position, F.array(*(_text(*column) for column in kinds.items())).alias("texts"))

    def staged(self, staging_id: str) -> DataFrame:
        return self._windows("home_activity_staging", f"staging_id = {quoted(staging_id)}").distinct()

    def stage(self, windows: DataFrame, staging_id: str, run_id: str) -> None:
        """Write windows after all of them are computed, so that every connection of the writers has a fresh token."""
        rows = staged_form(windows, staging_id, run_id, "").persist()
        rows.count()
        self._append(rows.coalesce(WRITERS), "home_activity_staging")
        rows.unpersist()

    def finish(self, result: Result) -> None:
        staged_at = result.staged_at.strftime("%Y-%m-%dT%H:%M:%S.%f")
        row = (result.staging_id, result.run_id, result.attempt, int(result.is_snapshot), staged_at)
        schema = "staging_id string, run_id string, attempt int, is_snapshot int, staged_at string"
        rows = self._spark.createDataFrame([row], schema).coalesce(1)
        if result.lake_path is not None:  # drivers differ in how they send a text without a value
            rows = rows.withColumn("lake_path", F.lit(result.lake_path))
        self._append(rows, "aggregation_staging")

    def stage_events(self, events: DataFrame, stream_id: int) -> None:
        """Stage the events that the table lacks; its key refuses those that a different job stages at the same time."""
        standing = self._selected("staged_event", ", ".join(EVENT_KEY), [f"stream_id = {stream_id}"])
        new = event_form(events, stream_id, "").join(standing, list(EVENT_KEY), "left_anti")
        self._append(new.coalesce(WRITERS), "staged_event")

    def _windows(self, table: str, where: str) -> DataFrame:
        instants = ("window_start", "first_observed_at", "last_observed_at")
        columns = [self._micros(name) if name in instants else name for name in [*KEY, *VALUES]]
        keys = "" if table == "home_activity" else ", staging_id"
        found = self._selected(table, ", ".join(columns) + keys, [where])
        return found.select(*(_instant(name) if name in instants else F.col(name) for name in [*KEY, *VALUES]))

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

    def _properties(self) -> dict[str, str]:
        return {"fetchsize": "10000", "batchsize": "10000", **self._sign_in()}

    def _append(self, rows: DataFrame, table: str) -> None:
        rows.write.jdbc(self._url, f"{self._dialect.prefix}{table}", mode="append", properties=self._properties())


def _instant(name: str) -> Any:
    return F.timestamp_micros(f"{name}_micros").alias(name)


def _text(name: str, kind: type) -> Any:
    if kind is datetime:
        return F.concat(F.date_format(F.timestamp_micros(f"{name}_micros"), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit("Z"))
    return (F.col(name).cast("int") if kind is bool else F.col(name)).cast("string")

"""The tables of a store as a job sees them: reading and writing, and nothing else, stay behind this door."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from core.model.rows import row_table
from core.remote.spark.jdbc import jdbc_address
from jobs.ranges import CommitSpan, LedgerRange, Slice
from jobs.transforms import KEY, VALUES

EMBEDDED, JDBC = "sqlite:", "jdbc:"
OPEN = ("submitting", "submitted")
LEDGER_COLUMNS = (
    "stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number, rows_written"
)
EVENT_KEY = ("stream_id", "partition_id", "sequence_number")
EVENT_COLUMNS = (*EVENT_KEY, "offset_token", "enqueued_at", "partition_key", "properties", "body")
STAGED_COLUMNS = ("staging_id", "run_id", *KEY, "is_whole", *VALUES)


@dataclass(frozen=True, slots=True)
class Run:
    """A row of aggregation_run."""

    run_id: str
    run_number: int
    cut_from: str
    cut_to: str
    attempt: int
    status: str


@dataclass(frozen=True, slots=True)
class Result:
    """What one execution of a job stages, under an id that no other one has; `lake_path` is where it is in the lake."""

    staging_id: str
    run_id: str
    attempt: int
    lake_path: str | None
    is_snapshot: bool
    staged_at: datetime


class Tables(Protocol):
    """A store. DataFrames have the columns of `jobs/transforms.py`, with instants as timestamps."""

    def read_run(self, run_id: str) -> Run | None:
        """A run, or None."""
        ...

    def read_cut(self, job: str) -> str:
        """Where a job stands; "{}" before its first run."""
        ...

    def read_ledger(self, spans: Sequence[CommitSpan]) -> list[LedgerRange]:
        """The commits of these spans."""
        ...

    def read_checkpoints(self, stream_id: int) -> dict[str, int]:
        """How far each partition of a stream is committed."""
        ...

    def readings(self, slices: Sequence[Slice]) -> DataFrame:
        """The sensor readings of these slices, a task for each."""
        ...

    def retracted(self, replays: Sequence[LedgerRange]) -> DataFrame:
        """Home, kind and time of the readings that these replays took away."""
        ...

    def activity(self) -> DataFrame:
        """What stands in home_activity."""
        ...

    def texts(self, row_class: type, slices: Sequence[Slice] | None) -> DataFrame:
        """Rows of a class, all for None: position (but for states), and `texts` as `jobs/row_texts.py` has them."""
        ...

    def staged(self, staging_id: str) -> DataFrame:
        """What is staged under an id, each window once, though a task may have written it twice."""
        ...

    def stage(self, windows: DataFrame, staging_id: str, run_id: str) -> None:
        """Write windows under an id of their own; they count for nothing before `finish`."""
        ...

    def finish(self, result: Result) -> None:
        """Say that a result is whole: the last thing that a job writes."""
        ...

    def stage_events(self, events: DataFrame, stream_id: int) -> None:
        """Keep events, as `jobs/capture.py` has them, for a replay; one that is there already stays as it is."""
        ...


def open_tables(spark: SparkSession, store: str) -> Tables:
    """The tables of `sqlite:PATH`, a JDBC address, or an ODBC connection string; ValueError for anything else."""
    if store.startswith(EMBEDDED):
        from jobs.sqlite_tables import SqliteTables

        return SqliteTables(spark, store.removeprefix(EMBEDDED))
    from jobs.jdbc_tables import JdbcTables, sign_in

    if store.startswith(JDBC):
        return JdbcTables(spark, store, sign_in(None, None))
    address = jdbc_address(store)
    return JdbcTables(spark, address.url, sign_in(address.user, address.password))


def readings_where(one: Slice, letters: str = "event_hub_dead_letter") -> str:
    """The rows of a slice, in SQL that every engine has; its numbers and ids are ours, none is typed by a person."""
    place = f"stream_id = {one.stream_id} AND partition_id = {quoted(one.partition_id)}"
    span = f"sequence_number BETWEEN {one.first} AND {one.last}"
    rows = f"{place} AND {span} AND commit_number > {one.after} AND commit_number <= {one.up_to}"
    if not one.letters_only:
        return rows
    return f"{rows} AND sequence_number IN (SELECT sequence_number FROM {letters} WHERE {place} AND {span})"


def commits_where(span: CommitSpan) -> str:
    """The ledger rows of a span."""
    place = f"stream_id = {span.stream_id} AND partition_id = {quoted(span.partition_id)}"
    return f"{place} AND commit_number > {span.after} AND commit_number <= {span.up_to}"


def position_of(row_class: type) -> tuple[str, ...]:
    """The columns that say where a row is from; a state is from wherever its newest event was."""
    return () if row_table(row_class).key else ("partition_id", "sequence_number", "ordinal")


def retracted_where(replay: LedgerRange) -> str:
    """The retracted readings of a replay."""
    place = f"stream_id = {replay.stream_id} AND partition_id = {quoted(replay.partition_id)}"
    return f"{place} AND commit_number = {replay.commit_number} AND table_name = 'sensor_reading'"


def quoted(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def staged_form(windows: DataFrame, staging_id: str, run_id: str, zone: str) -> DataFrame:
    """Windows as rows of the staging table: instants as ISO text with six digits, and `zone` behind them."""
    instant = {name: _written(name, zone) for name in ("window_start", "first_observed_at", "last_observed_at")}
    named = {
        "staging_id": F.lit(staging_id),
        "run_id": F.lit(run_id),
        "is_whole": F.col("is_whole").cast("int"),
        **instant,
    }
    return windows.select(*(named.get(name, F.col(name)).alias(name) for name in STAGED_COLUMNS))


def event_form(events: DataFrame, stream_id: int, zone: str) -> DataFrame:
    """Events as rows of the table of staged ones."""
    named = {"stream_id": F.lit(stream_id), "enqueued_at": _written("enqueued_at", zone)}
    return events.select(*(named.get(name, F.col(name)).alias(name) for name in EVENT_COLUMNS))


def _written(name: str, zone: str) -> Column:
    return F.concat(F.date_format(name, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit(zone))

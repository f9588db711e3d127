"""The tables of a store for the jobs: all reading and writing of SQL, and nothing else."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from core.aggregation.runs import ALL_DAYS, Days, RunKind
from core.model.aggregates import SLICES, Aggregate
from core.model.rows import row_table
from jobs.ranges import NUMBERS_EACH, CommitSpan, MergedRange, Place, Slice, WrittenCount, checkpoints_of
from jobs.transforms import SliceFacts

OPEN = ("submitting", "submitted")
LEDGER_COLUMNS = (
    "stream_id, partition_id, commit_number, kind, first_sequence_number, last_sequence_number, rows_written"
)
# Adjacent batches become one range, so that a ledger of millions of commits never reaches the driver.
_MERGED = """
SELECT m.stream_id, m.partition_id, MAX(m.commit_number) AS commit_number, m.kind,
       MIN(m.first_sequence_number) AS first_sequence_number, MAX(m.last_sequence_number) AS last_sequence_number,
       SUM(CAST(m.rows_written AS bigint)) AS rows_written
  FROM (SELECT {columns},
               CASE WHEN kind = 'batch' THEN first_sequence_number / {each} ELSE -commit_number END AS part
          FROM ({ranges}) AS l) AS m
 GROUP BY m.stream_id, m.partition_id, m.kind, m.part
"""
# Of ledger rows that were purged, the checkpoint has the range; a row for each number is a guess.
_PURGED = """
SELECT stream_id, partition_id, commit_number, 'batch' AS kind, first_sequence_number, last_sequence_number,
       last_sequence_number - first_sequence_number + 1 AS rows_written
  FROM (SELECT stream_id, partition_id, purged_commit AS commit_number, first_sequence_number,
               purged_to AS last_sequence_number
          FROM {checkpoints}) AS k
 WHERE {where}
"""
EVENT_KEY = ("stream_id", "partition_id", "sequence_number")
EVENT_COLUMNS = (*EVENT_KEY, "offset_token", "enqueued_at", "partition_key", "properties", "body")
REMOVED_COLUMNS = {  # of retracted_row: `commit_number` is that of the replay
    "stream_id": "bigint",
    "partition_id": "string",
    "sequence_number": "bigint",
    "ordinal": "bigint",
    "row_commit_number": "bigint",
    "commit_number": "bigint",
}
RUN_COLUMNS = (
    "run_id, job, run_number, cut_from, cut_to, attempt, status, committed_slices,"
    " kind, since_day, until_day, rows_from"
)


@dataclass(frozen=True, slots=True)
class Run:
    """A row of aggregation_run; the slices before `committed_slices` are in the aggregate already."""

    run_id: str
    job: str
    run_number: int
    cut_from: str
    cut_to: str
    attempt: int
    status: str
    committed_slices: int
    planned_at: datetime
    kind: RunKind = "increment"
    days: Days = ALL_DAYS
    rows_from: str = "sql"

    @property
    def slices(self) -> int:
        """The number of the slices that are committed, which are the first ones."""
        return SLICES if self.status == "committed" else self.committed_slices


@dataclass(frozen=True, slots=True)
class Result:
    """The staged result of one execution of a job, under its own id; `lake_path` is its address in the lake.

    `levels` are the names of all levels that the job knows, the finest first. With an `overflow` no window is staged.
    """

    staging_id: str
    run_id: str
    attempt: int
    slices: tuple[SliceFacts, ...]
    rows_read: int
    lake_path: str | None
    is_snapshot: bool
    staged_at: datetime
    levels: tuple[str, ...]
    quality: str | None = None  # JSON, of `jobs/quality.py`

    @property
    def overflow(self) -> str | None:
        """The first fault of a value that no column holds."""
        return next((one.overflow for one in self.slices if one.overflow), None)

    @property
    def windows(self) -> int:
        """The number of staged windows of the finest level."""
        return self._counts[self.levels[0]]

    @property
    def levels_text(self) -> str:
        """The number of staged windows of each level, as JSON."""
        return json.dumps(self._counts)

    @property
    def _counts(self) -> dict[str, int]:
        return {name: sum(one.windows for one in self.slices if one.level == name) for name in self.levels}


class Tables(Protocol):
    """The tables of one store. DataFrames have the columns of `jobs/transforms.py`, with instants as timestamps."""

    def read_run(self, run_id: str) -> Run | None:
        """Return a run, or None."""

    def read_committed(self, job: str, below: int) -> Run | None:
        """Return the newest committed run of a job with a lower number, or None."""

    def read_later(self, job: str, number: int) -> list[Run]:
        """Return the runs of a job with a higher number that have committed slices, in order; some may be open."""

    def read_ledger(self, spans: Sequence[CommitSpan]) -> list[MergedRange]:
        """Return the commits of these spans, with adjacent batches merged by SQL.

        A span from a partition's first commit has only its batches: they cover the rows of all other commits.
        """

    def read_written(self, spans: Sequence[CommitSpan]) -> list[WrittenCount]:
        """Return what the ledger says of the commits of these spans, by partition and version of the transform."""

    def count_rows(self, table: str, slices: Sequence[Slice], spans: Sequence[CommitSpan]) -> Counter[Place]:
        """Return by partition the number of a table's rows in these slices, and of the rows that the commits of these
        spans wrote and a replay removed."""

    def read_checkpoints(self, stream_id: int) -> dict[str, int]:
        """Return the checkpoint of each partition of a stream."""

    def rows(self, of: Aggregate, slices: Sequence[Slice]) -> DataFrame:
        """Return the columns that an aggregate reads of its source's rows in these slices, with a task for each.

        The rows are those that count at the cuts of their slices.
        """

    def removed(self, of: Aggregate, spans: Sequence[CommitSpan]) -> DataFrame:
        """Return the same columns of the rows that counted before these spans, and that their replays removed."""

    def rows_of_windows(
        self, of: Aggregate, windows: Sequence[Mapping[str, Any]], cut: Sequence[CommitSpan]
    ) -> DataFrame:
        """Return the same columns of the rows of some windows that count at a cut, by seeks."""

    def standing(self, of: Aggregate, windows: Sequence[Mapping[str, Any]] | None) -> DataFrame:
        """Return the stored windows among some (None: all) with the `run_number` that touched each last, by seeks."""

    def lineage_rows(self, row_class: type, slices: Sequence[Slice]) -> DataFrame:
        """Return appended rows in these slices with their lineage, and their columns in the types of `row_kinds`."""

    def removed_rows(self, row_class: type, wanted: Sequence[str]) -> DataFrame:
        """Return the rows of a class that replays removed, by SQL conditions: their lineage as `REMOVED_COLUMNS` has
        it, and `document`, the row as JSON."""

    def texts(self, row_class: type, slices: Sequence[Slice] | None) -> DataFrame:
        """Return rows of a class (None: all) as `texts` of `jobs/row_texts.py`, with the positions of appended rows."""

    def stage(self, of: Aggregate, windows: DataFrame, staging_id: str, run_id: str) -> None:
        """Write windows with their slices under their own staging id; they are ignored until `finish`.

        A window that a task writes twice is stored once.
        """

    def row_hash(self, text: Column) -> Column:
        """Return the hash of a row's text, as the commit computes it from the staged row."""

    def finish(self, result: Result) -> None:
        """Write the facts of a result's slices, and mark it as complete in the last write of a job."""

    def stage_events(self, events: DataFrame, stream_id: int) -> None:
        """Store events in the form of `jobs/capture.py` for a replay; an event that is already there stays as it is."""


def run_of(row: Sequence[Any], planned_at: datetime) -> Run:
    """Return the run in a row of RUN_COLUMNS."""
    *figures, kind, since, until, rows_from = row
    first, last = (None if day is None else date.fromisoformat(str(day)) for day in (since, until))
    return Run(*[*figures, planned_at, kind, Days(first, last), rows_from])


def newest_where(job: str, below: int, table: str = "aggregation_run") -> str:
    """Return the SQL condition of the newest committed run of a job below a number."""
    runs = f"job = {quoted(job)} AND status = 'committed' AND run_number < {below}"
    return f"job = {quoted(job)} AND run_number = (SELECT MAX(n.run_number) FROM {table} n WHERE {runs})"


def later_where(job: str, number: int) -> str:
    """Return the SQL condition of the runs of a job above a number that have committed slices."""
    return f"job = {quoted(job)} AND run_number > {number} AND (status = 'committed' OR committed_slices > 0)"


def place_where(one: CommitSpan | Slice) -> str:
    """Return the SQL condition of a partition."""
    return f"stream_id = {one.stream_id} AND partition_id = {quoted(one.partition_id)}"


def rows_where(one: Slice, letters: str = "event_hub_dead_letter", written_by: str = "commit_number") -> str:
    """Return the SQL condition of a slice's rows, for every engine; `written_by` is the column of their commits."""
    place = place_where(one)
    span = f"sequence_number BETWEEN {one.first} AND {one.last}"
    rows = f"{place} AND {span} AND {written_by} > {one.after} AND {written_by} <= {one.up_to}"
    if not one.letters_only:
        return rows
    return f"{rows} AND sequence_number IN (SELECT sequence_number FROM {letters} WHERE {place} AND {span})"


def commits_where(span: CommitSpan) -> str:
    """Return the SQL condition of a span's ledger rows, and of the rows that its replays removed."""
    return f"{place_where(span)} AND commit_number > {span.after} AND commit_number <= {span.up_to}"


def ledger_query(spans: Sequence[CommitSpan], table: str = "batch_ledger") -> str:
    """Return the SQL of these spans' ledger in merged ranges, for every engine; `table` has the name of the ledger.

    What a purge took away is before every cut, so only a span from the first commit on has it.
    """
    where = " OR ".join(f"({_ledger_where(span)})" for span in spans)
    ranges = f"SELECT {LEDGER_COLUMNS} FROM {table} WHERE {where}"
    begun = " OR ".join(f"({commits_where(span)})" for span in spans if span.after == 0)
    if begun:
        ranges += " UNION ALL " + _PURGED.format(checkpoints=checkpoints_of(table), where=begun).strip()
    return _MERGED.format(columns=LEDGER_COLUMNS, each=NUMBERS_EACH, ranges=ranges).strip()


def _ledger_where(span: CommitSpan) -> str:
    kinds = "kind = 'batch'" if span.after == 0 else "(rows_written > 0 OR kind <> 'retry')"
    return f"{commits_where(span)} AND {kinds}"


def position_of(row_class: type) -> tuple[str, ...]:
    """Return the columns of an appended row's position; none for a state, which follows its newest event."""
    return () if row_table(row_class).key else ("partition_id", "sequence_number", "ordinal")


def quoted(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def staged_columns(of: Aggregate) -> tuple[str, ...]:
    """Return the columns of the table in which the windows of an aggregate are staged."""
    return ("staging_id", "slice", *of.key, "run_id", "is_whole", *of.values)


def staged_form(of: Aggregate, windows: DataFrame, staging_id: str, run_id: str, zone: str) -> DataFrame:
    """Return windows as rows of the staging table: instants as ISO texts with six digits, followed by `zone`."""
    named = {
        "staging_id": F.lit(staging_id),
        "run_id": F.lit(run_id),
        "is_whole": F.col("is_whole").cast("int"),
        **{name: _written(name, zone) for name in of.instants},
    }
    return windows.select(*(named.get(name, F.col(name)).alias(name) for name in staged_columns(of)))


def fact_values(one: SliceFacts) -> tuple[object, ...]:
    """Return the facts of a slice as a row of the table, after the ids of its result and its run."""
    return (one.level, one.number, one.windows, one.whole_windows, one.rows_hash)


def event_form(events: DataFrame, stream_id: int, zone: str) -> DataFrame:
    """Return events as rows of the table of staged events."""
    named = {"stream_id": F.lit(stream_id), "enqueued_at": _written("enqueued_at", zone)}
    return events.select(*(named.get(name, F.col(name)).alias(name) for name in EVENT_COLUMNS))


def _written(name: str, zone: str) -> Column:
    return F.concat(F.date_format(name, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit(zone))

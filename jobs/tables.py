"""The tables of a store for the jobs: all reading and writing of SQL, and nothing else."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from core.aggregation.runs import ALL_DAYS, Days, RunKind
from core.model.aggregates import SLICES, Aggregate
from core.model.rows import ERASED, row_table
from jobs import as_of
from jobs.as_of import Window, Words
from jobs.ranges import (
    LEDGER,
    CommitSpan,
    MergedRange,
    Place,
    Slice,
    WrittenCount,
    commits_where,
    ledger_query,
    place_where,
    quoted,
    rows_where,
)
from jobs.row_texts import LINEAGE_KINDS, row_kinds
from jobs.transforms import SliceFacts, instant_text, source_columns, window_columns

OPEN = ("submitting", "submitted")
EVENT_KEY = {"stream_id": "bigint", "partition_id": "string", "sequence_number": "bigint"}
EVENT_COLUMNS = (*EVENT_KEY, "offset_token", "enqueued_at", "partition_key", "properties", "body")
WRITTEN = {
    "stream_id": "bigint",
    "partition_id": "string",
    "rows_appended": "bigint",
    "uncounted": "bigint",
    "first_at": "timestamp",
}
COUNTED = {"stream_id": "bigint", "partition_id": "string", "rows_found": "bigint"}
REMOVED_COLUMNS = {  # of retracted_row: `commit_number` is that of the replay
    "stream_id": "bigint",
    "partition_id": "string",
    "sequence_number": "bigint",
    "ordinal": "bigint",
    "row_commit_number": "bigint",
    "commit_number": "bigint",
}
RUN = {
    **dict.fromkeys(("run_id", "job"), "string"),
    "run_number": "bigint",
    **dict.fromkeys(("cut_from", "cut_to"), "string"),
    "attempt": "bigint",
    "status": "string",
    "committed_slices": "bigint",
    "planned_at": "timestamp",
    **dict.fromkeys(("kind", "since_day", "until_day", "rows_from"), "string"),
}
_FACTS = (
    "staging_id string, run_id string, level string, slice int, windows bigint, whole_windows bigint, rows_hash bigint"
)
_RESULT = (
    "staging_id string, run_id string, attempt int, windows bigint, levels string, rows_read bigint, is_snapshot int,"
    " staged_at string, quality string"
)


@dataclass(frozen=True, slots=True)
class Run:
    """A row of aggregation_run. The slices before `committed_slices` are in the aggregate already."""

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
    """The staged result of one execution of a job, under its own id. `lake_path` is its address in the lake.

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


class Tables(ABC):
    """The tables of one store. DataFrames have the columns of `jobs/transforms.py`, with instants as timestamps.

    An engine sends the SQL: it has words of its own, and asks about `spans_each` partitions at once.
    """

    words: Words
    spans_each: int

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @abstractmethod
    def answer(self, query: str, columns: Mapping[str, str]) -> list[Any]:
        """Return the rows of a query, whose columns are given with their types in Spark."""

    @abstractmethod
    def where(self, query: str, wanted: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
        """Return these columns of the rows of a query that meet a condition, with a task for each condition."""

    @abstractmethod
    def union(self, queries: Sequence[str], columns: Mapping[str, str]) -> DataFrame:
        """Return these columns of the rows of all queries."""

    @abstractmethod
    def append(self, rows: DataFrame, table: str) -> None:
        """Write rows into a table."""

    @abstractmethod
    def row_hash(self, text: Column) -> Column:
        """Return the hash of a row's text, as the commit computes it from the staged row."""

    def read_run(self, run_id: str) -> Run | None:
        """Return a run, or None."""
        return next(iter(self._runs(f"run_id = {quoted(run_id)}")), None)

    def read_committed(self, job: str, below: int) -> Run | None:
        """Return the newest committed run of a job with a lower number, or None."""
        return next(iter(self._runs(newest_where(job, below, f"{self.words.prefix}aggregation_run"))), None)

    def read_later(self, job: str, number: int) -> list[Run]:
        """Return the runs of a job with a higher number that have committed slices, in order. Some may be open."""
        return sorted(self._runs(later_where(job, number)), key=lambda run: run.run_number)

    def read_ledger(self, spans: Sequence[CommitSpan]) -> list[MergedRange]:
        """Return the commits of these spans, with adjacent batches merged by SQL.

        A span from a partition's first commit has only its batches: they cover the rows of all other commits.
        """
        ledger = f"{self.words.prefix}batch_ledger"
        queries = (ledger_query(some, ledger) for some in self._some(spans))
        return [MergedRange(*row) for query in queries for row in self.answer(query, LEDGER)]

    def read_written(self, spans: Sequence[CommitSpan]) -> list[WrittenCount]:
        """Return the rows that the ledger counts for the commits of these spans, by partition."""
        queries = (as_of.written_query(some, self.words) for some in self._some(spans))
        return [WrittenCount(*row) for query in queries for row in self.answer(query, WRITTEN)]

    def count_rows(self, table: str, slices: Sequence[Slice], spans: Sequence[CommitSpan]) -> Counter[Place]:
        """Return by partition the number of a table's rows in these slices, and of the rows that the commits of these
        spans wrote and a replay removed."""
        found: Counter[Place] = Counter()
        for query in as_of.count_queries(table, slices, spans, self.words):
            for stream_id, partition_id, rows in self.answer(query, COUNTED):
                found[stream_id, partition_id] += rows
        return found

    def read_checkpoints(self, stream_id: int) -> dict[str, int]:
        """Return the checkpoint of each partition of a stream."""
        columns = {"partition_id": "string", "sequence_number": "bigint"}
        return dict(
            self.answer(f"{self._select('event_hub_checkpoint', columns)} WHERE stream_id = {stream_id}", columns)
        )

    def rows(self, of: Aggregate, slices: Sequence[Slice]) -> DataFrame:
        """Return the columns that an aggregate reads of its source's rows in these slices, with a task for each.

        The rows are those that count at the cuts of their slices.
        """
        wanted = [as_of.counted_where(one, self._letters) for one in slices]
        return self.where(as_of.counting(of, self.words), wanted, source_columns(of))

    def removed(self, of: Aggregate, spans: Sequence[CommitSpan]) -> DataFrame:
        """Return the same columns of the rows that counted before these spans, and that their replays removed."""
        return self.where(as_of.removed(of, self.words), list(map(as_of.removed_where, spans)), source_columns(of))

    def rows_of_windows(self, of: Aggregate, windows: Sequence[Window], cut: Sequence[CommitSpan]) -> DataFrame:
        """Return the same columns of the rows of some windows that count at a cut, by seeks."""
        queries = [as_of.rows_of_windows(of, some, cut, self.words) for some in as_of.portions(windows)]
        return self.union(queries, source_columns(of))

    def standing(self, of: Aggregate, windows: Sequence[Window] | None) -> DataFrame:
        """Return the stored windows among some (None: all) with the `run_number` that touched each last, by seeks."""
        columns = {**window_columns(of), "run_number": "bigint"}
        if windows is None:
            return self.where(self._select(of.name, columns), ["1 = 1"], columns)
        return self.union([as_of.standing_windows(of, some, self.words) for some in as_of.portions(windows)], columns)

    def lineage_rows(self, row_class: type, slices: Sequence[Slice]) -> DataFrame:
        """Return appended rows in these slices with their lineage, and their columns in the types of `row_kinds`."""
        columns = {**LINEAGE_KINDS, **row_kinds(row_class)}
        wanted = [rows_where(one, self._letters) for one in slices]
        return self.where(self._select(row_table(row_class).name, columns), wanted, columns)

    def removed_rows(self, row_class: type, wanted: Sequence[str]) -> DataFrame:
        """Return the rows of a class that replays removed, by SQL conditions: their lineage as `REMOVED_COLUMNS` has
        it, and `document`, the row as JSON."""
        names = f"{', '.join(REMOVED_COLUMNS)}, table_name, {self.words.named('row')} AS document"
        rows = f"table_name = {quoted(row_table(row_class).name)} AND document <> '{ERASED}'"
        query = f"SELECT {names} FROM {self.words.prefix}retracted_row"
        return self.where(query, [f"{rows} AND ({one})" for one in wanted], {**REMOVED_COLUMNS, "document": "string"})

    def removed_places(self, row_class: type, spans: Sequence[CommitSpan]) -> DataFrame:
        """Return the places of the rows of a class that replays or erasures took away, with the commits of the rows."""
        columns = {name: kind for name, kind in REMOVED_COLUMNS.items() if name != "commit_number"}
        query = f"{self._select('retracted_row', columns)} WHERE table_name = {quoted(row_table(row_class).name)}"
        found = self.where(query, list(map(place_where, spans)), columns)
        return found.withColumnRenamed("row_commit_number", "commit_number")

    def commits(self, table: str, spans: Sequence[CommitSpan], columns: Mapping[str, str]) -> DataFrame:
        """Return these columns of a table's rows of the commits of these spans."""
        return self.where(self._select(table, columns), list(map(commits_where, spans)), columns)

    def texts(self, row_class: type, slices: Sequence[Slice] | None) -> DataFrame:
        """Return rows of a class (None: all) as `texts` of `jobs/row_texts.py`, with the positions of appended rows.

        A state has no position: it follows its newest event.
        """
        position = () if row_table(row_class).key else ("partition_id", "sequence_number", "ordinal")
        kinds = row_kinds(row_class)
        columns = {**LINEAGE_KINDS, **kinds} if position else kinds
        wanted = ["1 = 1"] if slices is None else [rows_where(one) for one in slices]
        found = self.where(self._select(row_table(row_class).name, columns), wanted, columns)
        texts = [
            instant_text(name, "Z") if kind == "timestamp"
            else (F.col(name).cast("int") if kind == "boolean" else F.col(name)).cast("string")
            for name, kind in kinds.items()
        ]  # fmt: skip
        return found.select(*position, F.array(*texts).alias("texts"))

    def stage(self, of: Aggregate, windows: DataFrame, staging_id: str, run_id: str) -> None:
        """Write windows with their slices under their own staging id. They are ignored until `finish`.

        The windows are computed already, so that every connection has a fresh token.
        """
        named = {
            "staging_id": F.lit(staging_id),
            "run_id": F.lit(run_id),
            "is_whole": F.col("is_whole").cast("int"),
            **{name: instant_text(name, self.words.zone) for name in of.instants},
        }
        rows = windows.select(*(named.get(name, F.col(name)).alias(name) for name in staged_columns(of)))
        self.append(rows, of.staged)

    def finish(self, result: Result) -> None:
        """Write the facts of a result's slices, and mark it as complete in the last write of a job."""
        place = (result.staging_id, result.run_id)
        facts = [
            (*place, one.level, one.number, one.windows, one.whole_windows, one.rows_hash) for one in result.slices
        ]
        self.append(self._spark.createDataFrame(facts, _FACTS).coalesce(1), "staged_slice")
        staged_at = result.staged_at.strftime("%Y-%m-%dT%H:%M:%S.%f") + self.words.zone
        figures = (result.attempt, result.windows, result.levels_text, result.rows_read)
        row = (*place, *figures, int(result.is_snapshot), staged_at, result.quality)
        rows = self._spark.createDataFrame([row], _RESULT).coalesce(1)
        for name in ("lake_path", "overflow"):
            if (text := getattr(result, name)) is not None:  # drivers differ in how they send a text without a value
                rows = rows.withColumn(name, F.lit(text))
        self.append(rows, "staged_result")

    def stage_events(self, events: DataFrame, stream_id: int) -> None:
        """Store events in the form of `jobs/capture.py` for a replay. An event that is already there stays as it is.

        The table's key refuses events that a different job stages at the same time.
        """
        query = self._select("staged_event", EVENT_KEY)
        standing = self.where(query, [f"stream_id = {stream_id}"], EVENT_KEY)
        named = {"stream_id": F.lit(stream_id), "enqueued_at": instant_text("enqueued_at", self.words.zone)}
        rows = events.select(*(named.get(name, F.col(name)).alias(name) for name in EVENT_COLUMNS))
        self.append(rows.join(standing, list(EVENT_KEY), "left_anti"), "staged_event")

    @property
    def _letters(self) -> str:
        return f"{self.words.prefix}event_hub_dead_letter"

    def _runs(self, where: str) -> list[Run]:
        return [run_of(row) for row in self.answer(f"{self._select('aggregation_run', RUN)} WHERE {where}", RUN)]

    def _select(self, table: str, columns: Mapping[str, str]) -> str:
        sent = (self.words.sent(self.words.named(name), name, kind) for name, kind in columns.items())
        return f"SELECT {', '.join(sent)} FROM {self.words.prefix}{table}"

    def _some(self, spans: Sequence[CommitSpan]) -> Iterator[Sequence[CommitSpan]]:
        return (spans[at : at + self.spans_each] for at in range(0, len(spans), self.spans_each))


def run_of(row: Sequence[Any]) -> Run:
    """Return the run in a row of RUN."""
    *figures, since, until, rows_from = row
    first, last = (None if day is None else date.fromisoformat(str(day)) for day in (since, until))
    return Run(*[*figures, Days(first, last), rows_from])


def newest_where(job: str, below: int, table: str = "aggregation_run") -> str:
    """Return the SQL condition of the newest committed run of a job below a number."""
    runs = f"job = {quoted(job)} AND status = 'committed' AND run_number < {below}"
    return f"job = {quoted(job)} AND run_number = (SELECT MAX(n.run_number) FROM {table} n WHERE {runs})"


def later_where(job: str, number: int) -> str:
    """Return the SQL condition of the runs of a job above a number that have committed slices."""
    return f"job = {quoted(job)} AND run_number > {number} AND (status = 'committed' OR committed_slices > 0)"


def staged_columns(of: Aggregate) -> tuple[str, ...]:
    """Return the columns of the table in which the windows of an aggregate are staged."""
    return ("staging_id", "slice", *of.key, "run_id", "is_whole", *of.values)

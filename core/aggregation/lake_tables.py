"""The Delta tables of the lake: a job writes their files, and the app commits them with the run as a transaction.

A job knows no Delta. It gets the state of its tables as JSON, and its manifest says which files it wrote and which ones
they replace. Each table is one commit, so a reader sees all of a run in a table, or nothing of it.

`silver/TABLE` has the rows that count at its cut, by stream and event date. `silver/TABLE_removed` has the rows that
replays removed up to then, so that a reader finds the rows of any earlier cut.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Protocol

from core.aggregation.runs import NO_CUT
from core.errors import InvalidTransform
from core.model.aggregates import Aggregate
from core.model.rows import row_table
from core.transforms.loading import find_aggregate

GOLD, SILVER = "gold", "silver"
OF_FILES = " (files)"  # after the name of a stale table whose log is whole
OF_REMAKE = " (remake)"  # after the name of a table that is being made anew
REMAKE = "_remake"  # the folder of such an order: no reader of Delta sees it
MANIFEST = "manifest"
MEND = ": `python -m handlers.commands remake-table` makes it anew"
FILES_KEPT = timedelta(days=7)  # replaced files, for readers; and files of an execution, for its commit
Value = str | int | float | bool | None  # of a column in a file's range: instants and days are ISO texts
Range = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A Parquet file of a table: its path in the table's folder, its partition, and the range of some columns.

    A column that is in neither `least` nor `most` may have any value.
    """

    path: str
    size: int
    rows: int
    partition: Mapping[str, str]
    least: Range
    most: Range


@dataclass(frozen=True, slots=True)
class Remake:
    """A person's order to make a table anew by a run after the number `after`.

    `files` are those of its log. None: it has none, or an unreadable one. With `accepts_loss` lost rows are left out.
    """

    after: int
    files: tuple[LakeFile, ...] | None
    accepts_loss: bool


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at a cut: its columns with their types in Spark, and its files. No cut: a run has to write all of it, by
    the order to make it anew, if there is one."""

    cut: str | None
    columns: Mapping[str, str]
    files: tuple[LakeFile, ...]
    remake: Remake | None = None


@dataclass(frozen=True, slots=True)
class TableChange:
    """The files that a run adds to a table, and the paths that it takes away. `is_whole`: all earlier files go."""

    columns: Mapping[str, str]
    partition: tuple[str, ...]
    added: tuple[LakeFile, ...]
    removed: tuple[str, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class StandingTable:
    """A table as the lake has it: its version, the number of the last run in it (0: none), columns and files."""

    version: int
    run: int
    columns: Mapping[str, str]
    files: tuple[LakeFile, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """The run of a commit: its job and number, by which a repeated commit is known, and facts for readers."""

    job: str
    number: int
    facts: Mapping[str, str]


NO_TABLE = StandingTable(-1, 0, {}, ())
EMPTY = TableState(NO_CUT, {}, ())


class Lake(Protocol):
    """Reads and commits tables, and stores texts for jobs. Every method may raise LakeUnreachable.

    Raises LakeDamaged where the log or a file of a table is unreadable.
    """

    @property
    def location(self) -> str:
        """The folder or the address that jobs write to."""

    def read_table(self, table: str, job: str) -> StandingTable:
        """Return a table, or NO_TABLE when there is none yet. Raises LakeUnreachable for a table of a different job."""

    def commit(self, table: str, standing: StandingTable, change: TableChange, mark: Mark) -> bool:
        """Commit a change that fits the table in exactly this version. False: a different commit was first."""

    def lacks(self, table: str, files: Sequence[LakeFile]) -> bool:
        """Return True when a file of a change is no longer in the lake, or has a different size."""

    def check_log(self, table: str) -> None:
        """Raise LakeDamaged for a table with an entry of its log that has no action: a reader would notice nothing."""

    def remove_log(self, table: str) -> None:
        """Remove the log of a table, so that there is none until the next commit."""

    def maintain(self, table: str) -> Mapping[str, int]:
        """Compact a table, remove files that no reader of the last days needs, shorten its log, and return counts."""

    def delete(self, table: str, condition: str) -> int:
        """Delete the rows of a table that fit a condition in SQL, and return their number.

        The files that had the rows stay for readers until `maintain` removes them.
        """

    def write_text(self, path: str, text: str) -> None:
        """Write a text for a job."""

    def read_text(self, folder: str) -> str | None:
        """Return the text that a job wrote in a folder, or None."""


def fits(standing: StandingTable, change: TableChange) -> bool:
    """Return True when a change can be committed: its files replace all others, or those that it replaces are there."""
    if change.is_whole:
        return True
    if standing.version >= 0 and dict(standing.columns) != dict(change.columns):
        return False
    return set(change.removed) <= {one.path for one in standing.files}


def range_end(value: Any) -> Any:
    """Return the least or the greatest value of a column as JSON has it: an instant or a day is a text."""
    if isinstance(value, datetime):
        return f"{value.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
    return value.isoformat() if isinstance(value, date) else value


def gold_table(name: str) -> str:
    """Return the table of an aggregate."""
    return f"{GOLD}/{name}"


ROWS = "rows."  # how the names of these jobs begin
EVENT_DATE = "event_date"
LINEAGE = ("stream_id", "partition_id", "sequence_number", "ordinal", "commit_number")
REMOVED_AT = "removed_at_commit"


@dataclass(frozen=True, slots=True)
class LakeRows:
    """A row class in the lake, and its column that decides the event date."""

    source: type
    at: str

    @property
    def table_name(self) -> str:
        """The name of the table of the rows in SQL."""
        return row_table(self.source).name

    @property
    def job(self) -> str:
        """The name of the job that appends the rows."""
        return f"{ROWS}{self.table_name}"

    @property
    def table(self) -> str:
        """The table of the rows in the lake."""
        return table_of(self.job)

    @property
    def removed(self) -> str:
        """The table of the rows that replays removed."""
        return removed_of(self.job)


def rows_job(job: str) -> str:
    """Return the job that keeps the rows of an aggregate in the lake."""
    of = find_aggregate(job)
    return LakeRows(of.source, of.at).job


def table_of(job: str) -> str:
    """Return the table of the rows that a job appends."""
    return f"{SILVER}/{job.removeprefix(ROWS)}"


def removed_of(job: str) -> str:
    """Return the table of the rows that replays removed from it."""
    return f"{table_of(job)}_removed"


def is_rows_job(job: str) -> bool:
    """Return True for a job whose whole result is in the lake."""
    return job.startswith(ROWS)


def lake_rows(aggregates: Iterable[Aggregate]) -> tuple[LakeRows, ...]:
    """Return the sources of aggregates, by name.

    InvalidTransform when two aggregates of a source differ in its date, or a column has a name that the lake needs.
    """
    found: dict[type, LakeRows] = {}
    for one in aggregates:
        rows = found.setdefault(one.source, LakeRows(one.source, one.at))
        if rows.at != one.at:
            raise InvalidTransform(
                f"{one.name}: at={one.at!r}, but a different aggregate of {one.source.__name__} has at={rows.at!r};"
                " the lake has one event date for each row"
            )
        taken = {EVENT_DATE, REMOVED_AT, *LINEAGE} & set(row_table(one.source).columns)
        if taken:
            raise InvalidTransform(f"{one.source.__name__}: the lake needs the column name {min(taken)} itself")
    return tuple(sorted(found.values(), key=lambda rows: rows.job))


def rows_of_job(job: str, aggregates: Iterable[Aggregate]) -> LakeRows:
    """Return the rows that a job appends. Raises InvalidTransform when no aggregate reads them."""
    for rows in lake_rows(aggregates):
        if rows.job == job:
            return rows
    raise InvalidTransform(f"no aggregate reads the rows of the job {job}")

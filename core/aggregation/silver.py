"""The rows of a source in the lake. A separate job appends new rows, and removes the rows that replays removed.

`silver/TABLE` has the rows that count at its cut, by stream and event date. `silver/TABLE_removed` has the rows that
replays removed up to then, so that a reader finds the rows of any earlier cut.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from core.aggregation.lake import SILVER
from core.errors import InvalidTransform
from core.model.aggregates import Aggregate
from core.model.rows import row_table
from core.transforms.aggregates import find_aggregate

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
    """Return the rows that a job appends; InvalidTransform when no aggregate reads them."""
    for rows in lake_rows(aggregates):
        if rows.job == job:
            return rows
    raise InvalidTransform(f"no aggregate reads the rows of the job {job}")

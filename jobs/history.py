"""The rows of an aggregate as of a cut, in a span of days, and their windows: for repair, backfill and rebuild."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from core.aggregation.lake_tables import lake_rows
from core.aggregation.runs import ALL_DAYS, Days
from core.model.aggregates import EPOCH, Aggregate
from jobs.lake_files import OpenLake
from jobs.lake_rows import reaches, rows_as_of
from jobs.ranges import slices_of, spans_between
from jobs.tables import Run, Tables
from jobs.transforms import by_level, leveled, partial_sums, whole

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class History:
    """The rows that were ever written, as of any cut that it covers.

    They are in the lake, at the state that the app handed over, or in the operational database for an app without a
    lake.
    """

    tables: Tables
    lake: OpenLake | None = None

    def covers(self, of: Aggregate, cut: str) -> bool:
        """Return True when the history has every row of an aggregate's source that counts at a cut."""
        (rows,) = lake_rows([of])
        return self.lake is None or reaches(self.lake.tables[rows.table].cut, cut)

    def rows(self, of: Aggregate, cut: str, days: Days) -> DataFrame:
        """Return the columns that an aggregate reads of the rows that count at a cut, in a span of days."""
        if self.lake is None:
            spans = spans_between("{}", cut)
            return within(self.tables.rows(of, slices_of(spans, self.tables.read_ledger(spans))), of.at, days)
        both = None if days == ALL_DAYS else (days.since or date.min, days.until or date.max)
        return rows_as_of(of, self.lake, cut, both)


def open_history(tables: Tables, rows_from: str, lake: OpenLake | None) -> History:
    """Return the history that a run was planned to read."""
    if rows_from == "lake" and lake is None:
        raise ValueError("the run reads rows from the lake, and the app named none: is LAKE still set?")
    return History(tables, lake if rows_from == "lake" else None)


def repaired(tables: Tables, of: Aggregate, history: History, run: Run) -> DataFrame:
    """Return whole windows of all levels for the days of a run, from the rows that count at the end of the run.

    A stored window of these days that has none of these rows is removed: its whole window counts no row. The rows are
    read once.
    """
    finest = partial_sums(of, history.rows(of, run.cut_to, run.days)).persist()
    standing = by_level(of, lambda level: tables.standing(level, None))
    return whole(of, leveled(of, finest), within(standing, "window_start", run.days))


def within(rows: DataFrame, at: str, days: Days) -> DataFrame:
    """Return the rows of which a column is in a span of days, in UTC."""
    micros = F.unix_micros(F.col(at).cast("timestamp"))
    if days.since is not None:
        rows = rows.where(micros >= _micros(days.since))
    if days.until is not None and days.until < date.max:
        rows = rows.where(micros < _micros(days.until + DAY))
    return rows


def _micros(day: date) -> int:
    return (datetime.combine(day, time(), UTC) - EPOCH) // timedelta(microseconds=1)

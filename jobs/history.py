"""The rows of an aggregate as of a cut, in a span of days, and their windows: for repair, backfill and rebuild."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from core.aggregation.lake_tables import lake_rows
from core.aggregation.runs import ALL_DAYS, Days
from core.model.aggregates import EPOCH, Aggregate
from jobs.lake_files import OpenLake, open_lake
from jobs.lake_rows import reaches, rows_as_of
from jobs.ranges import slices_of, spans_between
from jobs.tables import Run, Tables
from jobs.transforms import by_level, leveled, partial_sums, whole

DAY = timedelta(days=1)


class History(Protocol):
    """The rows that were ever written, as of any cut that it covers."""

    def covers(self, of: Aggregate, cut: str) -> bool:
        """Return True when the history has every row of an aggregate's source that counts at a cut."""

    def rows(self, of: Aggregate, cut: str, days: Days) -> DataFrame:
        """Return the columns that an aggregate reads of the rows that count at a cut, in a span of days."""


class SqlHistory:
    """The history in the operational database, for an app without a lake."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def covers(self, of: Aggregate, cut: str) -> bool:
        return True

    def rows(self, of: Aggregate, cut: str, days: Days) -> DataFrame:
        spans = spans_between("{}", cut)
        rows = self._tables.rows(of, slices_of(spans, self._tables.read_ledger(spans)))
        return within(rows, of.at, days)


class LakeHistory:
    """The history in the lake, at the state that the app handed over."""

    def __init__(self, spark: SparkSession, lake: OpenLake) -> None:
        self._spark = spark
        self._lake = lake

    def covers(self, of: Aggregate, cut: str) -> bool:
        (rows,) = lake_rows([of])
        return reaches(self._lake.tables[rows.table].cut, cut)

    def rows(self, of: Aggregate, cut: str, days: Days) -> DataFrame:
        both = None if days == ALL_DAYS else (days.since or date.min, days.until or date.max)
        return rows_as_of(self._spark, of, self._lake, cut, both)


def open_history(spark: SparkSession, tables: Tables, rows_from: str, place: tuple[str, str] | None) -> History:
    """Return the history that a run was planned to read; `place` is the lake, and the path of its state there."""
    if rows_from != "lake":
        return SqlHistory(tables)
    if place is None:
        raise ValueError("the run reads rows from the lake, and the app named none: is LAKE still set?")
    return LakeHistory(spark, open_lake(spark, *place))


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

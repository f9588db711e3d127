"""The facts about a staged result by level and slice: the number of its windows, and a hash of their rows.

A commit compares them with the rows that the staging holds. `core/store/window_statements.py` has the same
arithmetic in SQL.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from core.model.aggregates import Aggregate
from jobs.transforms import overflow_of

SEPARATOR = "|"


@dataclass(frozen=True, slots=True)
class SliceFacts:
    """One slice of a level, which has the name of its table.

    `overflow` is the fault of a value that no column holds.
    """

    number: int
    windows: int
    whole_windows: int
    rows_hash: int
    level: str
    overflow: str | None = None


def slice_facts(levels: Sequence[tuple[Aggregate, DataFrame]], hashed: Callable[[Column], Column]) -> list[SliceFacts]:
    """Return the facts about the windows of levels, which have the numbers of their slices, by one action of Spark.

    `hashed` is the store's hash of a text.
    """
    finest = levels[0][0]
    rows = (
        windows.select(
            F.lit(level.name).alias("level"),
            *("slice", "is_whole"),
            _row_text(finest).alias("text"),
            overflow_of(level).alias("overflow"),
        )
        for level, windows in levels
    )
    found = (
        reduce(DataFrame.unionByName, rows)
        .groupBy("level", "slice")
        .agg(
            F.count(F.lit(1)).alias("windows"),
            F.count(F.when(F.col("is_whole"), 1)).alias("whole_windows"),
            F.sum(hashed(F.col("text"))).alias("rows_hash"),
            F.min("overflow").alias("overflow"),
        )
        .select("slice", "windows", "whole_windows", "rows_hash", "level", "overflow")
    )
    order = {level.name: place for place, (level, _) in enumerate(levels)}
    return sorted((SliceFacts(*row) for row in found.collect()), key=lambda one: (order[one.level], one.number))


def rows_read(of: Aggregate, windows: DataFrame) -> int:
    """Return the number of rows that windows count."""
    return int(windows.agg(F.coalesce(F.sum(of.count), F.lit(0))).collect()[0][0])


def _row_text(of: Aggregate) -> Column:
    texts = [one.name for one in of.keys if one.kind is str]
    first = [F.regexp_replace(F.col(name), "\n", " ") for name in texts]
    others = [_value(of, name) for name in ("is_whole", *of.columns) if name not in texts]
    return _text([*first, *others])


def _value(of: Aggregate, name: str) -> Column:
    if name in of.instants:
        return F.concat(F.date_format(name, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit("Z"))
    return F.col(name).cast("int") if name == "is_whole" else F.col(name)


def _text(values: list[Column]) -> Column:
    """Join values to a text; one that is missing is empty."""
    texts = [F.coalesce(value.cast("string"), F.lit("")) for value in values]
    return F.concat_ws(SEPARATOR, *texts)

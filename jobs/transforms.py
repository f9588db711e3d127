"""From rows to the windows of an aggregate: pure functions, DataFrame -> DataFrame, that end in a `select` as schema.

Every column follows from the aggregate's declaration. Sums are integers and the other values are minima and maxima, so
the order of rows and runs does not matter: increments and a rebuild agree to the bit. Their values are decimals until
they are stored, because a sum of 64 bits wraps. The module uses only functions that Spark 3.5 and 4.1 share.

A commit compares them with the rows that the staging holds. `core/store/window_statements.py` has the same
arithmetic in SQL.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from core.aggregation.runs import overflow_text
from core.model.aggregates import EPOCH, SLICES, WINDOW_START, Aggregate, Measure
from core.model.rows import OURS
from jobs.row_texts import kind_of, row_kinds

EXACT = "decimal(38,0)"  # a value of 64 bits times a factor, summed over 10^13 rows
BIGINT = (-(2**63), 2**63 - 1)
LEVEL = f"{OURS}level"  # the column that names the level of a window, in a frame of all levels
BEGIN = f"{OURS}begin"  # the beginning of the window of a row


def source_columns(of: Aggregate) -> dict[str, str]:
    """Return the columns of the source that an aggregate reads, with their types in Spark."""
    kinds = row_kinds(of.source)
    names = [*(one.name for one in of.grouped_by), of.at, *(one.column for one in of.measures if one.column)]
    return {name: kinds[name] for name in dict.fromkeys(names)}


def window_columns(of: Aggregate) -> dict[str, str]:
    """Return the columns of the aggregate's table, with their types in Spark."""
    kinds = {one.name: kind_of(one.kind) for one in of.keys}
    return kinds | {one.name: kind_of(one.holds) for one in of.measures}


def counts_of(of: Aggregate) -> list[str]:
    """Return the measures that count rows."""
    return [one.name for one in of.measures if one.kind == "count"]


def exact_values(of: Aggregate) -> list[str]:
    """Return the measures whose values are decimals until they are stored."""
    return [one.name for one in of.measures if one.holds is int and one.kind != "count"]


def overflow_of(of: Aggregate) -> Column:
    """Return the fault of a window with a value that no column holds, or null."""
    begin = F.date_format(WINDOW_START, "yyyy-MM-dd'T'HH:mm:ss'Z'")
    faults = []
    for name in exact_values(of):
        before, _, after = overflow_text(of.name, name, "|").partition("|")
        faults.append(F.when(~F.col(name).between(*BIGINT), F.concat(F.lit(before), begin, F.lit(after))))
    return F.coalesce(F.lit(None).cast("string"), *faults)


def as_stored(of: Aggregate, windows: DataFrame) -> DataFrame:
    """Return windows with values as their columns hold them. A value beyond them is null, and never published."""
    fits = {name: F.when(F.col(name).between(*BIGINT), F.col(name)).cast("bigint") for name in exact_values(of)}
    return windows.select(*(fits.get(name, F.col(name)).alias(name) for name in windows.columns))


def instant_text(name: str, zone: str) -> Column:
    """Return an instant as a text of ISO 8601 with six digits, which `zone` ends."""
    return F.concat(F.date_format(name, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"), F.lit(zone))


def schema_of(columns: Mapping[str, str]) -> str:
    """Return columns as a schema of Spark."""
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def partial_sums(of: Aggregate, rows: DataFrame) -> DataFrame:
    """Return the windows of these rows."""
    keys = [one.name for one in of.grouped_by]
    columns = [F.col(name) for name in source_columns(of)]
    micros = _at_micros(of)
    return (
        rows.select(*columns, _window_micros(of, micros).alias(BEGIN))
        .groupBy(*keys, BEGIN)
        .agg(*(_measured(one, source_columns(of)).alias(one.name) for one in of.measures))
        .select(
            *(F.timestamp_micros(BEGIN).alias(name) if name == WINDOW_START else F.col(name) for name in of.key),
            *(_finished(one) for one in of.measures),
        )
    )


def added(of: Aggregate, windows: DataFrame) -> DataFrame:
    """Add up the parts of each window into one row."""
    joins = {"count": F.sum, "sum": F.sum, "least": F.min, "most": F.max}
    values = [joins[one.kind](one.name).alias(one.name) for one in of.measures]
    return windows.groupBy(*of.key).agg(*values).select(*of.columns)


def by_level(of: Aggregate, windows_of: Callable[[Aggregate], DataFrame]) -> DataFrame:
    """Return the windows of all levels, each with the name of its `level`."""
    named = (windows_of(level).withColumn(LEVEL, F.lit(level.name)) for level in of.levels)
    return reduce(DataFrame.unionByName, named)


def leveled(of: Aggregate, windows: DataFrame) -> DataFrame:
    """Return the windows of all levels, from those of the finest."""
    return by_level(of, lambda level: windows.select(*of.columns) if level is of else begun(level, windows))


def begun(level: Aggregate, windows: DataFrame) -> DataFrame:
    """Return the windows of a level, from those of a finer one."""
    begin = F.timestamp_micros(_window_micros(level, F.unix_micros(WINDOW_START)))
    return added(level, windows.withColumn(WINDOW_START, begin))


def at_level(windows: DataFrame, level: Aggregate) -> DataFrame:
    """Return the windows of one level, without its name."""
    return windows.where(F.col(LEVEL) == level.name).drop(LEVEL)


def stored_at(of: Aggregate, windows: DataFrame, moment: datetime) -> DataFrame:
    """Return the windows that the retention of a level leaves at a moment."""
    horizon = of.horizon(moment)
    if horizon is None:
        return windows
    return windows.where(F.unix_micros(WINDOW_START) >= (horizon - EPOCH) // timedelta(microseconds=1))


def in_windows(of: Aggregate, rows: DataFrame, windows: DataFrame) -> DataFrame:
    """Return the rows that belong to some windows."""
    begun_rows = rows.withColumn(BEGIN, F.timestamp_micros(_window_micros(of, _at_micros(of))))
    key = [BEGIN if name == WINDOW_START else name for name in of.key]
    return begun_rows.join(windows.withColumnRenamed(WINDOW_START, BEGIN), key, how="left_semi").drop(BEGIN)


def whole(of: Aggregate, windows: DataFrame, keys: DataFrame) -> DataFrame:
    """Return windows of all levels, marked as whole: each replaces the stored window.

    A key without a window gets a window that counts no row, and so removes the stored window.
    """
    key = [LEVEL, *of.key]
    both = windows.unionByName(keys.select(*key), allowMissingColumns=True).groupBy(*key)
    found = both.agg(*(F.max(name).alias(name) for name in of.values)).fillna(0, counts_of(of))
    return found.select(*key, F.lit(True).alias("is_whole"), *of.values)


def snapshot(of: Aggregate, standing: DataFrame, result: DataFrame) -> DataFrame:
    """Return the whole aggregate after a run: `standing`, with the run's windows added or as replacements."""
    replaced = result.where(F.col("is_whole")).select(*of.key)
    kept = standing.join(replaced, list(of.key), how="left_anti").select(*of.columns)
    return (
        added(of, kept.unionByName(result.select(*of.columns)))
        .where(F.col(of.count) > 0)
        .select(*of.key, F.lit(True).alias("is_whole"), *of.values)
    )


def slice_of(of: Aggregate) -> Column:
    """Return the number of the slice of a window or a row."""
    return (F.crc32(F.col(of.keys[0].name).cast("string")) % SLICES).cast("int")


def sliced(of: Aggregate, windows: DataFrame) -> DataFrame:
    """Add the number of their slice to windows."""
    return windows.select(slice_of(of).alias("slice"), *of.key, "is_whole", *of.values)


def _measured(one: Measure, kinds: dict[str, str]) -> Column:
    if one.column is None:
        return F.count(F.lit(1))
    column = F.col(one.column)
    if one.kind == "count":
        return F.count(F.when(column == F.lit(one.value), 1))
    if kinds[one.column] == "timestamp":
        column = F.unix_micros(column)
    if one.kind == "sum":
        column = column.cast(EXACT)
    return {"sum": F.sum, "least": F.min, "most": F.max}[one.kind](column)


def _finished(one: Measure) -> Column:
    if one.holds is datetime:
        return F.timestamp_micros(one.name).alias(one.name)
    if one.kind == "count":
        return F.col(one.name)
    return (F.col(one.name).cast(EXACT) * one.times).cast(EXACT).alias(one.name)


def _at_micros(of: Aggregate) -> Column:
    return F.unix_micros(F.col(of.at).cast("timestamp"))


def _window_micros(of: Aggregate, micros: Column) -> Column:
    return micros - F.pmod(micros, F.lit(of.window // timedelta(microseconds=1)))


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
    """Return the text of a window, in which a value that is missing is empty."""
    texts = [one.name for one in of.keys if one.kind is str]
    values = [F.regexp_replace(F.col(name), "\n", " ") for name in texts]
    for name in ("is_whole", *of.columns):
        if name in of.instants:
            values.append(instant_text(name, "Z"))
        elif name not in texts:
            values.append(F.col(name).cast("int") if name == "is_whole" else F.col(name))
    return F.concat_ws(SEPARATOR, *(F.coalesce(value.cast("string"), F.lit("")) for value in values))

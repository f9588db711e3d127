"""Retraction is arithmetic: a window that lost rows is its stored window, plus the added rows, minus the removed ones.

Counts and sums are subtracted. Only where a removed row held the least or the greatest value, and no added row restores
it, the window is recomputed from its rows, which its key and its time find.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from core.model.aggregates import EPOCH, WINDOW_START, Aggregate, Measure
from jobs.quality import Commits, counted_columns
from jobs.ranges import replayed_spans, slices_of, spans_between
from jobs.tables import Run, Tables
from jobs.transforms import LEVEL, at_level, by_level, counts_of, in_windows, leveled, partial_sums, whole

SEEKS = 100_000  # windows that are sought one by one; more are found by a join with the whole table


@dataclass(frozen=True, slots=True)
class Delta:
    """The finest windows of the rows that a run adds, and of those that it removes; None when no replay is in the run.

    Both follow from the run's cuts, whenever they are read. `added` has the columns of `counted_columns` too.
    """

    added: DataFrame
    removed: DataFrame | None
    commits: Commits


def delta_of(tables: Tables, of: Aggregate, run: Run) -> Delta:
    """Return the windows that a run adds and removes."""
    spans = spans_between(run.cut_from, run.cut_to)
    ledger = tables.read_ledger(spans)
    commits = Commits(spans, slices_of(spans, ledger), tables.read_written(spans))
    added = partial_sums(of, tables.rows(of, commits.slices), counted_columns(of))
    replayed = replayed_spans(spans, ledger)
    removed = partial_sums(of, tables.removed(of, replayed)).localCheckpoint() if replayed else None
    return Delta(added, removed, commits)


def windows_after(tables: Tables, of: Aggregate, delta: Delta, run: Run) -> DataFrame:
    """Return the windows of a run in all levels: whole ones where it removes rows, and parts to add to the others.

    The stored windows are read once, because slices of the run may be committed at the same time.
    """
    added = leveled(of, delta.added)
    if delta.removed is None:
        return added.withColumn("is_whole", F.lit(False))
    removed, key = leveled(of, delta.removed).localCheckpoint(), [LEVEL, *of.key]
    stored = standing(tables, of, removed.select(*key))
    after = subtracted(of, stored, added, removed, run.run_number).localCheckpoint()
    sound = after.where(~F.col("is_lost")).drop("is_lost")
    lost = after.where("is_lost").select(*key)
    again = recount(tables, of, lost, run.cut_to)
    if again is None:
        return sound
    return sound.unionByName(whole(of, again, lost))


def subtracted(of: Aggregate, stored: DataFrame, added: DataFrame, removed: DataFrame, run_number: int) -> DataFrame:
    """Return the windows of a run: those that lose rows whole, and the parts of the others.

    `is_lost` marks a whole window whose values arithmetic does not tell.
    A window that this run has touched is its own result already: its slice was committed from a different attempt.
    """
    sides = [_named(of, removed, "r"), _named(of, stored, "s", "run_number"), _named(of, added, "a")]
    side_by_side = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), sides)
    key = [LEVEL, *of.key]
    joined = side_by_side.groupBy(*key).agg(*(F.max(name).alias(name) for name in side_by_side.drop(*key).columns))
    counts = [_changed(name).alias(f"n_{name}") for name in counts_of(of)]
    is_own = F.coalesce(F.col("s_run_number") == run_number, F.lit(False)).alias("is_done")
    is_whole = F.col(f"r_{of.count}").isNotNull().alias("is_whole")
    joined = joined.select("*", *counts, is_own, is_whole)  # an expression of its own, so that Spark's code stays short
    joined = joined.select("*", (F.col(f"n_{of.count}") == 0).alias("is_empty"), _is_consistent(of).alias("is_sound"))
    is_done, is_empty = F.col("is_done"), F.col("is_empty")
    values = [
        F.when(~F.col("is_whole"), F.col(f"a_{one.name}"))
        .when(is_done, F.col(f"s_{one.name}"))
        .when(~is_empty | F.lit(one.kind == "count"), _after(of, one.name))
        .alias(one.name)
        for one in of.measures
    ]
    is_lost = ~is_done & (~F.col("is_sound") | (~is_empty & reduce(or_, map(_is_lost, of.measures))))
    is_lost = F.col("is_whole") & F.coalesce(is_lost, F.lit(True))
    return joined.select(*key, "is_whole", is_lost.alias("is_lost"), *values)


def standing(tables: Tables, of: Aggregate, keys: DataFrame) -> DataFrame:
    """Return the stored windows of these keys, with the number of the run that touched each last."""
    few = _few(of, keys)
    if few is None:
        return by_level(of, lambda level: tables.standing(level, None)).join(keys, [LEVEL, *of.key], how="left_semi")
    return by_level(of, lambda level: tables.standing(level, few[level.name]))


def recount(tables: Tables, of: Aggregate, keys: DataFrame, cut: str) -> DataFrame | None:
    """Return the windows of these keys from all their rows that count at a cut; None without a key."""
    few, spans = _few(of, keys), spans_between("{}", cut)
    if few is None:
        rows = tables.rows(of, slices_of(spans, tables.read_ledger(spans)))
        return by_level(of, lambda level: partial_sums(level, in_windows(level, rows, at_level(keys, level))))
    if not few:
        return None
    return by_level(of, lambda level: partial_sums(level, tables.rows_of_windows(level, few[level.name], spans)))


def _few(of: Aggregate, keys: DataFrame) -> Mapping[str, list[dict[str, Any]]] | None:
    """Return keys by level, as values, or None for too many.

    Instants travel as numbers, because a naive one has the machine's zone.
    """
    begin = F.unix_micros(WINDOW_START).alias(WINDOW_START)
    sent = keys.select(LEVEL, *(begin if name == WINDOW_START else F.col(name) for name in of.key))
    rows = sent.limit(SEEKS + 1).collect()
    found = defaultdict[str, list[dict[str, Any]]](list)
    for level, *values in rows:
        one = dict(zip(of.key, values, strict=True))
        found[level].append({**one, WINDOW_START: EPOCH + timedelta(microseconds=one[WINDOW_START])})
    return found if len(rows) <= SEEKS else None


def _named(of: Aggregate, windows: DataFrame, prefix: str, *more: str) -> DataFrame:
    return windows.select(LEVEL, *of.key, *(F.col(name).alias(f"{prefix}_{name}") for name in (*of.values, *more)))


def _after(of: Aggregate, name: str) -> Column:
    """Return a measure after the run, if no removed row held the least or the greatest value."""
    one = next(each for each in of.measures if each.name == name)
    stored, added, removed = (F.col(f"{prefix}_{name}") for prefix in "sar")
    if one.kind == "least":
        return F.least(stored, added)
    if one.kind == "most":
        return F.greatest(stored, added)
    if one.kind == "count":
        return F.col(f"n_{name}")
    return F.when(stored.isNull() & removed.isNull(), added).otherwise(_changed(name))


def _changed(name: str) -> Column:
    stored, added, removed = (F.col(f"{prefix}_{name}") for prefix in "sar")
    return stored + F.coalesce(added, F.lit(0)) - F.coalesce(removed, F.lit(0))


def _is_lost(one: Measure) -> Column:
    """Return True for a value that the removed rows may have taken along.

    A sum of nothing is None and not 0, so a sum that becomes 0 may have lost its last value.
    """
    stored, added, removed = (F.col(f"{prefix}_{one.name}") for prefix in "sar")
    if one.kind == "count":
        return F.lit(False)
    if one.kind == "sum":
        is_open = stored + F.coalesce(added, F.lit(0)) - removed == 0 if one.is_optional else F.lit(False)
        return removed.isNotNull() & F.coalesce(is_open, F.lit(True))
    restored = added <= stored if one.kind == "least" else added >= stored
    reached = removed <= stored if one.kind == "least" else removed >= stored
    return removed.isNotNull() & F.coalesce(reached, F.lit(True)) & ~F.coalesce(restored, F.lit(False))


def _is_consistent(of: Aggregate) -> Column:
    """Return True where the stored window held the removed rows: no count is negative, and an empty window has none."""
    rows = F.col(f"n_{of.count}")
    counts = [F.col(f"n_{name}") for name in counts_of(of)]
    return reduce(and_, [(each >= 0) & (each <= rows) for each in counts])

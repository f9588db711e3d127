"""Retraction is arithmetic: a window that lost rows is its stored window, plus the added rows, minus the removed ones.

Counts and sums are subtracted. Only where a removed row held the least or the greatest value, and no added row restores
it, the window is computed again: one of the finest level from its rows, and one of a coarser level from its finer
windows, or from its rows where some of these are missing. Key and time find the rows.
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
from core.model.rows import OURS
from jobs.quality import CountedCommits
from jobs.ranges import replayed_spans, slices_of, spans_between
from jobs.tables import Run, Tables
from jobs.transforms import (
    LEVEL,
    at_level,
    begun,
    by_level,
    counts_of,
    in_windows,
    leveled,
    partial_sums,
    snapshot,
    whole,
)

IS_LOST = f"{OURS}is_lost"  # of a whole window whose values arithmetic does not tell
_IS_SOUND, _IS_DONE, _IS_EMPTY, _ROWS = (f"{OURS}{name}" for name in ("is_sound", "is_done", "is_empty", "rows"))
SEEKS = 100_000  # windows that are sought one by one; more are found by a join with the whole table


@dataclass(frozen=True, slots=True)
class Delta:
    """The finest windows of the rows that a run adds and removes. `removed` is None when no replay is in the run.

    Both follow from the run's cuts, whenever they are read.
    """

    added: DataFrame
    removed: DataFrame | None
    commits: CountedCommits


def delta_of(tables: Tables, of: Aggregate, run: Run) -> Delta:
    """Return the windows that a run adds and removes."""
    spans = spans_between(run.cut_from, run.cut_to)
    ledger = tables.read_ledger(spans)
    commits = CountedCommits(spans, slices_of(spans, ledger), tables.read_written(spans))
    added = partial_sums(of, tables.rows(of, commits.slices))
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
    found = after.where(~F.col(IS_LOST)).select(*key, "is_whole", *of.values)
    return _with_lost(tables, of, found, after.where(IS_LOST), run)


def subtracted(of: Aggregate, stored: DataFrame, added: DataFrame, removed: DataFrame, run_number: int) -> DataFrame:
    """Return the windows of a run: those that lose rows whole, and the parts of the others.

    A window that this run has touched is its own result already: its slice was committed from a different attempt.
    """
    sides = [_named(of, removed, "r"), _named(of, stored, "s", "run_number"), _named(of, added, "a")]
    side_by_side = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), sides)
    key = [LEVEL, *of.key]
    joined = side_by_side.groupBy(*key).agg(*(F.max(name).alias(name) for name in side_by_side.drop(*key).columns))
    counts = [_changed(name).alias(_of("n", name)) for name in counts_of(of)]
    is_own = F.coalesce(F.col(_of("s", "run_number")) == run_number, F.lit(False)).alias(_IS_DONE)
    is_whole = F.col(_of("r", of.count)).isNotNull().alias("is_whole")
    joined = joined.select("*", *counts, is_own, is_whole)  # a separate expression, so that Spark's code stays short
    joined = joined.select("*", (F.col(_of("n", of.count)) == 0).alias(_IS_EMPTY), _is_consistent(of).alias(_IS_SOUND))
    is_done, is_empty = F.col(_IS_DONE), F.col(_IS_EMPTY)
    values = [
        F.when(~F.col("is_whole"), F.col(_of("a", one.name)))
        .when(is_done, F.col(_of("s", one.name)))
        .when(~is_empty | F.lit(one.kind == "count"), _after(of, one.name))
        .alias(one.name)
        for one in of.measures
    ]
    is_lost = ~is_done & (~F.col(_IS_SOUND) | (~is_empty & reduce(or_, map(_is_lost, of.measures))))
    is_lost = F.col("is_whole") & F.coalesce(is_lost, F.lit(True))
    return joined.select(*key, "is_whole", is_lost.alias(IS_LOST), _IS_SOUND, *values)


def standing(tables: Tables, of: Aggregate, keys: DataFrame) -> DataFrame:
    """Return the stored windows of these keys, with the number of the run that touched each last."""
    few = _few(of, keys)
    if few is None:
        return by_level(of, lambda level: tables.standing(level, None)).join(keys, [LEVEL, *of.key], how="left_semi")
    return by_level(of, lambda level: tables.standing(level, few[level.name]))


def _with_lost(tables: Tables, of: Aggregate, found: DataFrame, lost: DataFrame, run: Run) -> DataFrame:
    """Add the windows that arithmetic cannot compute to those of a run: from finer windows or from rows."""
    cut, key, few = spans_between("{}", run.cut_to), [LEVEL, *of.key], _few(of, lost)
    if few is None:
        rows = tables.rows(of, slices_of(cut, tables.read_ledger(cut)))
        every = by_level(of, lambda level: partial_sums(level, in_windows(level, rows, at_level(lost, level))))
        return found.unionByName(whole(of, every, lost))
    for finer, level in zip((None, *of.levels), of.levels, strict=False):
        keys, wanted = lost.where(F.col(LEVEL) == level.name), few[level.name]
        steps = range(0 if finer is None else level.window // finer.window)
        inner = [
            {**one, WINDOW_START: one[WINDOW_START] + step * finer.window}
            for one in wanted for step in steps if finer is not None
        ]  # fmt: skip
        if finer is not None and 0 < len(inner) <= SEEKS:
            after = snapshot(finer, tables.standing(finer, inner), at_level(found, finer))
            again = rolled_up(level, after, keys).localCheckpoint()
            found, keys = found.unionByName(again), keys.join(again, key, how="left_anti")
            wanted = (_few(of, keys) or {}).get(level.name, [])
        if wanted:
            again = partial_sums(level, tables.rows_of_windows(level, wanted, cut)).withColumn(LEVEL, F.lit(level.name))
            found = found.unionByName(whole(of, again, keys)).localCheckpoint()
    return found


def rolled_up(level: Aggregate, finer: DataFrame, lost: DataFrame) -> DataFrame:
    """Return those of some lost windows whose finer windows, after the run, count as many rows as arithmetic says.

    The others lack finer windows, which retention removed, or a different attempt has just committed some of these.
    """
    key = [LEVEL, *level.key]
    counted = lost.where(_IS_SOUND).select(*key, F.col(level.count).alias(_ROWS))
    both = begun(level, finer).withColumn(LEVEL, F.lit(level.name)).join(counted, key)
    return both.where(F.col(level.count) == F.col(_ROWS)).select(*key, F.lit(True).alias("is_whole"), *level.values)


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


def _of(side: str, name: str) -> str:
    """Return the column of a value: stored, added, removed, or the count after the run (n)."""
    return f"{OURS}{side}_{name}"


def _named(of: Aggregate, windows: DataFrame, side: str, *more: str) -> DataFrame:
    return windows.select(LEVEL, *of.key, *(F.col(name).alias(_of(side, name)) for name in (*of.values, *more)))


def _after(of: Aggregate, name: str) -> Column:
    """Return a measure after the run, if no removed row held the least or the greatest value."""
    one = next(each for each in of.measures if each.name == name)
    stored, added, removed = (F.col(_of(side, name)) for side in "sar")
    if one.kind == "least":
        return F.least(stored, added)
    if one.kind == "most":
        return F.greatest(stored, added)
    if one.kind == "count":
        return F.col(_of("n", name))
    return F.when(stored.isNull() & removed.isNull(), added).otherwise(_changed(name))


def _changed(name: str) -> Column:
    stored, added, removed = (F.col(_of(side, name)) for side in "sar")
    return stored + F.coalesce(added, F.lit(0)) - F.coalesce(removed, F.lit(0))


def _is_lost(one: Measure) -> Column:
    """Return True for a value that the removed rows may have taken along.

    A sum of nothing is None and not 0, so a sum that becomes 0 may have lost its last value.
    """
    stored, added, removed = (F.col(_of(side, one.name)) for side in "sar")
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
    rows = F.col(_of("n", of.count))
    counts = [F.col(_of("n", name)) for name in counts_of(of)]
    return reduce(and_, [(each >= 0) & (each <= rows) for each in counts])

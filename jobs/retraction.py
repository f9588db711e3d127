"""Retraction is arithmetic: a window that lost rows is its stored window, plus the added rows, minus the removed ones.

Counts and sums are subtracted. Only where a removed row held the least or the greatest value, and no added row restores
it, the window is recomputed from its rows, which its key and its time find.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from core.model.aggregates import WINDOW_START, Aggregate, Measure
from jobs.quality import NO_COMMITS, Commits, counted_columns
from jobs.ranges import CommitSpan, replayed_spans, slices_of, spans_between
from jobs.tables import Run, Tables
from jobs.transforms import in_windows, partial_sums, parts, whole

SEEKS = 100_000  # windows that are sought one by one; more are found by a join with the whole table
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Delta:
    """The windows of the rows that a run adds, and of those that it removes; None when no replay is in the run.

    Both follow from the run's cuts, whenever they are read. `added` has the columns of `counted_columns` too.
    """

    added: DataFrame
    removed: DataFrame | None
    commits: Commits = NO_COMMITS


def delta_of(tables: Tables, of: Aggregate, run: Run) -> Delta:
    """Return the windows that a run adds and removes."""
    spans = spans_between(run.cut_from, run.cut_to)
    ledger = tables.read_ledger(spans)
    commits = Commits(spans, slices_of(spans, ledger), tables.read_written(spans))
    added = partial_sums(of, tables.rows(of, commits.slices), counted_columns(of))
    replayed = replayed_spans(spans, ledger)
    if not replayed:
        return Delta(added, None, commits)
    removed = partial_sums(of, tables.removed(of, replayed))
    return Delta(added.localCheckpoint(), removed.localCheckpoint(), commits)


def windows_after(tables: Tables, of: Aggregate, delta: Delta, run: Run) -> DataFrame:
    """Return the windows of a run: whole ones where it removes rows, and parts to add to the others.

    The stored windows are read once, because slices of the run may be committed at the same time.
    """
    if delta.removed is None:
        return parts(of, delta.added)
    keys = delta.removed.select(*of.key)
    stored = standing(tables, of, keys)
    after = subtracted(of, stored, delta, run.run_number).localCheckpoint()
    sound = after.where(~F.col("is_lost"))
    others = parts(of, delta.added.join(keys, list(of.key), how="left_anti"))
    lost = after.where(F.col("is_lost")).select(*of.key)
    if lost.isEmpty():
        return others.unionByName(whole(of, sound))
    again = recount(tables, of, lost, run.cut_to)
    found = lost.join(again, list(of.key), how="left").fillna(0, _counts(of))
    return others.unionByName(whole(of, sound)).unionByName(whole(of, found))


def subtracted(of: Aggregate, stored: DataFrame, delta: Delta, run_number: int) -> DataFrame:
    """Return the removed windows after the run, with `is_lost` where arithmetic does not tell their values.

    A window that this run has touched is its own result already: its slice was committed from a different attempt.
    """
    removed, key = delta.removed, list(of.key)
    if removed is None:
        raise ValueError("the run removes nothing")
    joined = (
        _named(of, removed, "r")
        .join(_named(of, stored, "s", "run_number"), key, how="left")
        .join(_named(of, delta.added, "a"), key, how="left")
    )
    counts = [_changed(name).alias(f"n_{name}") for name in _counts(of)]
    is_own = F.coalesce(F.col("s_run_number") == run_number, F.lit(False)).alias("is_done")
    joined = joined.select("*", *counts, is_own)  # an expression of its own, so that Spark's code stays short
    joined = joined.select("*", (F.col(f"n_{of.count}") == 0).alias("is_empty"), _is_consistent(of).alias("is_sound"))
    is_done, is_empty = F.col("is_done"), F.col("is_empty")
    values = [
        F.when(is_done, F.col(f"s_{one.name}"))
        .when(~is_empty | F.lit(one.kind == "count"), _after(of, one.name))
        .alias(one.name)
        for one in of.measures
    ]
    is_lost = ~is_done & (~F.col("is_sound") | (~is_empty & _any([_is_lost(one) for one in of.measures])))
    return joined.select(*key, F.coalesce(is_lost, F.lit(True)).alias("is_lost"), *values)


def standing(tables: Tables, of: Aggregate, keys: DataFrame) -> DataFrame:
    """Return the stored windows of these keys, with the number of the run that touched each last."""
    few = _few(of, keys)
    if few is None:
        return tables.standing(of, None).join(keys, list(of.key), how="left_semi")
    return tables.standing(of, few)


def recount(tables: Tables, of: Aggregate, keys: DataFrame, cut: str) -> DataFrame:
    """Return the windows of these keys from all their rows that count at a cut."""
    few = _few(of, keys)
    if few is None:
        return partial_sums(of, in_windows(of, all_rows(tables, of, cut), keys))
    return partial_sums(of, tables.rows_of_windows(of, few, spans_between("{}", cut)))


def all_rows(tables: Tables, of: Aggregate, cut: str) -> DataFrame:
    """Return all rows that count at a cut."""
    spans: list[CommitSpan] = spans_between("{}", cut)
    return tables.rows(of, slices_of(spans, tables.read_ledger(spans)))


def _few(of: Aggregate, keys: DataFrame) -> Sequence[dict[str, Any]] | None:
    """Return keys as values, or None for too many. Instants travel as numbers: a naive one has the machine's zone."""
    begin = F.unix_micros(WINDOW_START).alias(WINDOW_START)
    sent = keys.select(*(begin if name == WINDOW_START else F.col(name) for name in of.key))
    found = sent.limit(SEEKS + 1).collect()
    if len(found) > SEEKS:
        return None
    return [{**row.asDict(), WINDOW_START: _EPOCH + timedelta(microseconds=row[WINDOW_START])} for row in found]


def _named(of: Aggregate, windows: DataFrame, prefix: str, *more: str) -> DataFrame:
    return windows.select(*of.key, *(F.col(name).alias(f"{prefix}_{name}") for name in (*of.values, *more)))


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
    counts = [F.col(f"n_{name}") for name in _counts(of)]
    return reduce(Column.__and__, [(each >= 0) & (each <= rows) for each in counts])


def _counts(of: Aggregate) -> list[str]:
    return [one.name for one in of.measures if one.kind == "count"]


def _any(found: Sequence[Column]) -> Column:
    return reduce(Column.__or__, found)

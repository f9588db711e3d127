"""The comparison of stored windows with right ones while runs go on: each slice as the newest run left it.

A stored window carries the number of the run that touched it last. Up to the run of its slice, it must equal the window
at the cut of that run. A later run may have touched it since: then the next look decides. A missing window is lost,
unless a later run has committed its slice in the meantime, because that run may have removed the window.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from core.aggregation.runs import Days
from core.model.aggregates import SLICES, WINDOW_START, Aggregate
from core.model.rows import OURS
from jobs.tables import Run
from jobs.transforms import EXACT, exact_values, slice_of

NO_RUN = 0  # the number before that of the first run
RIGHT, STORED, VERDICT = f"{OURS}right", f"{OURS}stored", f"{OURS}verdict"
EQUAL, DIFFERING, MOVED = "equal", "differing", "moved"


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """The slices from `first` up to and without `end`, as the run of a number left them, at its cut."""

    number: int
    cut: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class SliceFigures:
    """The windows of a slice: those that were compared, those of them that differ, and those that moved on."""

    number: int
    compared: int
    differing: int
    moved: int


def targets(committed: Run | None, later: Sequence[Run]) -> list[ComparedTable]:
    """Return all slices as the newest of these runs left them; `later` runs may have committed a part of the slices."""
    found, first = list[ComparedTable](), 0
    for run in [*sorted(later, key=lambda one: -one.run_number), *([committed] if committed else [])]:
        if run.slices > first:
            found.append(ComparedTable(run.run_number, run.cut_to, first, run.slices))
            first = run.slices
    return found if first == SLICES else [*found, ComparedTable(NO_RUN, "{}", first, SLICES)]


def side_by_side(of: Aggregate, right: DataFrame, standing: DataFrame) -> DataFrame:
    """Return the `right` and the `stored` values of each key, of which one may be missing."""
    exact = exact_values(of)
    key, values = list(of.key), F.struct(*(F.col(one).cast(EXACT) if one in exact else F.col(one) for one in of.values))
    one, other = right.select(*key, values.alias(RIGHT)), standing.select(*key, values.alias(STORED), "run_number")
    joined = one.join(other, key, how="full_outer")
    return joined.select(slice_of(of).alias("slice"), *key, RIGHT, STORED, "run_number")


def judged(windows: DataFrame, wanted: Sequence[ComparedTable], later: Sequence[Run]) -> DataFrame:
    """Add a `verdict` to windows that are side by side.

    `later` are the runs after those of the targets that had committed slices after the stored windows were read.
    """
    here, number = F.col("slice"), F.lit(NO_RUN)
    for one in wanted:
        number = F.when((here >= one.first) & (here < one.end), one.number).otherwise(number)
    after = [(run, (here < run.slices) & (F.lit(run.run_number) > number)) for run in later]
    touched = _any(is_after for _, is_after in after)
    touched_it = _any(is_after & (F.col("run_number") == run.run_number) for run, is_after in after)
    moved = F.when(F.col(STORED).isNull(), touched).otherwise(touched_it)
    equal = F.col(RIGHT).eqNullSafe(F.col(STORED))
    return windows.withColumn(VERDICT, F.when(moved, MOVED).when(equal, EQUAL).otherwise(DIFFERING))


def figures(windows: DataFrame) -> tuple[list[SliceFigures], dict[str, Days]]:
    """Return the figures of each slice of judged windows, and the days of the windows of each verdict, in UTC."""
    at = F.to_date(WINDOW_START)
    found = windows.groupBy("slice", VERDICT).agg(F.count(F.lit(1)), F.min(at), F.max(at)).collect()
    counts = defaultdict[int, Counter[str]](Counter)
    days = defaultdict[str, list[date]](list)
    for number, verdict, count, first, last in found:
        counts[number][verdict] = count
        days[verdict] += [first, last]
    slices = [
        SliceFigures(number, one[EQUAL] + one[DIFFERING], one[DIFFERING], one[MOVED])
        for number, one in sorted(counts.items())
    ]
    return slices, {verdict: Days(min(some), max(some)) for verdict, some in days.items()}


def differences(of: Aggregate, windows: DataFrame, most: int) -> list[dict[str, object]]:
    """Return the first windows that differ, with both values: one that is missing is None."""
    found = windows.where(F.col(VERDICT) == DIFFERING).orderBy(*of.key)
    rows = found.select(*of.key, RIGHT, STORED, "run_number").take(most)
    return [_plain(row.asDict(recursive=True)) for row in rows]


def _plain(found: dict[str, object]) -> dict[str, object]:
    """Return the values of a row with whole numbers in place of decimals, under the names for a reader."""
    shown: dict[str, object] = {}
    for name, value in found.items():
        shown[name.removeprefix(OURS)] = (
            _plain(value) if isinstance(value, dict) else int(value) if isinstance(value, Decimal) else value
        )
    return shown


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions, F.lit(False))

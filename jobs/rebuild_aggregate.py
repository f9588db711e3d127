"""Compute an aggregate again from all its rows, and compare it with the stored one, which may go on meanwhile.

A stored window carries the number of the run that touched it last. Up to the run of its slice, it must equal the window
at the cut of that run. A later run may have touched it since: then the next look decides. A missing window is lost,
unless a later run has committed its slice in the meantime, because that run may have removed the window.

The job writes nothing. It looks up to five times, each time at the windows that runs touched since the look before. It
prints one JSON object with the figures of each slice of each level, [compared, differing, moved], and each difference
on standard error. It ends with 0 when nothing differs, with 1 when something does, and with 3 when nothing could be
compared, because runs touched every window during each look.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from core.aggregation.runs import ALL_DAYS, Days
from core.model.aggregates import SLICES, WINDOW_START, Aggregate
from core.model.rows import OURS
from core.transforms.loading import find_aggregate, import_transform
from jobs.history import History, within
from jobs.lake_files import open_lake
from jobs.session import close_session, open_session, open_tables, parser_of
from jobs.tables import Run, Tables
from jobs.transforms import EXACT, exact_values, partial_sums, slice_of, stored_at

SHOWN = 20  # differing windows
LOOKS = 5
NEWEST = 2**63 - 1
SAME, DIFFERENT, NOTHING_COMPARED = 0, 1, 3
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
    """Return all slices as the newest of these runs left them. `later` runs may have committed a part of the slices."""
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


@dataclass(frozen=True, slots=True)
class WindowLook:
    """One look at the aggregate: its targets, the figures of its slices, and the differences."""

    targets: tuple[ComparedTable, ...]
    slices: tuple[SliceFigures, ...]
    shown: tuple[Mapping[str, object], ...] = ()
    days: Days | None = None

    @property
    def moved(self) -> int:
        """The number of windows that a later run touched."""
        return sum(one.moved for one in self.slices)


@dataclass(frozen=True, slots=True)
class RebuildComparison:
    """The result of a rebuild."""

    looks: tuple[WindowLook, ...] = ()

    @property
    def compared(self) -> int:
        """The number of windows that were compared."""
        return sum(one.compared for one in self._all)

    @property
    def differing(self) -> int:
        """The number of windows that differ."""
        return sum(one.differing for one in self._all)

    @property
    def moved(self) -> int:
        """The number of windows that runs touched during each look."""
        return self.looks[-1].moved

    @property
    def shown(self) -> list[str]:
        """The first windows that differ."""
        return [str(one) for look in self.looks for one in look.shown][:SHOWN]

    @property
    def days(self) -> list[str]:
        """The first and the last day of the windows that differ, for a repair."""
        found = [str(day) for look in self.looks if look.days for day in (look.days.since, look.days.until)]
        return [min(found), max(found)] if found else []

    @property
    def exit_code(self) -> int:
        """The exit code of the job."""
        if self.moved and not self.compared:
            return NOTHING_COMPARED
        return DIFFERENT if self.differing else SAME

    def figures(self) -> dict[str, object]:
        """Return the figures of the comparison, as the job prints them."""
        runs = [{"number": one.number, "slices": [one.first, one.end - 1]} for one in self.looks[0].targets]
        counts = {"compared": self.compared, "differing": self.differing, "moved": self.moved, "days": self.days}
        last = {one.number: one.moved for one in self.looks[-1].slices}
        slices: dict[int, list[int]] = {}
        for one in self._all:
            compared, differing, _ = slices.get(one.number, [0, 0, 0])
            slices[one.number] = [compared + one.compared, differing + one.differing, last.get(one.number, 0)]
        return {"runs": runs, "looks": len(self.looks), **counts, "slices": slices}

    @property
    def _all(self) -> list[SliceFigures]:
        return [one for look in self.looks for one in look.slices]


@dataclass
class Rebuild:
    """An aggregate of a job that is looked at. `left` are the keys that the last look left open, or None for all."""

    tables: Tables
    job: str
    of: Aggregate
    history: History
    days: Days = ALL_DAYS
    left: DataFrame | None = None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def targets(self) -> tuple[ComparedTable, ...]:
        """Return the slices as the newest runs that the history covers left them."""
        return tuple(targets(*self._runs()))

    def look(self, wanted: Sequence[ComparedTable]) -> WindowLook:
        """Compare the windows that are left."""
        stored = within(stored_at(self.of, self.tables.standing(self.of, None), self.now), WINDOW_START, self.days)
        right = reduce(DataFrame.unionByName, map(self._right_at, wanted))
        found = side_by_side(self.of, self._of_left(right), self._of_left(stored)).persist()
        found.count()  # the stored windows are read now, before the runs that may have touched them
        later = self.tables.read_later(self.job, min(one.number for one in wanted))
        windows = judged(found, wanted, later)
        slices, days = figures(windows)
        if MOVED in days:
            moved = windows.where(windows[VERDICT] == MOVED).select(*self.of.key)
            self.left, self.days = moved.localCheckpoint(), days[MOVED]  # plans must not nest
        shown = differences(self.of, windows, SHOWN) if DIFFERING in days else ()
        found.unpersist()
        return WindowLook(tuple(wanted), tuple(slices), tuple(shown), days.get(DIFFERING))

    def _runs(self) -> tuple[Run | None, Sequence[Run]]:
        """Return the newest committed run that the history covers, and those after it that it covers too."""
        committed = self.tables.read_committed(self.job, NEWEST)
        while committed is not None and not self.history.covers(self.of, committed.cut_to):
            committed = self.tables.read_committed(self.job, committed.run_number)
        later = self.tables.read_later(self.job, 0 if committed is None else committed.run_number)
        return committed, [run for run in later if self.history.covers(self.of, run.cut_to)]

    def _right_at(self, wanted: ComparedTable) -> DataFrame:
        rows = self.history.rows(self.of, wanted.cut, self.days)
        if wanted.end - wanted.first < SLICES:
            rows = rows.where(slice_of(self.of).between(wanted.first, wanted.end - 1))
        return stored_at(self.of, partial_sums(self.of, rows), self.now)

    def _of_left(self, windows: DataFrame) -> DataFrame:
        return windows if self.left is None else windows.join(self.left, list(self.of.key), how="left_semi")


def rebuild(
    tables: Tables, of: Aggregate, days: Days = ALL_DAYS, history: History | None = None, job: str | None = None
) -> RebuildComparison:
    """Compare the windows of some days with those of their rows, by default with the rows in SQL.

    `job` is the job of a level. By default the aggregate is the finest level, which has its name.
    """
    windows, looks = Rebuild(tables, job or of.name, of, history or History(tables), days), list[WindowLook]()
    while len(looks) < LOOKS and (not looks or looks[-1].moved):
        wanted = windows.targets()
        if looks and wanted == looks[-1].targets:
            break  # the history has not reached the runs that touched the windows
        looks.append(windows.look(wanted))
    return RebuildComparison(tuple(looks))


def main(arguments: list[str] | None = None) -> int:
    """Run the job and return its exit code."""
    parser = parser_of("rebuild_aggregate", __doc__)
    parser.add_argument("name", help="the name of the aggregate")
    parser.add_argument("--since", type=date.fromisoformat, help="the first day, in UTC; default: all before")
    parser.add_argument("--until", type=date.fromisoformat, help="the last day, in UTC; default: all after")
    parser.add_argument("--lake", help="a folder or an address; default: the rows are read from SQL")
    parser.add_argument("--lake-state", help="as `python -m handlers.commands rebuild-arguments` prints it")
    given = parser.parse_args(arguments)
    import_transform(given.transform)
    spark = open_session(f"rebuild-{given.name}")
    tables = open_tables(spark, given.store)
    history = History(tables, None if given.lake is None else open_lake(spark, given.lake, given.lake_state))
    of, days = find_aggregate(given.name), Days(given.since, given.until)
    found = {level.name: rebuild(tables, level, days, history, of.name) for level in of.levels}
    print(json.dumps({name: one.figures() for name, one in found.items()}))
    for name, one in found.items():
        for text in one.shown:
            print(f"difference: {name} {text}", file=sys.stderr)
    close_session(spark)
    codes = {one.exit_code for one in found.values()}
    return DIFFERENT if DIFFERENT in codes else max(codes)


if __name__ == "__main__":
    sys.exit(main())

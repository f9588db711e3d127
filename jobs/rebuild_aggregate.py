"""Compute an aggregate again from all its rows, and compare it with the stored one, which may go on meanwhile.

The job writes nothing. It looks up to five times, each time at the windows that runs touched since the look before. It
prints one JSON object with the figures of each slice of each level, [compared, differing, moved], and each difference
on standard error. It ends with 0 when nothing differs, with 1 when something does, and with 3 when nothing could be
compared, because runs touched every window during each look.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import reduce

from pyspark.sql import DataFrame

from core.aggregation.runs import ALL_DAYS, Days
from core.model.aggregates import SLICES, WINDOW_START, Aggregate
from core.transforms.loading import find_aggregate, import_transform
from jobs.comparison import (
    DIFFERING,
    MOVED,
    VERDICT,
    ComparedTable,
    SliceFigures,
    differences,
    figures,
    judged,
    side_by_side,
    targets,
)
from jobs.history import History, within
from jobs.lake_files import open_lake
from jobs.session import close_session, open_session, open_tables, parser_of
from jobs.tables import Run, Tables
from jobs.transforms import partial_sums, slice_of, stored_at

SHOWN = 20  # differing windows
LOOKS = 5
NEWEST = 2**63 - 1
SAME, DIFFERENT, NOTHING_COMPARED = 0, 1, 3


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
        return {"runs": runs, "looks": len(self.looks), **counts, "slices": self._by_slice()}

    @property
    def _all(self) -> list[SliceFigures]:
        return [one for look in self.looks for one in look.slices]

    def _by_slice(self) -> dict[int, list[int]]:
        last = {one.number: one.moved for one in self.looks[-1].slices}
        found: dict[int, list[int]] = {}
        for one in self._all:
            compared, differing, _ = found.get(one.number, [0, 0, 0])
            found[one.number] = [compared + one.compared, differing + one.differing, last.get(one.number, 0)]
        return found


@dataclass
class Rebuild:
    """An aggregate of a job that is looked at. `left` are the keys that the look before could not decide; None: all."""

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
        found = side_by_side(self.of, self._right(wanted), self._standing()).persist()
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

    def _right(self, wanted: Sequence[ComparedTable]) -> DataFrame:
        return self._of_left(reduce(DataFrame.unionByName, map(self._right_at, wanted)))

    def _right_at(self, wanted: ComparedTable) -> DataFrame:
        rows = self.history.rows(self.of, wanted.cut, self.days)
        if wanted.end - wanted.first < SLICES:
            rows = rows.where(slice_of(self.of).between(wanted.first, wanted.end - 1))
        return stored_at(self.of, partial_sums(self.of, rows), self.now)

    def _standing(self) -> DataFrame:
        stored = stored_at(self.of, self.tables.standing(self.of, None), self.now)
        return self._of_left(within(stored, WINDOW_START, self.days))

    def _of_left(self, windows: DataFrame) -> DataFrame:
        return windows if self.left is None else windows.join(self.left, list(self.of.key), how="left_semi")


def rebuild(
    tables: Tables, of: Aggregate, days: Days = ALL_DAYS, history: History | None = None, job: str | None = None
) -> RebuildComparison:
    """Compare the windows of some days with those that their rows have; by default those in SQL.

    `job` is the job of a level; by default the aggregate is the finest level, which has its name.
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

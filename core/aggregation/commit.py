"""The commit of a run, slice by slice: a slice is all windows of some values of the first column of the key,
in all levels of the aggregate.

Each portion of slices is one short transaction with its mark, the number of slices that the run has committed. So a
tick that dies, or whose time is over, leaves whole slices, and the next tick continues after them. The slices of a run
may come from results of different attempts, because every complete result has the same right to be committed. The cut
moves when all slices are in.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby

from core.aggregation.runs import AggregationRun, Part, Portion, Staged, StagedSlice
from core.aggregation.store.commits import Aggregations
from core.model.aggregates import SLICES
from core.model.locks import ROWS_AT_ONCE
from core.transforms.aggregates import find_aggregate

PORTION = ROWS_AT_ONCE  # windows of a transaction at most, unless its only slice has more
LEAST = 500  # windows, on the slowest disk
SLOW = timedelta(milliseconds=150)  # a transaction that took longer is followed by one of half as many windows
FAST = SLOW / 3  # a transaction that took less is followed by one of twice as many
HELD = "another tick was first, or a person has paused the job"


def commit_run(
    store: Aggregations, run: AggregationRun, staged: Staged, now: Callable[[], datetime], until: datetime
) -> str:
    """Commit the slices of a run that are not in yet, as far as the time goes, and close it after the last.

    Returns the result in words; raises StagingRefused for a result that is not what its job staged.
    """
    slices = store.read_slices(staged)
    _check(run, staged, slices)
    size, at = PORTION, now()
    while portion := next_portion(slices, run.committed_slices, size):
        if at >= until:
            return f"committed {run.committed_slices} of {SLICES} slices"
        if not store.commit_portion(run, staged, portion):
            return HELD
        run, begun, at = replace(run, committed_slices=portion.last + 1), at, now()
        size = size_after(size, at - begun)
    return "committed" if store.close_run(run, staged, now()) else HELD


def size_after(size: int, taken: timedelta) -> int:
    """Return the number of windows of the next transaction, so that no writer waits long; the last one took `taken`."""
    wanted = size // 2 if taken > SLOW else 2 * size if taken < FAST else size
    return min(PORTION, max(LEAST, wanted))


def _check(run: AggregationRun, staged: Staged, slices: Sequence[StagedSlice]) -> None:
    """Refuse a result of a job that knew different levels, and one whose facts are incomplete."""
    declared = {one.name for one in find_aggregate(run.job).levels}
    if declared != staged.levels.keys():
        raise staged.refusal(f"it has the levels {_names(staged.levels)} and not {_names(declared)}")
    counted: Counter[str] = Counter()
    for one in slices:
        counted[one.level] += one.windows
    if +counted != +Counter(staged.levels) or any(one.number >= SLICES for one in slices):
        raise staged.refusal("the facts of some slices are missing or changed")


def _names(levels: Iterable[str]) -> str:
    return ", ".join(sorted(levels)) or "none"


def next_portion(slices: Sequence[StagedSlice], first: int, size: int) -> Portion | None:
    """Return the next portion of ordered slices, which begins at the number `first`; None when no slice is left.

    A portion has at most `size` windows, unless its only slice has more. The last portion ends with the last slice.
    """
    windows, members = 0, list[StagedSlice]()
    left = (one for one in slices if one.number >= first)
    for _, levels in groupby(left, key=lambda one: one.number):
        of_slice = list(levels)
        windows += sum(one.windows for one in of_slice)
        if members and windows > size:
            return Portion(first, members[-1].number, _parts(members))
        members += of_slice
    return Portion(first, SLICES - 1, _parts(members)) if members else None


def _parts(members: Sequence[StagedSlice]) -> tuple[Part, ...]:
    levels: dict[str, list[StagedSlice]] = {}
    for one in members:
        levels.setdefault(one.level, []).append(one)
    return tuple(Part(name, len(each), any(one.whole_windows for one in each)) for name, each in levels.items())

"""The commit of a run, slice by slice: a slice is all windows of some values of the first column of the key.

Each portion of slices is one short transaction with its mark, the number of slices that the run has committed. So a
tick that dies, or whose time is over, leaves whole slices, and the next tick continues after them. The slices of a run
may come from results of different attempts, because every complete result has the same right to be committed. The cut
moves when all slices are in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from core.aggregation.runs import AggregationRun, Staged, StagedSlice
from core.errors import StagingRefused
from core.model.aggregates import SLICES

PORTION = 8_000  # windows of a transaction at most, if a slice has no more: a tenth of a second into SQLite
LEAST = 500  # windows, on the slowest disk
SLOW = timedelta(milliseconds=150)  # a transaction that took longer is followed by one of half as many windows
FAST = SLOW / 3  # a transaction that took less is followed by one of twice as many
HELD = "another tick was first, or a person has paused the job"


@dataclass(frozen=True, slots=True)
class Portion:
    """The slices from `first` to `last`, of which `staged` have `windows`. `has_whole`: some replace stored windows."""

    first: int
    last: int
    staged: int
    windows: int
    has_whole: bool


class Committing(Protocol):
    """The part of the store that a commit needs."""

    def read_slices(self, staged: Staged) -> tuple[StagedSlice, ...]: ...

    def commit_portion(self, run: AggregationRun, staged: Staged, portion: Portion) -> bool: ...

    def close_run(self, run: AggregationRun, staged: Staged, closed_at: datetime) -> bool: ...


def commit_run(
    store: Committing, run: AggregationRun, staged: Staged, now: Callable[[], datetime], until: datetime
) -> str:
    """Commit the slices of a run that are not in yet, as far as the time goes, and close it after the last.

    Returns the result in words; raises StagingRefused for a result that is not what its job staged.
    """
    slices = store.read_slices(staged)
    if sum(one.windows for one in slices) != staged.windows or any(one.number >= SLICES for one in slices):
        raise refusal(staged, "the facts of some slices are missing or changed")
    size, at = PORTION, now()
    while left := portions(slices, run.committed_slices, size):
        if at >= until:
            return f"committed {run.committed_slices} of {SLICES} slices"
        if not store.commit_portion(run, staged, left[0]):
            return HELD
        run, begun, at = replace(run, committed_slices=left[0].last + 1), at, now()
        size = size_after(size, at - begun)
    return "committed" if store.close_run(run, staged, now()) else HELD


def refusal(staged: Staged, what: str) -> StagingRefused:
    """Return the error of a result that is not what its job staged."""
    return StagingRefused(
        f"staging {staged.staging_id} is refused: {what}; the next attempt of the run stages it again"
    )


def size_after(size: int, taken: timedelta) -> int:
    """Return the windows of the next transaction after one that took this time, so that no writer waits long."""
    wanted = size // 2 if taken > SLOW else 2 * size if taken < FAST else size
    return min(PORTION, max(LEAST, wanted))


def portions(slices: Sequence[StagedSlice], committed: int, size: int = PORTION) -> list[Portion]:
    """Return the portions of the slices from the number `committed` on, of `size` windows at most if a slice has no
    more; the last one ends with the last slice."""
    found: list[Portion] = []
    first, windows, members = committed, 0, list[StagedSlice]()
    for one in (one for one in slices if one.number >= committed):
        if members and windows + one.windows > size:
            found.append(_portion(first, members[-1].number, members))
            first, windows, members = members[-1].number + 1, 0, []
        windows += one.windows
        members.append(one)
    return [*found, _portion(first, SLICES - 1, members)] if members else found


def _portion(first: int, last: int, members: Sequence[StagedSlice]) -> Portion:
    windows = sum(one.windows for one in members)
    return Portion(first, last, len(members), windows, any(one.whole_windows for one in members))

"""core/aggregation/tick.py: the size of the transactions follows the disk."""

from datetime import datetime, timedelta

from core.aggregation.runs import AggregationRun, Cut, Portion, Staged, StagedSlice
from core.aggregation.store import Aggregations
from core.aggregation.tick import LEAST, PORTION, SLOW, commit_run, size_after
from core.model.aggregates import SLICES
from tests.fakes.aggregation_engines import HOME_ACTIVITY, levels_of
from tests.fakes.builders import EPOCH

WINDOWS = PORTION // 8  # of each slice
RUN = AggregationRun("r", HOME_ACTIVITY, 1, Cut("{}"), Cut("{}"), "local", 1, 1, "submitted", EPOCH, EPOCH)


class Disk(Aggregations):
    """A store whose transactions take some time for each window, and a clock that shows it."""

    def __init__(self, cost: timedelta, better_after: int = SLICES) -> None:
        self.cost, self.better_after = cost, better_after
        self.at = EPOCH
        self.committed: list[int] = []

    def now(self) -> datetime:
        return self.at

    def read_slices(self, staged: Staged) -> tuple[StagedSlice, ...]:
        return tuple(StagedSlice(number, WINDOWS, 0, HOME_ACTIVITY) for number in range(SLICES))

    def commit_portion(self, run: AggregationRun, staged: Staged, portion: Portion) -> bool:
        assert run.committed_slices == portion.first == sum(self.committed) // WINDOWS
        cost = self.cost if portion.first < self.better_after else timedelta(0)
        windows = WINDOWS * len(portion.slices)
        self.at += cost * windows
        self.committed.append(windows)
        return True

    def close_run(self, run: AggregationRun, staged: Staged, closed_at: datetime) -> bool:
        return run.committed_slices == SLICES


def committed(disk: Disk) -> list[int]:
    levels = {**levels_of([]), HOME_ACTIVITY: WINDOWS * SLICES}
    staged = Staged("s", "r", 1, EPOCH, levels)
    assert commit_run(disk, RUN, staged, disk.now, EPOCH + timedelta(hours=1)) == "committed"
    assert sum(disk.committed) == WINDOWS * SLICES
    return disk.committed


def test_a_fast_disk_takes_whole_portions() -> None:
    assert set(committed(Disk(timedelta(microseconds=32)))) == {PORTION}


def test_a_slow_disk_takes_smaller_portions_until_none_takes_long() -> None:
    sizes = committed(Disk(timedelta(microseconds=280)))
    assert sizes[:3] == [PORTION, PORTION // 2, PORTION // 4]
    assert set(sizes[2:]) == {PORTION // 4}


def test_portions_grow_again_on_a_disk_that_is_fast_again() -> None:
    sizes = committed(Disk(timedelta(microseconds=280), better_after=20))
    assert sizes[2] == PORTION // 4
    assert sizes[-2] == PORTION


def test_a_portion_has_a_least_and_a_largest_size() -> None:
    assert size_after(LEAST, SLOW * 2) == LEAST
    assert size_after(PORTION, timedelta(0)) == PORTION
    assert size_after(PORTION, SLOW) == PORTION

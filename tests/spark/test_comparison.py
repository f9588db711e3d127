"""The verdict about a window: equal, differing, or moved by a later run that has committed its slice."""

from datetime import date, timedelta
from typing import Any

from core.aggregation.runs import Days
from core.model.aggregates import EPOCH, SLICES
from jobs.rebuild_aggregate import (
    DIFFERING,
    EQUAL,
    MOVED,
    RIGHT,
    STORED,
    VERDICT,
    SliceFigures,
    figures,
    judged,
    targets,
)
from jobs.tables import Run

WINDOWS = (
    f"slice int, {RIGHT} struct<count: bigint>, {STORED} struct<count: bigint>, run_number bigint, window_start date"
)
DAY = date(2026, 2, 1)
BEFORE = Run("a", "job", 4, "{}", '{"1/0":5}', 1, "committed", SLICES, EPOCH)
OPEN = Run("b", "job", 6, '{"1/0":5}', '{"1/0":9}', 1, "submitted", 100, EPOCH)
CASES = [
    ((7, (1,), (1,), 4), EQUAL),
    ((7, (1,), (2,), 4), DIFFERING),
    ((7, (1,), (1,), 6), MOVED),  # equal by chance: its run may have changed it
    ((7, None, (1,), 6), MOVED),
    ((7, None, (1,), 4), DIFFERING),
    ((7, (1,), None, None), MOVED),  # the open run may have removed it
    ((200, (1,), None, None), DIFFERING),  # the open run has not committed this slice
    ((200, (1,), (2,), 6), DIFFERING),
    ((7, (1,), (2,), 5), DIFFERING),  # no run has this number
    ((7, (1,), (1,), 99), EQUAL),
]


def test_each_window_has_the_verdict_of_its_slice_and_the_runs_after_it(spark: Any) -> None:
    days = [DAY + at * timedelta(days=1) for at in range(len(CASES))]
    rows = [(*row, day) for (row, _), day in zip(CASES, days, strict=True)]
    windows = spark.createDataFrame(rows, WINDOWS)
    found = judged(windows, targets(BEFORE, []), [OPEN])
    assert [row[VERDICT] for row in found.collect()] == [verdict for _, verdict in CASES]
    slices, by_verdict = figures(found)
    assert slices == [SliceFigures(7, 5, 3, 3), SliceFigures(200, 2, 2, 0)]
    assert by_verdict == {
        EQUAL: Days(days[0], days[9]),
        DIFFERING: Days(days[1], days[8]),
        MOVED: Days(days[2], days[5]),
    }
    again = judged(windows, targets(BEFORE, [OPEN]), [OPEN])
    assert MOVED not in {row[VERDICT] for row in again.collect()}

"""local/kills.py"""

from itertools import pairwise

from local.kills import LONGEST_DELAY, kill_plan


def test_the_kills_are_spread_over_the_run_in_order() -> None:
    for seed in range(50):
        plan = kill_plan(10_000, 4, seed)
        assert len(plan) == 4
        assert all(earlier.accounted < later.accounted for earlier, later in pairwise(plan))
        assert all(0 < kill.accounted <= 9_000 for kill in plan)
        assert all(0 <= kill.delay <= LONGEST_DELAY for kill in plan)


def test_the_seed_decides_the_moments() -> None:
    assert kill_plan(10_000, 3, 1) == kill_plan(10_000, 3, 1) != kill_plan(10_000, 3, 2)


def test_without_kills_there_is_no_plan() -> None:
    assert kill_plan(10_000, 0, 1) == []

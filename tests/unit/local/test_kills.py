"""local/kills.py"""

from itertools import pairwise

from local.kills import LONGEST_DELAY, kill_plan


def test_the_kills_are_spread_over_the_run_in_order() -> None:
    for seed in range(50):
        plan = kill_plan(10_000, 4, seed)
        assert len(plan) == 4
        assert all(earlier.accounted < later.accounted for earlier, later in pairwise(plan))
        assert all(0 < kill.accounted <= 9_000 for kill in plan[:-1])
        assert all(0 <= kill.delay <= LONGEST_DELAY for kill in plan)


def test_the_last_of_several_comes_when_all_is_accounted_for_and_letters_are_retried() -> None:
    assert [kill_plan(10_000, kills, 1)[-1].accounted == 10_000 for kills in (1, 2, 3)] == [False, True, True]


def test_the_seed_decides_the_moments() -> None:
    assert kill_plan(10_000, 3, 1) == kill_plan(10_000, 3, 1) != kill_plan(10_000, 3, 2)


def test_without_kills_there_is_no_plan() -> None:
    assert kill_plan(10_000, 0, 1) == []

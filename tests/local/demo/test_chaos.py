"""local/demo/chaos.py: the plan of the blows."""

from itertools import pairwise

from local.demo.chaos import KILLS, LONGEST_DELAY, blow_plan

EVENTS = 10_000


def test_every_kind_of_blow_is_struck_while_events_are_still_to_come() -> None:
    for seed in range(50):
        plan = blow_plan(EVENTS, KILLS, seed, chaos=True)
        assert plan == sorted(plan)
        kinds = [blow.kind for blow in plan]
        assert {kind: kinds.count(kind) for kind in set(kinds)} == {"kill": KILLS, "skip": 2, "cut": 2, "lock": 1}
        assert all(blow.accounted < EVENTS for blow in plan if blow.kind != "kill")


def test_without_chaos_the_kills_alone_are_spread_over_the_run_in_order() -> None:
    for seed in range(50):
        plan = blow_plan(EVENTS, 4, seed, chaos=False)
        assert [blow.kind for blow in plan] == ["kill"] * 4
        assert all(earlier.accounted < later.accounted for earlier, later in pairwise(plan))
        assert all(0 < blow.accounted <= 9_000 for blow in plan[:-1])
        assert all(0 <= blow.delay <= LONGEST_DELAY for blow in plan)
        assert {*plan} < {*blow_plan(EVENTS, 4, seed, chaos=True)}
    assert blow_plan(EVENTS, 0, 1, chaos=False) == []


def test_the_last_of_several_kills_comes_when_all_is_accounted_for_and_letters_are_retried() -> None:
    lasts = [blow_plan(EVENTS, kills, 1, chaos=False)[-1].accounted for kills in (1, 2, 3)]
    assert [last == EVENTS for last in lasts] == [False, True, True]

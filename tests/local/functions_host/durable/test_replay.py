from typing import Any

import pytest

from local.functions_host.errors import NotEmulated
from tests.local.functions_host.durable.doubles import (
    activity,
    all_of,
    any_of,
    completed,
    raised,
    scheduled,
    timer,
    timer_created,
    timer_fired,
    waiting,
    walked,
)


def new(actions: list[Any], *events: Any) -> list[str]:
    """The kinds and numbers of the new orders."""
    return [f"{type(each).__name__} {each.task_id}" for each in walked(actions, *events).new_work]


def test_a_cancelled_timer_is_ordered_and_not_waited_for_and_changes_nothing_when_it_fires() -> None:
    either = any_of(waiting("go"), timer(cancelled=True))
    assert new([either, activity()]) == ["TimerSet 0", "ActivityCall 1"]
    ended = walked([either], timer_created(0))
    assert (ended.is_through, ended.has_open_tasks) == (True, False)
    assert new([either, activity()], timer_created(0), scheduled(1), timer_fired(0)) == []


def test_an_event_that_came_before_is_taken_once() -> None:
    actions = [activity(), waiting("go"), waiting("GO"), activity()]
    early = [scheduled(0), raised("Go"), completed(0)]
    assert walked(actions, *early).awaits_event
    assert new(actions, *early) == []
    assert new(actions, *early, raised("go")) == ["ActivityCall 1"]


def test_the_last_to_wait_for_an_event_is_the_first_to_get_one() -> None:
    actions = [any_of(all_of(waiting("go"), activity()), waiting("go")), activity("other")]
    assert new(actions, scheduled(0), raised("go")) == ["ActivityCall 1"]


@pytest.mark.parametrize(
    ("action", "feature"),
    [
        ({"actionType": 1}, "call of an activity with retries"),
        ({"actionType": 2}, "sub-orchestration"),
        ({"actionType": 7}, "call of an entity"),
        ({"actionType": 8}, "call_http"),
        ({"actionType": 10}, "scheduled signal"),
        ({"actionType": 99}, "action type 99"),
    ],
)
def test_an_action_that_is_not_emulated_is_refused_by_name(action: Any, feature: str) -> None:
    with pytest.raises(NotEmulated, match=f"function caller: .*{feature}.* is not emulated"):
        walked([action])

from typing import Any

import pytest

from local.functions_host.durable.functions import ChildCall, EntityRequest, TimerSet, UnknownFunction
from local.functions_host.durable.history import EventType, event
from local.functions_host.durable.replay import NonDeterministic
from local.functions_host.errors import NotEmulated
from tests.unit.local.functions_host.doubles import NOON
from tests.unit.local.functions_host.durable.doubles import (
    activity,
    all_of,
    any_of,
    child,
    completed,
    failed,
    raised,
    retried,
    scheduled,
    timer,
    timer_created,
    timer_fired,
    waiting,
    walked,
)

SIDE_BY_SIDE = [scheduled(0), scheduled(1), failed(1), failed(0)]


def new(actions: list[Any], *events: Any) -> list[str]:
    """The kinds and numbers of the new orders."""
    return [f"{type(each).__name__} {each.task_id}" for each in walked(actions, *events).new_work]


def test_the_orders_of_the_history_are_not_new_and_their_names_match_in_any_case() -> None:
    found = walked([all_of(activity(), activity("other"))], scheduled(0, "WORK"), scheduled(1, "other"), completed(1))
    assert (found.new_work, found.has_open_tasks) == ((), True)


def test_a_cancelled_timer_is_ordered_and_not_waited_for_and_changes_nothing_when_it_fires() -> None:
    either = any_of(waiting("go"), timer(cancelled=True))
    assert new([either, activity()]) == ["TimerSet 0", "ActivityCall 1"]
    ended = walked([either], timer_created(0))
    assert (ended.is_through, ended.has_open_tasks) == (True, False)
    assert new([either, activity()], timer_created(0), scheduled(1), timer_fired(0)) == []


def test_the_last_failure_of_a_call_with_retries_takes_a_number_for_a_timer_at_once() -> None:
    actions = [all_of(retried(1)), activity()]
    assert walked(actions, scheduled(0), failed(0)).new_work == (TimerSet(1, NOON),)
    assert new(actions, scheduled(0), failed(0), timer_created(1), timer_fired(1)) == ["ActivityCall 2"]


def test_retries_side_by_side_take_numbers_in_the_order_of_their_failures() -> None:
    actions = [all_of(retried(2), retried(2))]
    assert new(actions, *SIDE_BY_SIDE) == ["TimerSet 2", "TimerSet 3"]
    assert new(actions, *SIDE_BY_SIDE, timer_created(2), timer_created(3), timer_fired(3)) == ["ActivityCall 4"]


def test_a_child_without_an_id_gets_one_of_its_execution_and_number() -> None:
    unnamed = ChildCall(1, "child", "execution:1", "1")
    assert walked([activity(), child()], scheduled(0), completed(0)).new_work == (unnamed,)
    assert walked([child("mine")]).new_work == (ChildCall(0, "child", "mine", "1"),)


def test_an_event_that_came_before_is_taken_once() -> None:
    actions = [activity(), waiting("go"), waiting("GO"), activity()]
    early = [scheduled(0), raised("Go"), completed(0)]
    assert walked(actions, *early).awaits_event
    assert new(actions, *early) == []
    assert new(actions, *early, raised("go")) == ["ActivityCall 1"]


def test_the_last_to_wait_for_an_event_is_the_first_to_get_one() -> None:
    actions = [any_of(all_of(waiting("go"), activity()), waiting("go")), activity("other")]
    assert new(actions, scheduled(0), raised("go")) == ["ActivityCall 1"]


def test_a_call_of_an_entity_waits_for_the_answer_and_a_signal_does_not() -> None:
    call = {"actionType": 7, "instanceId": "@counter@one", "operation": "add", "input": "1"}
    actions = [{**call, "actionType": 9}, call, activity()]
    found = walked(actions)
    requests = [each for each in found.new_work if isinstance(each, EntityRequest)]
    assert [(each.task_id, each.request["signal"]) for each in requests] == [(0, True), (1, False)]
    assert requests[0].request["id"] != requests[1].request["id"]
    assert (found.has_open_tasks, found.awaits_event) == (False, True)
    sent = [event(EventType.EVENT_SENT, number, Name="op") for number in (0, 1)]
    assert new(actions, *sent, raised(requests[1].request["id"])) == ["ActivityCall 2"]


@pytest.mark.parametrize("recorded", [scheduled(0, "other"), scheduled(5), timer_created(0)])
def test_a_history_of_other_orders_is_not_deterministic(recorded: Any) -> None:
    with pytest.raises(NonDeterministic, match="Non-Deterministic workflow detected: the history has"):
        walked([activity()], recorded)


@pytest.mark.parametrize("action", [activity("nobody"), {**child(), "functionName": "nobody"}])
def test_a_missing_function_is_not_ordered(action: Any) -> None:
    with pytest.raises(UnknownFunction):
        walked([action])


@pytest.mark.parametrize(
    ("action", "feature"),
    [
        ({"actionType": 8}, "call_http"),
        ({"actionType": 10}, "scheduled signal"),
        ({"actionType": 99}, "action type 99"),
        ({**child(), "version": "2"}, "version"),
    ],
)
def test_an_action_that_is_not_emulated_is_refused_by_name(action: Any, feature: str) -> None:
    with pytest.raises(NotEmulated, match=f"function caller: .*{feature}.* is not emulated"):
        walked([action])

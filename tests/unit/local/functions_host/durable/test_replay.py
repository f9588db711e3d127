from typing import Any

import pytest

from local.functions_host.durable.functions import UnknownFunction
from local.functions_host.durable.history import EventType, event
from local.functions_host.durable.replay import NonDeterministic
from local.functions_host.durable.work import ActivityCall, ChildCall, EntityRequest, TimerSet
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


def numbers(actions: list[Any], *events: Any) -> list[tuple[str, int]]:
    """The kinds and numbers of what is new."""
    return [(type(each).__name__, each.task_id) for each in walked(actions, *events).new_work]


def test_only_the_first_action_is_ordered_before_it_ends() -> None:
    found = walked([activity(), activity()])
    assert found.new_work == (ActivityCall(0, "work", "1"),)
    assert found.has_open_tasks
    assert not found.is_through


def test_the_next_action_is_ordered_once_the_one_before_ended() -> None:
    assert numbers([activity(), timer()], scheduled(0), completed(0)) == [("TimerSet", 1)]


def test_a_failure_goes_on_too_since_the_orchestrator_decides() -> None:
    assert numbers([activity(), activity()], scheduled(0), failed(0)) == [("ActivityCall", 1)]


def test_what_the_history_has_is_not_new() -> None:
    found = walked([all_of(activity(), activity("other"))], scheduled(0), scheduled(1, "other"), completed(1))
    assert found.new_work == ()
    assert found.has_open_tasks


def test_all_are_waited_for_although_one_failed() -> None:
    actions = [all_of(activity(), activity()), activity()]
    history = [scheduled(0), scheduled(1), failed(0)]
    assert numbers(actions, *history) == []
    assert numbers(actions, *history, completed(1)) == [("ActivityCall", 2)]


def test_one_of_any_suffices_and_the_others_stay_open() -> None:
    found = walked([any_of(activity(), timer())], scheduled(0), timer_created(1), completed(0))
    assert found.is_through
    assert found.has_open_tasks


def test_a_cancelled_timer_is_ordered_and_not_waited_for() -> None:
    found = walked([any_of(waiting("go"), timer(cancelled=True)), activity()])
    assert [each.task_id for each in found.new_work] == [0, 1]
    assert isinstance(found.new_work[0], TimerSet)
    ended = walked([any_of(waiting("go"), timer(cancelled=True))], timer_created(0))
    assert ended.is_through
    assert not ended.has_open_tasks


def test_a_cancelled_timer_that_goes_off_changes_nothing() -> None:
    assert numbers([any_of(timer(cancelled=True)), activity()], timer_created(0), scheduled(1), timer_fired(0)) == []


def test_the_last_failure_of_a_call_with_retries_takes_a_number_for_a_timer_at_once() -> None:
    actions = [all_of(retried(1)), activity()]
    found = walked(actions, scheduled(0), failed(0))
    assert found.new_work == (TimerSet(1, NOON),)
    assert numbers(actions, scheduled(0), failed(0), timer_created(1), timer_fired(1)) == [("ActivityCall", 2)]


def test_retries_side_by_side_take_numbers_in_the_order_of_their_failures() -> None:
    actions = [all_of(retried(2), retried(2))]
    history = [scheduled(0), scheduled(1), failed(1), failed(0)]
    assert [each.task_id for each in walked(actions, *history).new_work] == [2, 3]
    later = [*history, timer_created(2), timer_created(3), timer_fired(3)]
    assert numbers(actions, *later) == [("ActivityCall", 4)]


def test_a_child_without_an_id_gets_one_of_its_execution_and_number() -> None:
    assert walked([activity(), child()], scheduled(0), completed(0)).new_work == (
        ChildCall(1, "child", "execution:1", "1"),
    )
    assert walked([child("mine")]).new_work == (ChildCall(0, "child", "mine", "1"),)


def test_an_event_that_came_before_is_taken_once() -> None:
    actions = [activity(), waiting("go"), waiting("GO"), activity()]
    early = [scheduled(0), raised("Go"), completed(0)]
    assert walked(actions, *early).awaits_event
    assert numbers(actions, *early) == []
    assert numbers(actions, *early, raised("go")) == [("ActivityCall", 1)]


def test_the_last_to_wait_for_an_event_is_the_first_to_get_one() -> None:
    actions = [any_of(all_of(waiting("go"), activity()), waiting("go")), activity("other")]
    assert numbers(actions, scheduled(0), raised("go")) == [("ActivityCall", 1)]


def test_a_call_of_an_entity_waits_for_the_answer_and_a_signal_does_not() -> None:
    call = {"actionType": 7, "instanceId": "@counter@one", "operation": "add", "input": "1"}
    found = walked([{**call, "actionType": 9}, call, activity()])
    requests = [each for each in found.new_work if isinstance(each, EntityRequest)]
    assert [(each.task_id, each.request["signal"]) for each in requests] == [(0, True), (1, False)]
    assert requests[0].request["id"] != requests[1].request["id"]
    assert not found.has_open_tasks
    assert found.awaits_event
    sent = [event(EventType.EVENT_SENT, number, Name="op") for number in (0, 1)]
    answer = raised(requests[1].request["id"])
    assert numbers([{**call, "actionType": 9}, call, activity()], *sent, answer) == [("ActivityCall", 2)]


def test_continuing_as_new_carries_the_input_as_json() -> None:
    found = walked([{"actionType": 4, "input": '{"n": 2}'}])
    assert found.is_through
    assert found.next_input == '"{\\"n\\": 2}"'


@pytest.mark.parametrize("recorded", [scheduled(0, "other"), scheduled(5), timer_created(0)])
def test_a_history_of_other_orders_is_not_deterministic(recorded: Any) -> None:
    with pytest.raises(NonDeterministic, match="Non-Deterministic workflow detected: the history has"):
        walked([activity()], recorded)


def test_names_in_the_history_may_differ_in_case() -> None:
    assert numbers([activity()], scheduled(0, "WORK")) == []


@pytest.mark.parametrize("action", [activity("nobody"), {**child(), "functionName": "nobody"}])
def test_a_function_that_is_not_there_is_not_ordered(action: Any) -> None:
    with pytest.raises(UnknownFunction):
        walked([action])


@pytest.mark.parametrize(
    ("action", "what"),
    [
        ({"actionType": 8}, "call_http"),
        ({"actionType": 10}, "scheduled signal"),
        ({"actionType": 99}, "action type 99"),
        ({**child(), "version": "2"}, "version"),
    ],
)
def test_what_is_not_emulated_is_refused_by_name(action: Any, what: str) -> None:
    with pytest.raises(NotEmulated, match=f"function caller: .*{what}.* is not emulated"):
        walked([action])

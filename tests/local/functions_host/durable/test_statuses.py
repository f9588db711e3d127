from dataclasses import replace
from datetime import timedelta

from local.functions_host.durable.instances import EventType, NewInstance, event, stamped
from local.functions_host.durable.management import history_json, status_json
from tests.local.functions_host.doubles import NOON
from tests.local.functions_host.durable.doubles import (
    completed,
    failed,
    instance,
    raised,
    scheduled,
    timer_created,
)

LATER = NOON + timedelta(seconds=1)


def test_instants_are_cut_to_seconds_and_values_are_json() -> None:
    shown = status_json(replace(instance(), updated_at=NOON + timedelta(seconds=1.9), output="[1]", input='"2"'))
    assert (shown["lastUpdatedTime"], shown["output"], shown["input"]) == ("2026-11-21T12:00:01Z", [1], "2")
    assert status_json(replace(instance(), input='"2"'), with_input=False)["input"] is None


def test_a_result_stands_for_its_order_and_turns_are_left_out() -> None:
    started = NewInstance("i", "x", "caller", '"in"').started(NOON)
    first = [event(EventType.ORCHESTRATOR_STARTED), started, scheduled(0), scheduled(1), timer_created(2)]
    history = [*(stamped(each, NOON) for each in first), stamped(completed(0), LATER)]
    assert history_json(history, with_output=True) == [
        {"EventType": "ExecutionStarted", "Timestamp": shown(NOON), "FunctionName": "caller", "Input": "in"},
        {"EventType": "TaskScheduled", "Timestamp": shown(NOON), "FunctionName": "work"},
        {"EventType": "TimerCreated", "Timestamp": shown(NOON)},
        {
            "EventType": "TaskCompleted",
            "Timestamp": shown(LATER),
            "FunctionName": "work",
            "ScheduledTime": shown(NOON),
            "Result": 1,
        },
    ]


def shown(instant: object) -> str:
    return {NOON: "2026-11-21T12:00:00.0000000Z", LATER: "2026-11-21T12:00:01.0000000Z"}[instant]  # type: ignore[index]


def test_values_are_shown_on_request_and_reasons_always() -> None:
    history = [stamped(each, NOON) for each in (scheduled(0), failed(0), raised("go"))]
    shown_events = history_json(history, with_output=False)
    assert [each["EventType"] for each in shown_events] == ["TaskFailed", "EventRaised"]
    assert shown_events[0]["Reason"] == "no"
    assert (shown_events[1]["Name"], "Input" in shown_events[1]) == ("go", False)

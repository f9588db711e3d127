"""Durable functions without a worker, and what builds actions, histories and turns."""

from typing import Any

from local.functions_host.durable.functions import DurableFunctions
from local.functions_host.durable.instances import Event, EventType, Instance, Status, event, stamped
from local.functions_host.durable.replay import Replayed, replay
from local.functions_host.function import describe_function
from tests.local.functions_host.doubles import NOON

KINDS = {"orchestrationTrigger": ("caller",), "activityTrigger": ("work", "other")}
FUNCTIONS = DurableFunctions(
    [
        describe_function(name, [f'{{"name": "context", "type": "{kind}", "direction": "IN"}}'], None)
        for kind, names in KINDS.items()
        for name in names
    ]
)
STARTED = event(EventType.EXECUTION_STARTED, Name="caller")


def activity(name: str = "work", text: str = "1") -> dict[str, Any]:
    return {"actionType": 0, "functionName": name, "input": text}


def timer(stamp: str = "2026-11-21T13:00:00.000000Z", *, cancelled: bool = False) -> dict[str, Any]:
    return {"actionType": 5, "fireAt": stamp, "isCanceled": cancelled}


def waiting(name: str) -> dict[str, Any]:
    return {"actionType": 6, "externalEventName": name}


def all_of(*actions: Any) -> dict[str, Any]:
    return {"actionType": 12, "compoundActions": list(actions)}


def scheduled(number: int, name: str = "work") -> Event:
    return event(EventType.TASK_SCHEDULED, number, Name=name)


def completed(number: int) -> Event:
    return event(EventType.TASK_COMPLETED, TaskScheduledId=number, Result="1")


def raised(name: str) -> Event:
    return event(EventType.EVENT_RAISED, Name=name, Input="1")


def walked(actions: list[Any], *events: Event) -> Replayed:
    opening = [event(EventType.ORCHESTRATOR_STARTED), STARTED]
    return replay(actions, [stamped(each, NOON) for each in (*opening, *events)], "caller", FUNCTIONS)


def instance(status: Status = Status.RUNNING) -> Instance:
    return Instance("instance", "execution", "caller", status, NOON, NOON, None, None, None)

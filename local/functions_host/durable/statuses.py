"""Write the status of an orchestration as JSON.

Source: HttpApiHandler.ConvertFrom (instants are cut to seconds) and DurableClient's reshaping of the history: the event
of an end replaces the event of its order.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from local.functions_host.durable.history import Event, EventType
from local.functions_host.durable.instances import Instance

NAMES = {
    EventType.SUB_ORCHESTRATION_CREATED: "SubOrchestrationInstanceCreated",
    EventType.SUB_ORCHESTRATION_COMPLETED: "SubOrchestrationInstanceCompleted",
    EventType.SUB_ORCHESTRATION_FAILED: "SubOrchestrationInstanceFailed",
}
TURNS = (EventType.ORCHESTRATOR_STARTED, EventType.ORCHESTRATOR_COMPLETED)
OMITTED = ("EventId", "IsPlayed", "Version", "Tags", "OrchestrationInstance", "ParentInstance")
ENDS = ("TaskScheduledId", "TimerId")
VALUES = ("Result", "Input")


def status_json(instance: Instance, *, with_input: bool = True) -> dict[str, Any]:
    """Return the status without history."""
    return {
        "name": instance.name,
        "instanceId": instance.instance_id,
        "runtimeStatus": instance.status.value,
        "input": _parsed(instance.input) if with_input else None,
        "customStatus": _parsed(instance.custom_status),
        "output": _parsed(instance.output),
        "createdTime": _to_seconds(instance.created_at),
        "lastUpdatedTime": _to_seconds(instance.updated_at),
    }


def history_json(history: Sequence[Event], *, with_output: bool) -> list[dict[str, Any]]:
    """Return the history; `with_output` adds results and inputs."""
    ordered = {each["EventId"]: each for each in history if each["EventId"] >= 0}
    ended = {number for each in history if (number := _number_of(each)) is not None}
    return [
        _shown(each, ordered, with_output=with_output)
        for each in history
        if each["EventType"] not in TURNS and each["EventId"] not in ended
    ]


def _number_of(event: Event) -> int | None:
    """Return the sequence number of the order that an event ends, or None."""
    return next((event[name] for name in ENDS if name in event), None)


def _shown(event: Event, ordered: dict[int, Event], *, with_output: bool) -> dict[str, Any]:
    shown = {name: value for name, value in event.items() if name not in (*OMITTED, "TaskScheduledId", "Name")}
    kind = EventType(event["EventType"])
    shown["EventType"] = NAMES.get(kind) or "".join(part.title() for part in kind.name.split("_"))
    if event.get("Name") is not None:
        shown["Name" if kind in (EventType.EVENT_RAISED, EventType.EVENT_SENT) else "FunctionName"] = event["Name"]
    order = ordered.get(number) if (number := _number_of(event)) is not None else None
    if order is not None:
        shown["ScheduledTime"] = order["Timestamp"]
        if order.get("Name") is not None:
            shown["FunctionName"] = order["Name"]
    return _with_values(shown, VALUES) if with_output else {name: shown[name] for name in shown if name not in VALUES}


def _with_values(shown: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {**shown, **{name: _parsed(shown[name]) for name in names if name in shown}}


def _parsed(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def _to_seconds(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

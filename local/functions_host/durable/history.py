"""The events of an orchestration's history, in the JSON that the extension sends to the SDK.

Source: DurableTask.Core.History. An event that something is ordered has the sequence number of the order as its
EventId; one that reports back names that number, and has -1.
"""

from datetime import UTC, datetime
from enum import IntEnum
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]


class EventType(IntEnum):
    """The kinds of events that occur here, with their numbers on the wire."""

    EXECUTION_STARTED = 0
    EXECUTION_COMPLETED = 1
    EXECUTION_TERMINATED = 3
    TASK_SCHEDULED = 4
    TASK_COMPLETED = 5
    TASK_FAILED = 6
    SUB_ORCHESTRATION_CREATED = 7
    SUB_ORCHESTRATION_COMPLETED = 8
    SUB_ORCHESTRATION_FAILED = 9
    TIMER_CREATED = 10
    TIMER_FIRED = 11
    ORCHESTRATOR_STARTED = 12
    ORCHESTRATOR_COMPLETED = 13
    EVENT_SENT = 14
    EVENT_RAISED = 15
    EXECUTION_SUSPENDED = 19
    EXECUTION_RESUMED = 20


CONTROLS = frozenset((EventType.EXECUTION_TERMINATED, EventType.EXECUTION_SUSPENDED, EventType.EXECUTION_RESUMED))


def to_stamp(instant: datetime) -> str:
    """Write an instant as .NET does, in seven digits."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")


def from_stamp(text: str) -> datetime:
    """Read an instant that .NET or the SDK wrote; without a zone it is UTC."""
    instant = datetime.fromisoformat(text)
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant


def event(kind: EventType, event_id: int = -1, **values: Any) -> Event:
    """An event without its time, which `stamped` adds."""
    return {"EventType": int(kind), "EventId": event_id, **values}


def stamped(unstamped: Event, at: datetime, *, is_played: bool = False) -> Event:
    """The event with its time, and whether the orchestrator saw it in an earlier episode."""
    return {**unstamped, "IsPlayed": is_played, "Timestamp": to_stamp(at)}


def execution_started(name: str, ids: tuple[str, str], text: str | None, parent_id: str | None) -> Event:
    """The beginning; `ids` are of instance and execution, `text` is the input as JSON."""
    instance = {"InstanceId": ids[0], "ExecutionId": ids[1]}
    parent = {"OrchestrationInstance": {"InstanceId": parent_id}} if parent_id is not None else None
    return event(
        EventType.EXECUTION_STARTED,
        Name=name,
        Version="",
        Input=text,
        Tags=None,
        OrchestrationInstance=instance,
        ParentInstance=parent,
    )


def event_raised(name: str, text: str) -> Event:
    """An external event; `text` is its value as JSON."""
    return event(EventType.EVENT_RAISED, Name=name, Input=text)


def control(kind: EventType, reason: str | None) -> Event:
    """Terminate, suspend or resume."""
    return event(kind, Input=reason, Reason=reason)

"""The events of an orchestration's history, in the JSON that the extension sends to the SDK.

Source: DurableTask.Core.History. The event of an order has the order's sequence number as its EventId; the event of
its end names that number, and has -1.
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
    """Write an instant as .NET does, with seven digits."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")


def from_stamp(text: str) -> datetime:
    """Read an instant that .NET or the SDK wrote; without a zone it is UTC."""
    instant = datetime.fromisoformat(text)
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant


def event(kind: EventType, event_id: int = -1, **values: Any) -> Event:
    """Return an event without its time, which `stamped` adds."""
    return {"EventType": int(kind), "EventId": event_id, **values}


def stamped(unstamped: Event, at: datetime, *, is_played: bool = False) -> Event:
    """Return the event with its time; `is_played` is True when the orchestrator saw it in an earlier episode."""
    return {**unstamped, "IsPlayed": is_played, "Timestamp": to_stamp(at)}


def execution_started(name: str, ids: tuple[str, str], text: str | None, parent_id: str | None) -> Event:
    """Return the first event; `ids` are those of instance and execution, `text` is the input as JSON."""
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
    """Return an external event; `text` is its value as JSON."""
    return event(EventType.EVENT_RAISED, Name=name, Input=text)


def control(kind: EventType, reason: str | None) -> Event:
    """Return an event that terminates, suspends or resumes."""
    return event(kind, Input=reason, Reason=reason)

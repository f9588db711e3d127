"""The instances of orchestrations as clients see them, and the events of their histories in the extension's JSON.

Source: DurableTask.Core.History. The event of an order has the order's sequence number as its EventId. The event of its
end names that number, and has -1.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
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
    TIMER_CREATED = 10
    TIMER_FIRED = 11
    ORCHESTRATOR_STARTED = 12
    ORCHESTRATOR_COMPLETED = 13
    EVENT_RAISED = 15
    EXECUTION_SUSPENDED = 19
    EXECUTION_RESUMED = 20


CONTROLS = frozenset((EventType.EXECUTION_TERMINATED, EventType.EXECUTION_SUSPENDED, EventType.EXECUTION_RESUMED))


def to_stamp(instant: datetime) -> str:
    """Write an instant as .NET does, with seven digits."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")


def from_stamp(text: str) -> datetime:
    """Read an instant that .NET or the SDK wrote. Without a zone it is UTC."""
    instant = datetime.fromisoformat(text)
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant


def event(kind: EventType, event_id: int = -1, **values: Any) -> Event:
    """Return an event without its time, which `stamped` adds."""
    return {"EventType": int(kind), "EventId": event_id, **values}


def stamped(unstamped: Event, at: datetime, *, is_played: bool = False) -> Event:
    """Return the event with its time. `is_played` is True when the orchestrator saw it in an earlier episode."""
    return {**unstamped, "IsPlayed": is_played, "Timestamp": to_stamp(at)}


def event_raised(name: str, text: str) -> Event:
    """Return an external event. `text` is its value as JSON."""
    return event(EventType.EVENT_RAISED, Name=name, Input=text)


def control(kind: EventType, reason: str | None) -> Event:
    """Return an event that terminates, suspends or resumes."""
    return event(kind, Input=reason, Reason=reason)


class Status(StrEnum):
    """The runtime status, in the extension's words."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    COMPLETED = "Completed"
    FAILED = "Failed"
    TERMINATED = "Terminated"

    @property
    def is_final(self) -> bool:
        return self in (Status.COMPLETED, Status.FAILED, Status.TERMINATED)


@dataclass(frozen=True, slots=True)
class NewInstance:
    """An orchestration to start. `input` is JSON. An execution id is new for each start and each continue-as-new."""

    instance_id: str
    execution_id: str
    name: str
    input: str | None = None

    def started(self, at: datetime) -> Event:
        return stamped(
            event(
                EventType.EXECUTION_STARTED,
                Name=self.name,
                Version="",
                Input=self.input,
                Tags=None,
                OrchestrationInstance={"InstanceId": self.instance_id, "ExecutionId": self.execution_id},
                ParentInstance=None,
            ),
            at,
        )


@dataclass(frozen=True, slots=True)
class Instance:
    """An orchestration and its status. Input, output and custom status are JSON."""

    instance_id: str
    execution_id: str
    name: str
    status: Status
    created_at: datetime
    updated_at: datetime
    input: str | None
    output: str | None
    custom_status: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """An event that waits for an instance. Without an execution id it is for any execution."""

    number: int
    execution_id: str | None
    event: Event


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An event for an instance. It arrives at `due_at` or later."""

    instance_id: str
    execution_id: str | None
    event: Event
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Episode:
    """The input of an orchestrator's turn. `past` holds the history's events, each as JSON."""

    instance: Instance | None
    past: Sequence[str]
    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class ActivityOrder:
    """An activity to run for an execution. `input` is its text."""

    instance_id: str
    execution_id: str
    task_id: int
    name: str
    input: str | None


@dataclass(frozen=True, slots=True)
class ActivityDue:
    """An ordered activity without a result."""

    number: int
    order: ActivityOrder


@dataclass(frozen=True, slots=True)
class EpisodeCommit:
    """Everything that an orchestrator's turn changes.

    The turn belongs to `execution_id`. `successor` replaces this execution when it continues as new. `events` follow
    the `past` events of the history. `waits_for_nothing` is logged and not written: the orchestrator has not ended,
    and nothing is under way that could wake it.
    """

    instance_id: str
    execution_id: str
    at: datetime
    status: Status
    consumed: Sequence[int]
    past: int = 0
    events: Sequence[Event] = ()
    output: str | None = None
    custom_status: str | None = None
    activities: Sequence[ActivityOrder] = ()
    outgoing: Sequence[Outgoing] = ()
    successor: NewInstance | None = None
    waits_for_nothing: bool = False

    @property
    def error(self) -> str | None:
        """The reason of a failed orchestration."""
        return json.loads(self.output) if self.status is Status.FAILED and self.output else None

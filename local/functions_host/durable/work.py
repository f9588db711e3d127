"""The new orders of an orchestrator, each with its sequence number and its history event."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from local.functions_host.durable.history import Event, EventType, event, to_stamp


@dataclass(frozen=True, slots=True)
class ActivityCall:
    """Run an activity; `input` is its text."""

    task_id: int
    name: str
    input: str | None

    @property
    def ordered(self) -> Event:
        """The event of the order."""
        return event(EventType.TASK_SCHEDULED, self.task_id, Name=self.name)


@dataclass(frozen=True, slots=True)
class TimerSet:
    """Wake the orchestration at an instant."""

    task_id: int
    fire_at: datetime

    @property
    def ordered(self) -> Event:
        """The event of the order."""
        return event(EventType.TIMER_CREATED, self.task_id, Name=None, FireAt=to_stamp(self.fire_at))

    @property
    def fired(self) -> Event:
        """The event that the timer fired."""
        return event(EventType.TIMER_FIRED, TimerId=self.task_id, FireAt=to_stamp(self.fire_at))


@dataclass(frozen=True, slots=True)
class ChildCall:
    """Start a sub-orchestration; `input` is its text."""

    task_id: int
    name: str
    instance_id: str
    input: str | None

    @property
    def ordered(self) -> Event:
        """The event of the order."""
        return event(EventType.SUB_ORCHESTRATION_CREATED, self.task_id, Name=self.name, InstanceId=self.instance_id)


@dataclass(frozen=True, slots=True)
class EntityRequest:
    """Call or signal an entity. `request` is the operation in the extension's words."""

    task_id: int
    entity_id: str
    request: Event

    @property
    def ordered(self) -> Event:
        """The event of the order."""
        text = json.dumps(self.request)
        return event(EventType.EVENT_SENT, self.task_id, Name="op", InstanceId=self.entity_id, Input=text)


Work: TypeAlias = ActivityCall | TimerSet | ChildCall | EntityRequest


def agrees(work: Work, recorded: Event) -> bool:
    """Return True when the history's event is that of this order: the same kind, and the same name in any case."""
    ours = work.ordered
    same_name = str(ours["Name"]).lower() == str(recorded.get("Name")).lower()
    return bool(ours["EventType"] == recorded["EventType"]) and (
        same_name or not isinstance(work, ActivityCall | ChildCall)
    )

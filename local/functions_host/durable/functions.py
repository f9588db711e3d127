"""Find the app's Durable functions by kind and name, in any case."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from local.functions_host.durable.history import Event, EventType, event, to_stamp
from local.functions_host.emulated import ACTIVITY_TRIGGER, ENTITY_TRIGGER, ORCHESTRATION_TRIGGER
from local.functions_host.function import FunctionDescription


class Kind(StrEnum):
    """The kind of a Durable function, in the words of the extension's errors."""

    ORCHESTRATOR = "orchestrator"
    ACTIVITY = "activity"
    ENTITY = "entity"


_TRIGGERS = {Kind.ORCHESTRATOR: ORCHESTRATION_TRIGGER, Kind.ACTIVITY: ACTIVITY_TRIGGER, Kind.ENTITY: ENTITY_TRIGGER}
_NAMES = {Kind.ORCHESTRATOR: "orchestration", Kind.ACTIVITY: "activity", Kind.ENTITY: "entityName"}


class UnknownFunction(Exception):
    """No enabled function has that kind and name."""

    def __init__(self, kind: Kind, name: str, known: Sequence[str]) -> None:
        listed = ", ".join(f"'{each}'" for each in known)
        more = (
            f"The following are the known {kind} functions: {listed}."
            if known
            else f"No {kind} functions are currently registered!"
        )
        super().__init__(
            f"The function '{name}' doesn't exist, is disabled, or is not an {kind} function. Additional info: {more}"
        )


class DurableFunctions:
    """The callable functions; a function has the name in its trigger's option, or else its own."""

    def __init__(self, functions: Sequence[FunctionDescription]) -> None:
        self._by_kind = {kind: {_name(kind, each): each for each in functions if _is(kind, each)} for kind in Kind}
        self._lower = {
            kind: {name.lower(): each for name, each in found.items()} for kind, found in self._by_kind.items()
        }

    def get(self, kind: Kind, name: str) -> FunctionDescription:
        """Return the function; raise UnknownFunction, in the extension's words."""
        try:
            return self._lower[kind][name.lower()]
        except KeyError:
            raise UnknownFunction(kind, name, tuple(self._by_kind[kind])) from None


def _is(kind: Kind, function: FunctionDescription) -> bool:
    return function.trigger.type == _TRIGGERS[kind]


def _name(kind: Kind, function: FunctionDescription) -> str:
    return str(function.trigger.settings.get(_NAMES[kind]) or function.name)


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

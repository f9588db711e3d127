"""Find the app's Durable functions by kind and name, in any case, and the orders that an orchestrator gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from local.functions_host.durable.instances import Event, EventType, event, to_stamp
from local.functions_host.function import ACTIVITY_TRIGGER, ORCHESTRATION_TRIGGER, FunctionDescription


class FunctionKind(StrEnum):
    """The kind of a Durable function, in the words of the extension's errors."""

    ORCHESTRATOR = "orchestrator"
    ACTIVITY = "activity"


# The trigger of each kind, and the trigger's option that gives the function a different name.
_TRIGGERS = {
    FunctionKind.ORCHESTRATOR: (ORCHESTRATION_TRIGGER, "orchestration"),
    FunctionKind.ACTIVITY: (ACTIVITY_TRIGGER, "activity"),
}


class UnknownFunction(Exception):
    """No enabled function has that kind and name."""

    def __init__(self, kind: FunctionKind, name: str, known: Sequence[str]) -> None:
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
    """The functions that can be called, by the name in the trigger's option or else by their own."""

    def __init__(self, functions: Sequence[FunctionDescription]) -> None:
        self._by_kind = {
            kind: {
                str(each.trigger.settings.get(option) or each.name): each
                for each in functions
                if each.trigger.type == trigger
            }
            for kind, (trigger, option) in _TRIGGERS.items()
        }

    def get(self, kind: FunctionKind, name: str) -> FunctionDescription:
        """Return the function. Raises UnknownFunction, in the extension's words."""
        known = self._by_kind[kind]
        found = next((each for own, each in known.items() if own.lower() == name.lower()), None)
        if found is None:
            raise UnknownFunction(kind, name, tuple(known))
        return found


@dataclass(frozen=True, slots=True)
class ActivityCall:
    """Run an activity. `input` is its text."""

    task_id: int
    name: str
    input: str | None

    @property
    def ordered(self) -> Event:
        return event(EventType.TASK_SCHEDULED, self.task_id, Name=self.name)


@dataclass(frozen=True, slots=True)
class TimerSet:
    """Wake the orchestration at an instant."""

    task_id: int
    fire_at: datetime

    @property
    def ordered(self) -> Event:
        return event(EventType.TIMER_CREATED, self.task_id, Name=None, FireAt=to_stamp(self.fire_at))

    @property
    def fired(self) -> Event:
        return event(EventType.TIMER_FIRED, TimerId=self.task_id, FireAt=to_stamp(self.fire_at))


Work: TypeAlias = ActivityCall | TimerSet


def agrees(work: Work, recorded: Event) -> bool:
    """Return True when the history's event is of this order: the same kind, and the same name in any case."""
    ours = work.ordered
    same_name = str(ours["Name"]).lower() == str(recorded.get("Name")).lower()
    return bool(ours["EventType"] == recorded["EventType"]) and (same_name or isinstance(work, TimerSet))

"""Walk an orchestrator's actions along its history, as the .NET side does, to number every order.

The orchestrator sends its whole list of actions each time. The extension performs the actions in order, each when the
one before has ended, and numbers its orders. An order that the history lacks is new. A result reaches its task only
when the numbers here are those of the SDK.

Source: OutOfProcOrchestrationShim (schema V3), TaskOrchestrationContext and TaskOrchestrationExecutor.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.functions_host.durable.functions import (
    ActivityCall,
    DurableFunctions,
    FunctionKind,
    TimerSet,
    Work,
    agrees,
)
from local.functions_host.durable.instances import Event, EventType, from_stamp
from local.functions_host.errors import NotEmulated

ENDED = {
    EventType.TASK_COMPLETED: "TaskScheduledId",
    EventType.TASK_FAILED: "TaskScheduledId",
    EventType.TIMER_FIRED: "TimerId",
}
ANY_OF = 11  # the type of the action
NEVER_EMULATED = {
    1: "a call of an activity with retries",
    2: "a sub-orchestration",
    3: "a sub-orchestration with retries",
    7: "a call of an entity",
    8: "call_http",
    9: "a signal of an entity",
    10: "a scheduled signal of an entity",
}


class Task:
    """A task to wait for. Its end may end its parent."""

    def __init__(self, parent: "Compound | None" = None, *, is_done: bool = False) -> None:
        self._parent = parent
        self.is_done = is_done

    def finish(self) -> None:
        """End the task. A second call does nothing."""
        if not self.is_done:
            self.is_done = True
            if self._parent is not None:
                self._parent.look()


class Compound(Task):
    """A task that ends when `enough` of its children have ended: all, even after one failed, or any one."""

    def __init__(self, parent: "Compound | None", enough: Callable[[Iterable[bool]], bool]) -> None:
        super().__init__(parent)
        self._enough = enough
        self._children: Sequence[Task] | None = None

    def begin(self, children: Sequence[Task]) -> None:
        """Wait for the children. Some may have ended already."""
        self._children = children
        self.look()

    def look(self) -> None:
        """End when enough of the children have ended, or when there are none."""
        if self._children is not None and (not self._children or self._enough(each.is_done for each in self._children)):
            self.finish()


class NonDeterministic(Exception):
    """The orchestrator's orders differ from its history."""

    def __init__(self, recorded: Event, found: Work | None) -> None:
        kind = EventType(recorded["EventType"]).name.lower()
        ours = "nothing" if found is None else type(found).__name__
        super().__init__(
            f"Non-Deterministic workflow detected: the history has {kind} {recorded.get('Name') or ''} with sequence "
            f"number {recorded['EventId']}, the replay ordered {ours} {getattr(found, 'name', '')}".rstrip()
        )


@dataclass(frozen=True, slots=True)
class Replayed:
    """The state after the walk. `next_input` is JSON, or None unless the orchestrator continues as new."""

    new_work: tuple[Work, ...]
    has_open_tasks: bool
    is_through: bool
    awaits_event: bool
    next_input: str | None


def replay(
    actions: Sequence[Mapping[str, Any]], events: Iterable[Event], name: str, functions: DurableFunctions
) -> Replayed:
    """Return the orders of an orchestrator's actions that the events lack.

    Raises NonDeterministic, UnknownFunction and NotEmulated. Each of them ends the orchestration.
    """
    walk = _Walk(actions, name, functions)
    for each in events:
        walk.see(each)
    return walk.stand()


class _Walk:
    def __init__(self, actions: Sequence[Mapping[str, Any]], name: str, functions: DurableFunctions) -> None:
        self._actions = iter(actions)
        self._name = name
        self._functions = functions
        self._current: Task | None = None
        self._is_through = False
        self._numbers = 0
        self._open: dict[int, Task] = {}
        self._new: dict[int, Work] = {}
        self._waiting: dict[str, list[Task]] = defaultdict(list)
        self._unclaimed: dict[str, int] = defaultdict(int)
        self._next_input: str | None = None

    def stand(self) -> Replayed:
        new_work = tuple(self._new[number] for number in sorted(self._new))
        awaits_event = any(self._waiting.values())
        return Replayed(new_work, bool(self._open), self._is_through, awaits_event, self._next_input)

    def see(self, recorded: Event) -> None:
        kind = recorded["EventType"]
        if kind == EventType.EXECUTION_STARTED:
            self._advance()
        elif kind in (EventType.TASK_SCHEDULED, EventType.TIMER_CREATED):
            found = self._new.pop(recorded["EventId"], None)
            if found is None or not agrees(found, recorded):
                raise NonDeterministic(recorded, found)
        elif kind in ENDED:
            if (task := self._open.pop(recorded[ENDED[kind]], None)) is not None:
                task.finish()
                self._advance()
        elif kind == EventType.EVENT_RAISED:
            key = recorded["Name"].lower()
            if self._waiting[key]:
                self._waiting[key].pop().finish()  # the last waiter gets the first event, as on the .NET side
                self._advance()
            else:
                self._unclaimed[key] += 1

    def _advance(self) -> None:
        while self._current is None or self._current.is_done:
            action = next(self._actions, None)
            if action is None:
                self._is_through = True
                return
            self._current = self._perform(action, None)

    def _perform(self, action: Mapping[str, Any], parent: Compound | None) -> Task:
        number = int(action["actionType"])
        if number not in _PERFORMED:
            raise NotEmulated(self._name, NEVER_EMULATED.get(number, f"the action type {number}"))
        return _PERFORMED[number](self, action, parent)

    def _order(self, work: Work, parent: Compound | None) -> Task:
        self._numbers += 1
        self._new[work.task_id] = work
        task = self._open[work.task_id] = Task(parent)
        return task

    def _activity(self, action: Mapping[str, Any], parent: Compound | None) -> Task:
        name = action["functionName"]
        self._functions.get(FunctionKind.ACTIVITY, name)
        return self._order(ActivityCall(self._numbers, name, action.get("input")), parent)

    def _continue_as_new(self, action: Mapping[str, Any], parent: Compound | None) -> Task:
        self._next_input = json.dumps(action.get("input"))
        return Task(parent, is_done=True)

    def _timer(self, action: Mapping[str, Any], parent: Compound | None) -> Task:
        task = self._order(TimerSet(self._numbers, from_stamp(action["fireAt"])), parent)
        if action.get("isCanceled"):  # nothing waits for it, but it still fires
            del self._open[self._numbers - 1]
            task.is_done = True
        return task

    def _external_event(self, action: Mapping[str, Any], parent: Compound | None) -> Task:
        key = action["externalEventName"].lower()
        if self._unclaimed[key]:
            self._unclaimed[key] -= 1
            return Task(parent, is_done=True)
        self._waiting[key].append(task := Task(parent))
        return task

    def _compound(self, action: Mapping[str, Any], parent: Compound | None) -> Task:
        task = Compound(parent, any if int(action["actionType"]) == ANY_OF else all)
        task.begin([self._perform(each, task) for each in action["compoundActions"]])
        return task


_Perform = Callable[[_Walk, Mapping[str, Any], Compound | None], Task]
_PERFORMED: Mapping[int, _Perform] = {
    0: _Walk._activity,
    4: _Walk._continue_as_new,
    5: _Walk._timer,
    6: _Walk._external_event,
    ANY_OF: _Walk._compound,
    12: _Walk._compound,
}

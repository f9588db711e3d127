"""Walk an orchestrator's actions along its history, as the .NET side does, to number every order.

The orchestrator sends its whole list of actions each time. The extension performs the actions in order, each when the
one before has ended, and numbers its orders; an order that the history lacks is new. A result reaches its task only
when the numbers here are those of the SDK.

Source: OutOfProcOrchestrationShim (schema V3), TaskOrchestrationContext and TaskOrchestrationExecutor.
"""

import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from local.functions_host.durable.functions import (
    ActivityCall,
    ChildCall,
    DurableFunctions,
    EntityRequest,
    Kind,
    TimerSet,
    Work,
    agrees,
)
from local.functions_host.durable.history import Event, EventType, from_stamp
from local.functions_host.durable.tasks import AllOf, AnyOf, Retry, Task, retry_options
from local.functions_host.errors import NotEmulated

ORDERED = frozenset(
    (EventType.TASK_SCHEDULED, EventType.TIMER_CREATED, EventType.SUB_ORCHESTRATION_CREATED, EventType.EVENT_SENT)
)
ENDED = {
    EventType.TASK_COMPLETED: ("TaskScheduledId", False),
    EventType.TASK_FAILED: ("TaskScheduledId", True),
    EventType.SUB_ORCHESTRATION_COMPLETED: ("TaskScheduledId", False),
    EventType.SUB_ORCHESTRATION_FAILED: ("TaskScheduledId", True),
    EventType.TIMER_FIRED: ("TimerId", False),
}
NEVER_EMULATED = {8: "call_http", 10: "a scheduled signal of an entity"}


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
class Caller:
    """The orchestration whose actions are walked."""

    name: str
    instance_id: str
    execution_id: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """The state after the walk. `next_input` is JSON, or None unless the orchestrator continues as new."""

    new_work: tuple[Work, ...]
    has_open_tasks: bool
    is_through: bool
    awaits_event: bool
    next_input: str | None


def replay(
    actions: Sequence[Mapping[str, Any]], events: Iterable[Event], caller: Caller, functions: DurableFunctions
) -> Replayed:
    """Return the orders of the actions that the events lack.

    Raises NonDeterministic, UnknownFunction and NotEmulated; each of them ends the orchestration.
    """
    walk = _Walk(actions, caller, functions)
    for each in events:
        walk.see(each)
    return walk.stand()


class _Walk:
    def __init__(self, actions: Sequence[Mapping[str, Any]], caller: Caller, functions: DurableFunctions) -> None:
        self._actions = iter(actions)
        self._caller = caller
        self._functions = functions
        self._current: Task | None = None
        self._is_through = False
        self._numbers = self._requests = 0
        self._open: dict[int, Task] = {}
        self._new: dict[int, Work] = {}
        self._waiting: dict[str, list[Task]] = defaultdict(list)
        self._unclaimed: dict[str, int] = defaultdict(int)
        self._next_input: str | None = None
        self.now: datetime

    def stand(self) -> Replayed:
        new_work = tuple(self._new[number] for number in sorted(self._new))
        awaits_event = any(self._waiting.values())
        return Replayed(new_work, bool(self._open), self._is_through, awaits_event, self._next_input)

    def see(self, recorded: Event) -> None:
        kind = recorded["EventType"]
        if kind == EventType.ORCHESTRATOR_STARTED:
            self.now = from_stamp(recorded["Timestamp"])
        elif kind == EventType.EXECUTION_STARTED:
            self._advance()
        elif kind in ORDERED:
            self._settle_order(recorded)
        elif kind in ENDED:
            self._settle_end(recorded)
        elif kind == EventType.EVENT_RAISED:
            self._settle_event(recorded["Name"])

    def _advance(self) -> None:
        while self._current is None or self._current.is_done:
            action = next(self._actions, None)
            if action is None:
                self._is_through = True
                return
            self._current = self._perform(action, None)

    def _settle_order(self, recorded: Event) -> None:
        found = self._new.pop(recorded["EventId"], None)
        if found is None or not agrees(found, recorded):
            raise NonDeterministic(recorded, found)

    def _settle_end(self, recorded: Event) -> None:
        number_name, failed = ENDED[recorded["EventType"]]
        task = self._open.pop(recorded[number_name], None)
        if task is not None:
            task.finish(failed=failed)
            self._advance()

    def _settle_event(self, name: str) -> None:
        key = name.lower()
        if self._waiting[key]:
            self._waiting[key].pop().finish()  # the last waiter gets the first event, as on the .NET side
            self._advance()
        else:
            self._unclaimed[key] += 1

    def _perform(self, action: Mapping[str, Any], parent: Task | None) -> Task:
        number = int(action["actionType"])
        if number not in _PERFORMED:
            raise NotEmulated(self._caller.name, NEVER_EMULATED.get(number, f"the action type {number}"))
        return _PERFORMED[number](self, action, parent)

    def _order(self, work: Work, parent: Task | None) -> Task:
        task = Task(parent)
        self._new[work.task_id] = work
        self._open[work.task_id] = task
        return task

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers - 1

    def _activity(self, action: Mapping[str, Any], parent: Task | None) -> Task:
        name = action["functionName"]
        self._functions.get(Kind.ACTIVITY, name)
        return self._order(ActivityCall(self._number(), name, action.get("input")), parent)

    def _child(self, action: Mapping[str, Any], parent: Task | None) -> Task:
        name = action["functionName"]
        self._functions.get(Kind.ORCHESTRATOR, name)
        if action.get("version") is not None:
            raise NotEmulated(self._caller.name, "a version of a sub-orchestration")
        number = self._number()
        instance_id = action.get("instanceId") or f"{self._caller.execution_id}:{number}"
        return self._order(ChildCall(number, name, instance_id, action.get("input")), parent)

    def _activity_retried(self, action: Mapping[str, Any], parent: Task | None) -> Task:
        options = retry_options(action["retryOptions"])
        return Retry(parent, self, lambda retry: self._activity(action, retry), options)

    def _child_retried(self, action: Mapping[str, Any], parent: Task | None) -> Task:
        options = retry_options(action["retryOptions"])
        return Retry(parent, self, lambda retry: self._child(action, retry), options)

    def _continue_as_new(self, action: Mapping[str, Any], parent: Task | None) -> Task:
        self._next_input = json.dumps(action.get("input"))
        return _ended(parent)

    def _timer(self, action: Mapping[str, Any], parent: Task | None) -> Task:
        task = self.set_timer(parent, from_stamp(action["fireAt"]))
        if action.get("isCanceled"):  # nothing waits for it, but it still fires
            del self._open[self._numbers - 1]
            task.is_done = True
        return task

    def set_timer(self, parent: Task | None, fire_at: datetime) -> Task:
        return self._order(TimerSet(self._number(), fire_at), parent)

    def _external_event(self, action: Mapping[str, Any], parent: Task | None) -> Task:
        return self._wait_for(action["externalEventName"], parent)

    def _wait_for(self, name: str, parent: Task | None) -> Task:
        key = name.lower()
        if self._unclaimed[key]:
            self._unclaimed[key] -= 1
            return _ended(parent)
        task = Task(parent)
        self._waiting[key].append(task)
        return task

    def _call_entity(self, action: Mapping[str, Any], parent: Task | None) -> Task:
        return self._wait_for(self._request(action, is_signal=False), parent)

    def _signal_entity(self, action: Mapping[str, Any], parent: Task | None) -> Task:
        self._request(action, is_signal=True)
        return _ended(parent)

    def _request(self, action: Mapping[str, Any], *, is_signal: bool) -> str:
        entity_id = action["instanceId"]
        self._functions.get(Kind.ENTITY, entity_id.split("@", 2)[1])
        request_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._caller.execution_id}_{self._requests}"))
        self._requests += 1
        request = {
            "op": action["operation"],
            "id": request_id,
            "input": json.dumps(action.get("input")),
            "signal": is_signal,
            "parent": self._caller.instance_id,
            "parentExecution": self._caller.execution_id,
        }
        number = self._number()
        self._new[number] = EntityRequest(number, entity_id, request)
        return request_id

    def _any_of(self, action: Mapping[str, Any], parent: Task | None) -> Task:
        return self._compound(AnyOf(parent), action)

    def _all_of(self, action: Mapping[str, Any], parent: Task | None) -> Task:
        return self._compound(AllOf(parent), action)

    def _compound(self, task: AllOf | AnyOf, action: Mapping[str, Any]) -> Task:
        children = [self._perform(each, task) for each in action["compoundActions"]]
        task.begin(children)
        return task


def _ended(parent: Task | None) -> Task:
    """Return a task that has ended already."""
    task = Task(parent)
    task.is_done = True
    return task


_Perform = Callable[[_Walk, Mapping[str, Any], Task | None], Task]
_PERFORMED: Mapping[int, _Perform] = {
    0: _Walk._activity,
    1: _Walk._activity_retried,
    2: _Walk._child,
    3: _Walk._child_retried,
    4: _Walk._continue_as_new,
    5: _Walk._timer,
    6: _Walk._external_event,
    7: _Walk._call_entity,
    9: _Walk._signal_entity,
    11: _Walk._any_of,
    12: _Walk._all_of,
}

"""Decide an orchestrator's turn: the request in the extension's form, the SDK's answer, and the changes. Pure.

Source: DurableTask.Core's TaskOrchestrationDispatcher and TaskOrchestrationExecutor.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from local.functions_host.durable.functions import (
    ActivityCall,
    DurableFunctions,
    TimerSet,
    UnknownFunction,
    Work,
)
from local.functions_host.durable.instances import (
    CONTROLS,
    ActivityOrder,
    Entry,
    Episode,
    EpisodeCommit,
    Event,
    EventType,
    Instance,
    NewInstance,
    Outgoing,
    Status,
    event,
    stamped,
)
from local.functions_host.durable.replay import NonDeterministic, Replayed, replay
from local.functions_host.errors import NotEmulated
from local.functions_host.invoker import InvocationResult

SCHEMA_V3 = 2
FAILURE_MARK = "\n\n$OutOfProcData$:"
LARGEST_CUSTOM_STATUS_KB = 16
CONSTANTS = {
    "upperSchemaVersion": 1,
    "upperSchemaVersionNew": SCHEMA_V3,
    "longRunningTimerIntervalDuration": "3.00:00:00",
    "maximumShortTimerDuration": "6.00:00:00",
    "defaultHttpAsyncRequestSleepTimeMillseconds": 30000,
}


class Unreadable(Exception):
    """The worker's answer does not have the orchestrators' schema V3, or is too large."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The state of an orchestrator: all its actions so far. Output and custom status are JSON."""

    actions: Sequence[Mapping[str, Any]]
    is_done: bool
    output: str | None
    error: str | None
    custom_status: str | None


def request_text(instance: Instance, past: Sequence[str], new: Sequence[Event]) -> str:
    """Return the orchestration trigger's value.

    Source: OrchestrationTriggerAttributeBindingProvider. The past is JSON already, and the largest part.
    """
    rest = {
        "input": None if instance.input is None else json.loads(instance.input),
        "instanceId": instance.instance_id,
        "isReplaying": bool(past),
        "parentInstanceId": None,
        **CONSTANTS,
    }
    history = ",".join([*past, *(json.dumps(each) for each in new)])
    return f'{{"history": [{history}], {json.dumps(rest)[1:]}'


def read_answer(outcome: InvocationResult) -> Answer:
    """Read a worker's outcome. Raises Unreadable when it is no answer, as when the worker itself failed."""
    if outcome.error is not None and FAILURE_MARK not in outcome.error:
        raise Unreadable(outcome.error)
    raw: Any = outcome.value and outcome.value.value
    if outcome.error is not None:
        raw = outcome.error.partition(FAILURE_MARK)[2]
    try:
        state = json.loads(raw) if isinstance(raw, str) else raw
    except ValueError as error:
        raise Unreadable("Out of proc orchestrators must return a valid JSON schema") from error
    if not isinstance(state, dict) or not isinstance(state.get("actions"), list) or "isDone" not in state:
        raise Unreadable("The data returned by the out-of-process function execution was not valid json.")
    if state.get("schemaVersion") != SCHEMA_V3 or len(state["actions"]) != 1:
        raise Unreadable(f"only the out-of-process schema V3 is emulated, not {state.get('schemaVersion')!r}")
    return Answer(
        actions=state["actions"][0],
        is_done=bool(state["isDone"]),
        output=_text_or_none(state.get("output")),
        error=state.get("error"),
        custom_status=_limited(_text_or_none(state.get("customStatus"))),
    )


def _text_or_none(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _limited(custom_status: str | None) -> str | None:
    size_kb = len(custom_status or "") * 2 // 1024
    if size_kb >= LARGEST_CUSTOM_STATUS_KB:
        raise Unreadable(
            f"The UTF-16 size of the JSON-serialized payload must not exceed {LARGEST_CUSTOM_STATUS_KB} KB. "
            f"The current payload size is {size_kb} KB."
        )
    return custom_status


SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of an orchestrator at one instant. `new` begins with OrchestratorStarted."""

    instance: Instance
    past: Sequence[str]
    new: Sequence[Event]
    consumed: Sequence[int]
    at: datetime

    @property
    def request(self) -> str:
        return request_text(self.instance, self.past, self.new)


def begin(instance: Instance, episode: Episode, at: datetime) -> Turn | EpisodeCommit:
    """Return the turn of the entries, or the commit, when they terminate or suspend the instance."""
    fitting = [each for each in episode.entries if each.execution_id in (None, instance.execution_id)]
    fitting.sort(key=lambda each: not _is(each, EventType.EXECUTION_STARTED))
    status = _controlled(instance.status, fitting)
    if status is Status.SUSPENDED:
        takes = (*CONTROLS, EventType.EXECUTION_STARTED)  # the others wait
        fitting = [each for each in fitting if each.event["EventType"] in takes]
    stale = [each for each in episode.entries if each.execution_id not in (None, instance.execution_id)]
    new = [event(EventType.ORCHESTRATOR_STARTED), *(each.event for each in fitting)]
    consumed = [each.number for each in (*fitting, *stale)]
    turn = Turn(instance, episode.past, [stamped(each, at) for each in new], consumed, at)
    if status is Status.TERMINATED:
        last = next(each.event for each in reversed(fitting) if _is(each, EventType.EXECUTION_TERMINATED))
        return _ended(turn, Status.TERMINATED, json.dumps(last["Reason"]), instance.custom_status)
    if status is Status.SUSPENDED:
        return replace(_commit(turn, status, instance.custom_status), events=_closed(turn, []))
    return turn


def _is(entry: Entry, kind: EventType) -> bool:
    return bool(entry.event["EventType"] == kind)


def _controlled(status: Status, entries: Iterable[Entry]) -> Status:
    """Return the status after the control entries. Terminated is final."""
    status = Status.SUSPENDED if status is Status.SUSPENDED else Status.RUNNING
    for each in entries:
        if _is(each, EventType.EXECUTION_TERMINATED):
            return Status.TERMINATED
        if _is(each, EventType.EXECUTION_SUSPENDED):
            status = Status.SUSPENDED
        elif _is(each, EventType.EXECUTION_RESUMED):
            status = Status.RUNNING
    return status


def conclude(turn: Turn, answer: Answer, functions: DurableFunctions, new_id: Callable[[], str]) -> EpisodeCommit:
    """Return the changes of the orchestrator's answer. `new_id` makes the ids of the executions that it starts."""
    events = [json.loads(f"[{','.join(turn.past)}]"), turn.new]
    try:
        replayed = replay(answer.actions, (each for part in events for each in part), turn.instance.name, functions)
    except (NonDeterministic, UnknownFunction, NotEmulated) as error:
        return fail(turn, str(error), answer.custom_status)
    if replayed.has_open_tasks or not replayed.is_through or not (answer.is_done or answer.error):
        return _going_on(turn, answer, replayed)
    if answer.error:
        return fail(turn, answer.error, answer.custom_status, replayed.new_work)
    if replayed.next_input is not None:
        instance = turn.instance
        successor = NewInstance(instance.instance_id, new_id(), instance.name, replayed.next_input)
        return replace(_commit(turn, Status.RUNNING, answer.custom_status), successor=successor)
    return _ended(turn, Status.COMPLETED, answer.output, answer.custom_status, replayed.new_work)


def fail(turn: Turn, reason: str, custom_status: str | None = None, new_work: Sequence[Work] = ()) -> EpisodeCommit:
    text = json.dumps(f"Orchestrator function '{turn.instance.name}' failed: {reason}")
    return _ended(turn, Status.FAILED, text, custom_status, new_work)


def _commit(turn: Turn, status: Status, custom_status: str | None) -> EpisodeCommit:
    """Return the commit of a turn that changes nothing but the status."""
    return EpisodeCommit(
        instance_id=turn.instance.instance_id,
        execution_id=turn.instance.execution_id,
        at=turn.at,
        status=status,
        consumed=turn.consumed,
        past=len(turn.past),
        custom_status=custom_status,
    )


def _ended(
    turn: Turn, status: Status, output: str | None, custom_status: str | None, new_work: Sequence[Work] = ()
) -> EpisodeCommit:
    end = event(EventType.EXECUTION_COMPLETED, OrchestrationStatus=status.value, Result=output)
    return replace(
        _commit(turn, status, custom_status),
        events=_closed(turn, [*(each.ordered for each in new_work), end]),
        output=output,
    )


def _going_on(turn: Turn, answer: Answer, replayed: Replayed) -> EpisodeCommit:
    ids, work = (turn.instance.instance_id, turn.instance.execution_id), replayed.new_work
    return replace(
        _commit(turn, Status.RUNNING, answer.custom_status),
        events=_closed(turn, [each.ordered for each in work]),
        activities=[
            ActivityOrder(*ids, each.task_id, each.name, each.input) for each in work if isinstance(each, ActivityCall)
        ],
        outgoing=[Outgoing(*ids, each.fired, _shown_at(each, turn.at)) for each in work if isinstance(each, TimerSet)],
        waits_for_nothing=not replayed.has_open_tasks and not replayed.awaits_event,
    )


def _closed(turn: Turn, more: Iterable[Event]) -> Sequence[Event]:
    last = event(EventType.ORCHESTRATOR_COMPLETED)
    return [*turn.new, *(stamped(each, turn.at) for each in (*more, last))]


def _shown_at(timer: TimerSet, at: datetime) -> datetime:
    """Return the time at which Azure's queue shows the timer's message: it hides one for whole seconds, cut."""
    return at + max(timedelta(), (timer.fire_at - at) // SECOND * SECOND)

"""Decide an orchestrator's turn: its request, and the changes of its answer. Pure.

Source: DurableTask.Core's TaskOrchestrationDispatcher and TaskOrchestrationExecutor.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from local.functions_host.durable.answers import Answer, request_text
from local.functions_host.durable.functions import (
    ActivityCall,
    ChildCall,
    DurableFunctions,
    EntityRequest,
    TimerSet,
    UnknownFunction,
    Work,
)
from local.functions_host.durable.history import CONTROLS, Event, EventType, event, stamped
from local.functions_host.durable.instances import (
    ActivityOrder,
    ChildOrder,
    Entry,
    Episode,
    EpisodeCommit,
    Instance,
    NewInstance,
    Outgoing,
    Parent,
    Status,
)
from local.functions_host.durable.replay import Caller, NonDeterministic, Replayed, replay
from local.functions_host.errors import NotEmulated

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of an orchestrator at one instant. `new` begins with OrchestratorStarted."""

    instance: Instance
    past: Sequence[str]
    new: Sequence[Event]
    consumed: Sequence[int]
    at: datetime
    status: Status = Status.RUNNING

    @property
    def request(self) -> str:
        """The orchestration trigger's value."""
        return request_text(self.instance, self.past, self.new)


def begin(instance: Instance, episode: Episode, at: datetime) -> Turn | EpisodeCommit:
    """Return the turn of the entries; or the commit, when they terminate or suspend the instance."""
    fitting = [each for each in episode.entries if each.execution_id in (None, instance.execution_id)]
    fitting.sort(key=lambda each: not _is(each, EventType.EXECUTION_STARTED))
    status = _controlled(instance.status, fitting)
    if status is Status.SUSPENDED:
        fitting = [each for each in fitting if _comes_through(each)]
    stale = [each for each in episode.entries if each.execution_id not in (None, instance.execution_id)]
    new = [event(EventType.ORCHESTRATOR_STARTED), *(each.event for each in fitting)]
    turn = Turn(
        instance,
        episode.past,
        [stamped(each, at) for each in new],
        [each.number for each in (*fitting, *stale)],
        at,
        status,
    )
    if status is Status.TERMINATED:
        last = next(each.event for each in reversed(fitting) if _is(each, EventType.EXECUTION_TERMINATED))
        return _ended(turn, Status.TERMINATED, json.dumps(last["Reason"]), instance.custom_status)
    return _paused(turn) if status is Status.SUSPENDED else turn


def _is(entry: Entry, kind: EventType) -> bool:
    return bool(entry.event["EventType"] == kind)


def _comes_through(entry: Entry) -> bool:
    """Return True for an entry that a suspended instance takes: a control, or its start; the others wait."""
    return entry.event["EventType"] in CONTROLS or _is(entry, EventType.EXECUTION_STARTED)


def _controlled(status: Status, entries: Iterable[Entry]) -> Status:
    """Return the status after the control entries; Terminated is final."""
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
    """Return the changes of the orchestrator's answer; `new_id` makes the ids of the executions that it starts."""
    instance = turn.instance
    caller = Caller(instance.name, instance.instance_id, instance.execution_id)
    events = [json.loads(f"[{','.join(turn.past)}]"), turn.new]
    try:
        replayed = replay(answer.actions, (each for part in events for each in part), caller, functions)
    except (NonDeterministic, UnknownFunction, NotEmulated) as error:
        return fail(turn, str(error), answer.custom_status)
    if replayed.has_open_tasks or not replayed.is_through or not (answer.is_done or answer.error):
        return _going_on(turn, answer, replayed, new_id)
    if answer.error:
        return fail(turn, answer.error, answer.custom_status, replayed.new_work)
    if replayed.next_input is not None:
        return _continued(turn, answer, replayed, new_id)
    return _ended(turn, Status.COMPLETED, answer.output, answer.custom_status, replayed.new_work)


def fail(turn: Turn, reason: str, custom_status: str | None = None, new_work: Sequence[Work] = ()) -> EpisodeCommit:
    """Return the commit of a failed orchestration."""
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
        outgoing=[*_requests(turn, new_work), *_reports(turn, status, output)],
    )


def _paused(turn: Turn) -> EpisodeCommit:
    return replace(_commit(turn, Status.SUSPENDED, turn.instance.custom_status), events=_closed(turn, []))


def _going_on(turn: Turn, answer: Answer, replayed: Replayed, new_id: Callable[[], str]) -> EpisodeCommit:
    ids, work = (turn.instance.instance_id, turn.instance.execution_id), replayed.new_work
    return replace(
        _commit(turn, Status.RUNNING, answer.custom_status),
        events=_closed(turn, [each.ordered for each in work]),
        activities=[
            ActivityOrder(*ids, each.task_id, each.name, each.input) for each in work if isinstance(each, ActivityCall)
        ],
        children=[_child(turn, each, new_id()) for each in work if isinstance(each, ChildCall)],
        outgoing=[*_timers(turn, work), *_requests(turn, work)],
        waits_for_nothing=not replayed.has_open_tasks and not replayed.awaits_event,
    )


def _continued(turn: Turn, answer: Answer, replayed: Replayed, new_id: Callable[[], str]) -> EpisodeCommit:
    instance = turn.instance
    return replace(
        _commit(turn, Status.RUNNING, answer.custom_status),
        outgoing=_requests(turn, replayed.new_work),
        successor=NewInstance(instance.instance_id, new_id(), instance.name, replayed.next_input, instance.parent),
    )


def _closed(turn: Turn, more: Iterable[Event]) -> Sequence[Event]:
    last = event(EventType.ORCHESTRATOR_COMPLETED)
    return [*turn.new, *(stamped(each, turn.at) for each in (*more, last))]


def _timers(turn: Turn, work: Iterable[Work]) -> list[Outgoing]:
    ids = (turn.instance.instance_id, turn.instance.execution_id)
    return [Outgoing(*ids, each.fired, _shown_at(each, turn.at)) for each in work if isinstance(each, TimerSet)]


def _shown_at(timer: TimerSet, at: datetime) -> datetime:
    """Return the time at which Azure's queue shows the timer's message: it hides one for whole seconds, cut."""
    return at + max(timedelta(), (timer.fire_at - at) // SECOND * SECOND)


def _requests(turn: Turn, work: Iterable[Work]) -> list[Outgoing]:
    requests = (each for each in work if isinstance(each, EntityRequest))
    return [Outgoing(each.entity_id, None, each.request, turn.at) for each in requests]


def _child(turn: Turn, call: ChildCall, execution_id: str) -> ChildOrder:
    parent = Parent(turn.instance.instance_id, turn.instance.execution_id, call.task_id)
    child = NewInstance(call.instance_id, execution_id, call.name, json.dumps(call.input), parent)
    reason = f"An Orchestration instance with the id {call.instance_id} already exists and has not ended."
    return ChildOrder(child, _report(turn, parent, Status.FAILED, json.dumps(reason)))


def _reports(turn: Turn, status: Status, output: str | None) -> list[Outgoing]:
    parent = turn.instance.parent
    return [] if parent is None else [_report(turn, parent, status, output)]


def _report(turn: Turn, parent: Parent, status: Status, output: str | None) -> Outgoing:
    if status is Status.COMPLETED:
        end = event(EventType.SUB_ORCHESTRATION_COMPLETED, TaskScheduledId=parent.task_id, Result=output)
    else:
        reason = json.loads(output) if output is not None else None
        end = event(EventType.SUB_ORCHESTRATION_FAILED, TaskScheduledId=parent.task_id, Reason=reason, Details=output)
    return Outgoing(parent.instance_id, parent.execution_id, end, turn.at)

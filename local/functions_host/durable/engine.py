"""Run the turns of orchestrators and entities, and the activities: read, invoke, commit.

Source: the extension's TaskActivityShim; the shape of a failure is that of its serialized exception.

An orchestration or entity has one turn at a time. Turns of different ones, and activities, run at the same time up to
the limits of host.json. The next process repeats the work that a killed process had not committed.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from azure.functions.meta import Datum

from local.functions_host.clock import Clock, sleep_until, unless
from local.functions_host.durable.answers import Unreadable, read_answer
from local.functions_host.durable.entities import batch_text, conclude_batch, names_of
from local.functions_host.durable.episodes import Turn, begin, conclude, fail
from local.functions_host.durable.functions import DurableFunctions, Kind, UnknownFunction
from local.functions_host.durable.history import Event, EventType, event
from local.functions_host.durable.instances import ActivityDue, ActivityOrder, EpisodeCommit, Outgoing, is_entity
from local.functions_host.durable.options import DurableOptions
from local.functions_host.durable.store import DurableStore, StateFault
from local.functions_host.invoker import Invoker, Outcome, TriggerInputs


async def run_activity(order: ActivityOrder, functions: DurableFunctions, invoker: Invoker) -> Event:
    """Run the activity; return TaskCompleted or TaskFailed."""
    try:
        function = functions.get(Kind.ACTIVITY, order.name)
    except UnknownFunction as error:
        return _failed(order, Outcome(error=str(error)))
    inputs = TriggerInputs({function.trigger.name: Datum(order.input, "string")})
    outcome = await invoker.invoke(function, inputs)
    if outcome.error is not None:
        return _failed(order, outcome)
    return event(EventType.TASK_COMPLETED, TaskScheduledId=order.task_id, Result=_result(outcome.value))


def _result(value: Any) -> str | None:
    """Return the activity's result as JSON; None means null too."""
    return None if value is None or value.value in (None, "null") else str(value.value)


def _failed(order: ActivityOrder, outcome: Outcome) -> Event:
    details = {
        "$type": "System.Exception, System.Private.CoreLib",
        "Message": f" {outcome.error}",
        "StackTrace": outcome.stack,
    }
    return event(
        EventType.TASK_FAILED,
        TaskScheduledId=order.task_id,
        Reason=f"Activity function '{order.name}' failed:  {outcome.error}",
        Details=json.dumps(details),
    )


logger = logging.getLogger("functions_host")

AT_ONCE = datetime.min.replace(tzinfo=UTC)  # not now: the clock may be ahead, and be set right
PAUSE_AFTER_FAULT = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts that the engine uses; `new_id` makes execution ids."""

    store: DurableStore
    invoker: Invoker
    functions: DurableFunctions
    clock: Clock
    new_id: Callable[[], str]


class Engine:
    """Runs from `start` to `stop` on the loop that calls them."""

    def __init__(self, surroundings: Surroundings, options: DurableOptions) -> None:
        self._around = surroundings
        self._options = options
        self._wake = asyncio.Event()
        self._stopping = asyncio.Event()
        self._busy: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._activities = 0
        self._last_activity = 0
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start all due work, including that of an earlier process."""
        self._loop = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Start no new work, and wait for the running work."""
        self._stopping.set()
        self._wake.set()
        if self._loop is not None:
            await self._loop
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def wake(self) -> None:
        """Look for due work."""
        self._wake.set()

    async def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            await self._despite_faults(self._look)

    async def _look(self) -> None:
        """Start the work that is due at one instant, and wait until more is due after it, or until a wake."""
        clock = self._around.clock
        now = clock.now()
        self._begin_turns(now)
        self._begin_activities()
        due_at = self._around.store.next_due_at(now)
        if due_at is None:
            await self._wake.wait()
        else:
            await unless(self._wake.wait(), sleep_until(clock, due_at))

    def _begin_turns(self, now: datetime) -> None:
        limits = {False: self._options.orchestrators, True: self._options.entities}
        for running in self._busy:
            limits[is_entity(running)] -= 1
        window = self._options.orchestrators + self._options.entities + len(self._busy)
        for instance_id in self._around.store.ready(now, window):
            if instance_id in self._busy or limits[is_entity(instance_id)] <= 0:
                continue
            limits[is_entity(instance_id)] -= 1
            self._busy.add(instance_id)
            turn = self._entity_turn if is_entity(instance_id) else self._orchestrator_turn
            self._spawn(self._turns_of(instance_id, turn))

    def _begin_activities(self) -> None:
        free = self._options.activities - self._activities
        for due in self._around.store.activities_after(self._last_activity, free) if free > 0 else ():
            self._last_activity = due.number
            self._activities += 1
            self._spawn(self._activity(due))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error(
                "durable work failed; it waits for a restart of the host",
                exc_info=error,
                extra={"action": "durable_given_up"},
            )

    async def _turns_of(self, instance_id: str, turn: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        """Take one turn. After an unexpected error the instance stays busy, so that the turn is not repeated."""
        await self._despite_faults(lambda: turn(instance_id))
        self._busy.discard(instance_id)

    async def _activity(self, due: ActivityDue) -> None:
        try:
            await self._despite_faults(lambda: self._run_activity(due))
        finally:
            self._activities -= 1

    async def _despite_faults(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work; retry after a pause when the state cannot be read or written, until the host stops."""
        while not self._stopping.is_set():
            try:
                await work()
                return
            except StateFault as error:
                logger.error(
                    "durable state failed; will retry", exc_info=error, extra={"action": "durable_state_failed"}
                )
                await unless(self._stopping.wait(), self._around.clock.sleep(PAUSE_AFTER_FAULT))

    async def _run_activity(self, due: ActivityDue) -> None:
        around, order = self._around, due.order
        result = await run_activity(order, around.functions, around.invoker)
        outgoing = Outgoing(order.instance_id, order.execution_id, result, AT_ONCE)
        around.store.complete_activity(due.number, outgoing)

    async def _orchestrator_turn(self, instance_id: str) -> None:
        around = self._around
        episode = around.store.read_episode(instance_id, around.clock.now())
        if (instance := episode.instance) is None or instance.status.is_final:
            around.store.discard(episode.entries)
            return
        begun = begin(instance, episode, around.clock.now())
        commit = await self._answered(begun) if isinstance(begun, Turn) else begun
        if around.store.commit_episode(commit):
            self._report(commit, instance.name)

    async def _answered(self, turn: Turn) -> EpisodeCommit:
        around = self._around
        try:
            function = around.functions.get(Kind.ORCHESTRATOR, turn.instance.name)
            inputs = TriggerInputs({function.trigger.name: Datum(turn.request, "string")})
            answer = read_answer(await around.invoker.call(function, inputs))
        except (UnknownFunction, Unreadable) as error:
            return fail(turn, str(error))
        return conclude(replace(turn, at=around.clock.now()), answer, around.functions, around.new_id)

    def _report(self, commit: EpisodeCommit, name: str) -> None:
        extra: dict[str, str | None] = {
            "function_name": name,
            "instance_id": commit.instance_id,
            "status": commit.status.value,
        }
        if commit.status.is_final:
            more = {"action": "orchestration_ended", "error": commit.error}
            logger.log(logging.ERROR if commit.error else logging.INFO, "orchestration ended", extra=extra | more)
        elif commit.waits_for_nothing:
            logger.error("orchestration waits for nothing", extra={"action": "orchestration_stuck", **extra})

    async def _entity_turn(self, entity_id: str) -> None:
        around = self._around
        batch = around.store.read_entity(entity_id, around.clock.now(), self._options.entity_batch)
        try:
            function = around.functions.get(Kind.ENTITY, names_of(entity_id)[0])
            inputs = TriggerInputs({function.trigger.name: Datum(batch_text(batch), "string")})
            outcome = await around.invoker.invoke(function, inputs)
        except UnknownFunction as error:
            outcome = Outcome(error=str(error))
        around.store.commit_entity(conclude_batch(batch, outcome, around.clock.now()))

"""Run the turns of orchestrators, and the activities: read, invoke, commit.

Source: the extension's TaskActivityShim. A failure has the shape of its serialized exception.

An orchestration has one turn at a time. Turns of different ones, and activities, run at the same time up to
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
from local.functions_host.durable.episodes import Turn, Unreadable, begin, conclude, fail, read_answer
from local.functions_host.durable.functions import DurableFunctions, FunctionKind, UnknownFunction
from local.functions_host.durable.instances import (
    ActivityDue,
    ActivityOrder,
    EpisodeCommit,
    Event,
    EventType,
    Outgoing,
    event,
)
from local.functions_host.durable.store import DurableStore, StateFault
from local.functions_host.invoker import InvocationResult, Invoker, TriggerInputs
from local.functions_host.settings import DurableOptions


async def run_activity(order: ActivityOrder, functions: DurableFunctions, invoker: Invoker) -> Event:
    """Run the activity. Return TaskCompleted or TaskFailed."""
    try:
        function = functions.get(FunctionKind.ACTIVITY, order.name)
    except UnknownFunction as error:
        return _failed(order, InvocationResult(error=str(error)))
    inputs = TriggerInputs({function.trigger.name: Datum(order.input, "string")})
    outcome = await invoker.invoke(function, inputs)
    if outcome.error is not None:
        return _failed(order, outcome)
    found = outcome.value and outcome.value.value
    result = None if found in (None, "null") else str(found)
    return event(EventType.TASK_COMPLETED, TaskScheduledId=order.task_id, Result=result)


def _failed(order: ActivityOrder, outcome: InvocationResult) -> Event:
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
    """The parts that the engine uses. `new_id` makes execution ids."""

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
        """Start all due work, including the work of an earlier process."""
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
        for instance_id in self._around.store.ready(now, self._options.orchestrators + len(self._busy)):
            if instance_id not in self._busy and len(self._busy) < self._options.orchestrators:
                self._busy.add(instance_id)
                self._spawn(self._turn_of(instance_id))
        free = self._options.activities - self._activities
        for due in self._around.store.activities_after(self._last_activity, free) if free > 0 else ():
            self._last_activity = due.number
            self._activities += 1
            self._spawn(self._activity(due))
        due_at = self._around.store.next_due_at(now)
        if due_at is None:
            await self._wake.wait()
        else:
            await unless(self._wake.wait(), sleep_until(clock, due_at))

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

    async def _turn_of(self, instance_id: str) -> None:
        """Take one turn. After an unexpected error the instance stays busy, so that the turn is not repeated."""
        await self._despite_faults(lambda: self._take_turn(instance_id))
        self._busy.discard(instance_id)

    async def _activity(self, due: ActivityDue) -> None:
        around, order = self._around, due.order

        async def work() -> None:
            result = await run_activity(order, around.functions, around.invoker)
            outgoing = Outgoing(order.instance_id, order.execution_id, result, AT_ONCE)
            around.store.complete_activity(due.number, outgoing)

        try:
            await self._despite_faults(work)
        finally:
            self._activities -= 1

    async def _despite_faults(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do the work. Retry after a pause when the state cannot be read or written, until the host stops."""
        while not self._stopping.is_set():
            try:
                await work()
                return
            except StateFault as error:
                logger.error(
                    "durable state failed; will retry", exc_info=error, extra={"action": "durable_state_failed"}
                )
                await unless(self._stopping.wait(), self._around.clock.sleep(PAUSE_AFTER_FAULT))

    async def _take_turn(self, instance_id: str) -> None:
        around = self._around
        episode = around.store.read_episode(instance_id, around.clock.now())
        if (instance := episode.instance) is None or instance.status.is_final:
            around.store.discard(episode.entries)
            return
        begun = begin(instance, episode, around.clock.now())
        commit = await self._answered(begun) if isinstance(begun, Turn) else begun
        if not around.store.commit_episode(commit):
            return
        about: dict[str, str | None] = {
            "function_name": instance.name,
            "instance_id": commit.instance_id,
            "status": commit.status.value,
        }
        if commit.status.is_final:
            about |= {"action": "orchestration_ended", "error": commit.error}
            logger.log(logging.ERROR if commit.error else logging.INFO, "orchestration ended", extra=about)
        elif commit.waits_for_nothing:
            logger.error("orchestration waits for nothing", extra={"action": "orchestration_stuck", **about})

    async def _answered(self, turn: Turn) -> EpisodeCommit:
        around = self._around
        try:
            function = around.functions.get(FunctionKind.ORCHESTRATOR, turn.instance.name)
            inputs = TriggerInputs({function.trigger.name: Datum(turn.request, "string")})
            answer = read_answer(await around.invoker.call(function, inputs))
        except (UnknownFunction, Unreadable) as error:
            return fail(turn, str(error))
        return conclude(replace(turn, at=around.clock.now()), answer, around.functions, around.new_id)

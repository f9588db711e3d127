import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from local.functions_host.function import Binding, FunctionDescription
from local.functions_host.invoker import Ending, Invoker, TriggerInputs
from local.functions_host.retry_policy import RetryPolicy
from local.functions_host.worker import Invocation, Outcome
from tests.unit.local.functions_host.doubles import ManualClock, eventually

pytestmark = pytest.mark.asyncio

TRIGGER = Binding("events", "eventHubTrigger", "IN", {})
FOR_EVER = RetryPolicy(-1, timedelta(seconds=1), timedelta(seconds=8))


class ScriptedWorker:
    """Answers each call by `answer`."""

    def __init__(self, answer: Callable[[Invocation], Outcome]) -> None:
        self._answer = answer
        self.invocations: list[Invocation] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def index(self, directory: Path) -> Sequence[FunctionDescription]:
        return ()

    async def invoke(self, invocation: Invocation) -> Outcome:
        self.invocations.append(invocation)
        await self.gate.wait()
        return self._answer(invocation)

    async def close(self) -> None:
        """Nothing is held."""


def function(retry: RetryPolicy | None) -> FunctionDescription:
    return FunctionDescription("f", TRIGGER, (TRIGGER,), retry)


def failing(invocation: Invocation) -> Outcome:
    return Outcome(error="ValueError: no", stack="the stack")


def invoker(worker: ScriptedWorker, clock: ManualClock, timeout: timedelta | None = None) -> Invoker:
    return Invoker(worker, clock, lambda: 0.5, timeout)


async def test_a_function_that_succeeds_is_called_once(clock: ManualClock) -> None:
    worker = ScriptedWorker(lambda _: Outcome())
    assert await invoker(worker, clock).run(function(FOR_EVER), TriggerInputs({})) is Ending.SUCCEEDED
    (call,) = worker.invocations
    assert (call.retry_count, call.max_retry_count) == (0, -1)


async def test_a_failure_without_policy_is_final_and_logged_once_with_its_stack(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    worker = ScriptedWorker(failing)
    assert await invoker(worker, clock).run(function(None), TriggerInputs({})) is Ending.FAILED
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert vars(record)["error"] == "ValueError: no"
    assert vars(record)["stack"] == "the stack"
    assert vars(record)["invocation_id"] == worker.invocations[0].invocation_id


async def test_retries_are_counted_delayed_and_have_new_invocation_ids(clock: ManualClock) -> None:
    worker = ScriptedWorker(lambda call: Outcome() if call.retry_count == 3 else failing(call))
    running = asyncio.create_task(invoker(worker, clock).run(function(FOR_EVER), TriggerInputs({})))
    for seconds in (1, 2, 3):
        assert await clock.next_sleep() == timedelta(seconds=seconds)
        await clock.advance(timedelta(seconds=seconds))
        await eventually(lambda: not clock.is_somebody_due_within(timedelta(0)))
    assert await asyncio.wait_for(running, 5) is Ending.SUCCEEDED
    assert [call.retry_count for call in worker.invocations] == [0, 1, 2, 3]
    assert len({call.invocation_id for call in worker.invocations}) == 4


async def test_a_retry_that_is_due_is_abandoned_when_the_host_stops(clock: ManualClock) -> None:
    host = invoker(ScriptedWorker(failing), clock)
    running = asyncio.create_task(host.run(function(FOR_EVER), TriggerInputs({})))
    await clock.next_sleep()
    host.stop_retrying()
    assert await asyncio.wait_for(running, 5) is Ending.ABANDONED


async def test_what_runs_is_waited_for(clock: ManualClock) -> None:
    worker = ScriptedWorker(lambda _: Outcome())
    worker.gate.clear()
    host = invoker(worker, clock)
    running = asyncio.create_task(host.run(function(None), TriggerInputs({})))
    await eventually(lambda: host.running == 1)
    finished = asyncio.create_task(host.finished())
    await asyncio.sleep(0)
    assert not finished.done()
    worker.gate.set()
    await asyncio.wait_for(finished, 5)
    assert await asyncio.wait_for(running, 5) is Ending.SUCCEEDED


async def test_a_function_that_outruns_the_timeout_is_reported(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    def slow(_: Invocation) -> Outcome:
        clock.pass_time(timedelta(seconds=2))
        return Outcome()

    host = invoker(ScriptedWorker(slow), clock, timeout=timedelta(seconds=1))
    await host.run(function(None), TriggerInputs({}))
    assert [vars(record)["action"] for record in caplog.records] == ["function_timeout"]

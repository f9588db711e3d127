import asyncio
import logging
from dataclasses import replace
from datetime import timedelta

import pytest

from local.functions_host.function import Binding, FunctionDescription, RetryPolicy
from local.functions_host.invoker import Ending, Invocation, InvocationResult, Invoker, TriggerInputs
from tests.local.functions_host.doubles import ManualClock, ScriptedWorker, eventually

pytestmark = pytest.mark.asyncio

TRIGGER = Binding("events", "eventHubTrigger", "IN", {})
ONCE = FunctionDescription("f", TRIGGER, (TRIGGER,), None)
FOR_EVER = FunctionDescription("f", TRIGGER, (TRIGGER,), RetryPolicy(-1, timedelta(seconds=1), timedelta(seconds=8)))
NOTHING = TriggerInputs({})


async def failing(_: Invocation) -> InvocationResult:
    return InvocationResult(error="ValueError: no", stack="the stack")


def invoker(worker: ScriptedWorker, clock: ManualClock) -> Invoker:
    return Invoker(worker, clock, lambda: 0.5, timedelta(seconds=100))


async def test_a_failure_without_policy_is_final_and_logged_once_with_its_stack(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    worker = ScriptedWorker(failing)
    assert await invoker(worker, clock).run(ONCE, NOTHING) is Ending.FAILED
    (record,), (call,) = caplog.records, worker.invocations
    found = vars(record)
    assert (record.levelno, found["error"], found["stack"]) == (logging.ERROR, "ValueError: no", "the stack")
    assert found["invocation_id"] == call.invocation_id
    assert (call.retry_count, call.max_retry_count) == (0, 0)


async def test_retries_are_counted_and_delayed_and_keep_their_invocation_id(clock: ManualClock) -> None:
    async def failing_thrice(call: Invocation) -> InvocationResult:
        return InvocationResult() if call.retry_count == 3 else await failing(call)

    worker = ScriptedWorker(failing_thrice)
    running = asyncio.create_task(invoker(worker, clock).run(FOR_EVER, NOTHING))
    for seconds in (1, 2, 3):
        assert await clock.next_sleep() == timedelta(seconds=seconds)
        await clock.advance(timedelta(seconds=seconds))
        await eventually(lambda: not clock.is_somebody_due_within(timedelta(0)))
    assert await asyncio.wait_for(running, 5) is Ending.SUCCEEDED
    assert [(call.retry_count, call.max_retry_count) for call in worker.invocations] == [(n, -1) for n in range(4)]
    assert len({call.invocation_id for call in worker.invocations}) == 1


async def test_inputs_that_cannot_be_bound_fail_at_every_try_before_the_function(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    worker = ScriptedWorker(failing)
    twice = replace(FOR_EVER, retry=RetryPolicy(1, timedelta(seconds=1), timedelta(seconds=8)))
    running = asyncio.create_task(invoker(worker, clock).run(twice, TriggerInputs({}, fault="not bound")))
    await clock.advance(await clock.next_sleep())
    assert await asyncio.wait_for(running, 5) is Ending.FAILED
    assert worker.invocations == []
    assert [(vars(one)["error"], vars(one)["retry_count"]) for one in caplog.records] == [
        ("not bound", n) for n in (0, 1)
    ]


async def test_a_retry_that_is_due_is_abandoned_when_the_host_stops(clock: ManualClock) -> None:
    host = invoker(ScriptedWorker(failing), clock)
    running = asyncio.create_task(host.run(FOR_EVER, NOTHING))
    await clock.next_sleep()
    assert (host.running, host.retrying) == (0, 1)
    host.stop_retrying()
    assert await asyncio.wait_for(running, 5) is Ending.ABANDONED
    assert host.retrying == 0


async def test_the_invoker_waits_for_running_functions(clock: ManualClock) -> None:
    gate = asyncio.Event()

    async def waiting(_: Invocation) -> InvocationResult:
        await gate.wait()
        return InvocationResult()

    host = invoker(ScriptedWorker(waiting), clock)
    running = asyncio.create_task(host.run(ONCE, NOTHING))
    await eventually(lambda: host.running == 1)
    finished = asyncio.create_task(host.finished())
    await asyncio.sleep(0)
    assert not finished.done()
    gate.set()
    await asyncio.wait_for(finished, 5)
    assert await asyncio.wait_for(running, 5) is Ending.SUCCEEDED


async def test_a_function_that_outruns_the_timeout_is_reported(
    clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def slow(_: Invocation) -> InvocationResult:
        clock.pass_time(timedelta(seconds=101))
        return InvocationResult()

    await invoker(ScriptedWorker(slow), clock).run(ONCE, NOTHING)
    assert [vars(record)["action"] for record in caplog.records] == ["function_timeout"]

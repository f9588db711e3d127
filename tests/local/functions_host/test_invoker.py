import asyncio
from datetime import timedelta

import pytest

from local.functions_host.function import Binding, FunctionDescription
from local.functions_host.invoker import Ending, Invocation, InvocationResult, Invoker, TriggerInputs
from tests.local.functions_host.doubles import ManualClock, ScriptedWorker, eventually

pytestmark = pytest.mark.asyncio

TRIGGER = Binding("events", "eventHubTrigger", "IN", {})
ONCE = FunctionDescription("f", TRIGGER, (TRIGGER,), None)
NOTHING = TriggerInputs({})


def invoker(worker: ScriptedWorker, clock: ManualClock) -> Invoker:
    return Invoker(worker, clock, lambda: 0.5, timedelta(seconds=100))


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

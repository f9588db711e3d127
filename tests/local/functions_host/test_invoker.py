import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from azure.functions.meta import Datum

from local.functions_host.builtin_worker import BuiltinWorker
from local.functions_host.function import Binding, FunctionDescription, RetryPolicy, parse_retry_policy
from local.functions_host.invoker import Ending, Invocation, InvocationResult, Invoker, TriggerInputs
from local.functions_host.logs import current_invocation_id
from local.functions_host.supervisor import APART, Deaths
from tests.local.functions_host.doubles import ManualClock, ScriptedWorker, eventually

pytestmark = pytest.mark.asyncio

HEAD = """
import azure.functions as func
import azure.durable_functions as df
from local.functions_host.logs import current_invocation_id
app = df.DFApp()
"""
TIMER = '@app.timer_trigger(schedule="0 0 5 * * *", arg_name="t")\n'


@asynccontextmanager
async def indexed(directory: Path, source: str) -> AsyncIterator[BuiltinWorker]:
    (directory / "function_app.py").write_text(HEAD + source)
    worker = BuiltinWorker(None)
    try:
        await worker.index(directory)
        yield worker
    finally:
        await worker.close()


def call() -> Invocation:
    return Invocation("the-id", "f", {"t": Datum('{"IsPastDue": false}', "json")})


@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_function_knows_its_invocation_its_failure_has_type_text_and_stack(empty_app: Path, kind: str) -> None:
    known = "current_invocation_id.get() == context.invocation_id == 'the-id'"
    async with indexed(empty_app, f"{TIMER}{kind} f(t, context: func.Context): raise ValueError({known})") as worker:
        outcome = await worker.invoke(call())
    assert outcome.error == "ValueError: True"
    assert "raise ValueError" in outcome.stack
    assert "function_app.py" in outcome.stack
    assert current_invocation_id.get() is None


async def test_the_invoker_waits_for_running_functions(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    gate, trigger = asyncio.Event(), Binding("events", "eventHubTrigger", "IN", {})

    async def waiting(_: Invocation) -> InvocationResult:
        await gate.wait()
        clock.pass_time(timedelta(seconds=101))
        return InvocationResult()

    host = Invoker(ScriptedWorker(waiting), clock, lambda: 0.5, timedelta(seconds=100))
    function = FunctionDescription("f", trigger, (trigger,), None)
    running = asyncio.create_task(host.run(function, TriggerInputs({})))
    await eventually(lambda: host.running == 1)
    finished = asyncio.create_task(host.finished())
    await asyncio.sleep(0)
    assert not finished.done()
    gate.set()
    await asyncio.wait_for(finished, 5)
    assert await asyncio.wait_for(running, 5) is Ending.SUCCEEDED
    assert [vars(record)["action"] for record in caplog.records] == ["function_timeout"]


BACKOFF = {
    "strategy": "exponential_backoff",
    "max_retry_count": "-1",
    "minimum_interval": "00:00:02",
    "maximum_interval": "00:01:00",
}


async def test_a_backoff_is_the_minimum_first_then_minimum_plus_a_doubling_part_up_to_the_maximum() -> None:
    policy = parse_retry_policy(BACKOFF)
    assert policy is not None
    assert [policy.delay(n, lambda: 0.5).total_seconds() for n in range(8)] == [2, 4, 6, 10, 18, 34, 60, 60]
    assert policy.delay(1, lambda: 0.0) == timedelta(seconds=3.6)
    assert policy.allows(10**9)
    shorter = policy.within(timedelta(seconds=5))
    assert [shorter.delay(n, lambda: 0.5).total_seconds() for n in range(4)] == [2, 4, 5, 5]
    assert shorter.within(timedelta(seconds=1)) == RetryPolicy(-1, timedelta(seconds=1), timedelta(seconds=1))
    for change, name in (
        ({"strategy": "exponentialBackoff"}, "strategy"),
        ({"max_retry_count": "-2"}, "max_retry_count"),
        ({"max_retry_count": "often"}, "max_retry_count"),
        ({"maximum_interval": ""}, "maximum_interval"),
        ({"minimum_interval": "2 s"}, "duration"),
    ):
        with pytest.raises(ValueError, match=name):
            parse_retry_policy({**BACKOFF, **change})


async def test_deaths_count_anew_after_half_an_hour_without_one() -> None:
    def ends(*times: float) -> list[bool]:
        deaths = Deaths()
        return [deaths.add(at) for at in times]

    apart = APART.total_seconds()
    assert ends(0, 1, 1 + apart, 2 + apart, 3 + apart) == [False] * 4 + [True]
    assert ends(0, apart - 1, 2 * apart - 2) == [False, False, True]

import json
from datetime import timedelta
from typing import Any

import pytest

from local.functions_host.durable.engine import run_activity
from local.functions_host.durable.instances import ActivityOrder, EventType
from local.functions_host.invoker import Invocation, InvocationResult, Invoker
from tests.local.functions_host.doubles import ManualClock, ScriptedWorker
from tests.local.functions_host.durable.doubles import FUNCTIONS

pytestmark = pytest.mark.asyncio


async def ran(outcome: InvocationResult, name: str = "work") -> Any:
    async def answer(_: Invocation) -> InvocationResult:
        return outcome

    invoker = Invoker(ScriptedWorker(answer), ManualClock(), lambda: 0.5, timedelta(minutes=1))
    return await run_activity(ActivityOrder("one", "x", 3, name, '{"a": 1}'), FUNCTIONS, invoker)


async def test_a_failure_has_the_words_of_the_extension() -> None:
    failed = await ran(InvocationResult(error="ValueError: no", stack="the stack"))
    assert failed["EventType"] == EventType.TASK_FAILED
    assert failed["Reason"] == "Activity function 'work' failed:  ValueError: no"
    assert json.loads(failed["Details"]) == {
        "$type": "System.Exception, System.Private.CoreLib",
        "Message": " ValueError: no",
        "StackTrace": "the stack",
    }

import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from local.functions_host import HostOptions
from tests.acceptance.functions_host.conftest import WORKERS
from tests.acceptance.functions_host.runtime_worker import worker_of
from tests.acceptance.functions_host.sample import WEBHOOK, DurableApp, kinds_of, serving
from tests.local.functions_host.doubles import ManualClock

pytestmark = pytest.mark.asyncio

early_events = pytest.mark.filterwarnings("ignore:Potential duplicate Task completion")


@pytest_asyncio.fixture(params=WORKERS)
async def app(durable_app: Path, request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[DurableApp]:
    async with serving(durable_app, HostOptions(worker=worker_of(request.param), clock=clock)) as app:
        yield app


async def test_activities_fan_out_and_in(app: DurableApp) -> None:
    for count in (1, 6, 300):
        status = await app.run("fan_out", {"count": count})
        assert status["output"] == sum(n * n for n in range(count))
        assert status["customStatus"] == {"squared": count}
        assert kinds_of(status).count("TaskCompleted") == count


async def test_a_failed_orchestration_says_why(app: DurableApp) -> None:
    reasons = {
        "boom": "Orchestrator function 'boom' failed: the orchestrator failed",
        "unhandled": "Activity function 'flaky' failed:  ValueError: attempt 1",
        "calls_nobody": "'nobody' doesn't exist",
        "calls_http": "call_http is not emulated",
        "calls_again": "a call of an activity with retries is not emulated",
    }
    for name, why in reasons.items():
        status = await app.run(name)
        assert status["runtimeStatus"] == "Failed"
        assert why in status["output"]


async def test_a_timer_lasts_its_whole_time_even_beyond_six_days(app: DurableApp, clock: ManualClock) -> None:
    for wait in (timedelta(seconds=86.4), timedelta(days=6.5), timedelta(days=20)):
        instance_id = await app.start("sleeper", {"seconds": wait.total_seconds()})
        end_at = clock.now() + wait
        while clock.now() < end_at:
            await clock.next_sleep()
            await clock.advance(min(timedelta(hours=1), end_at - clock.now()))
        assert (await app.ended(instance_id))["output"] == wait.total_seconds()


async def test_an_event_or_a_timer_wins_and_the_timer_lost_is_cancelled(app: DurableApp, clock: ManualClock) -> None:
    decided, late = await app.start("approval"), await app.start("approval")
    for instance_id in (decided, late):
        await app.is_at(instance_id, "TimerCreated")
    assert await app.post(f"instances/{decided}/raiseEvent/Decision", {"by": "me"}) == 202
    assert (await app.ended(decided))["output"] == {"decision": {"by": "me"}, "then": 16}
    await clock.advance(timedelta(hours=1))
    assert (await app.ended(late))["output"] == "too late"


@early_events
async def test_an_orchestration_waits_for_a_timer_that_nobody_cancelled(app: DurableApp, clock: ManualClock) -> None:
    instance_id = await app.start("forgets_to_cancel")
    await app.is_at(instance_id, "TimerCreated")
    await app.post(f"instances/{instance_id}/raiseEvent/Decision", 1)
    await app.is_at(instance_id, "TimerCreated", "EventRaised")
    assert (await app.get(instance_id))[1]["runtimeStatus"] == "Running"
    await clock.advance(timedelta(hours=1))
    assert (await app.ended(instance_id))["output"] == "decided"
    instance_id = await app.start("late_reader")
    await app.post(f"instances/{instance_id}/raiseEvent/Early", "early")
    await app.is_at(instance_id, "EventRaised")
    await app.post(f"instances/{instance_id}/raiseEvent/Begin", 1)
    assert (await app.ended(instance_id))["output"] == "early"


async def test_continuing_as_new_begins_with_the_new_input_and_an_empty_history(app: DurableApp) -> None:
    status = await app.run("counting", {"round": 1, "rounds": 3, "squares": []})
    assert status["output"] == [1, 4, 9]
    assert status["customStatus"] == "round 3"
    assert kinds_of(status) == ["ExecutionStarted", "TaskCompleted", "ExecutionCompleted"]
    assert '"round": 3' in status["input"]


async def test_a_suspended_orchestration_takes_nothing_until_it_is_resumed(app: DurableApp) -> None:
    instance_id = await app.start("approval")
    await app.is_at(instance_id, "TimerCreated")
    await app.client("suspend", instance_id)
    await app.until(instance_id, lambda status: status["runtimeStatus"] == "Suspended")
    await app.post(f"instances/{instance_id}/raiseEvent/Decision", "held")
    assert (await app.run("hello"))["output"] == 9
    assert "EventRaised" not in kinds_of((await app.get(instance_id))[1])
    await app.client("resume", instance_id)
    assert (await app.ended(instance_id))["output"]["decision"] == "held"
    instance_id = await app.start("approval")
    await app.is_at(instance_id, "TimerCreated")
    await app.client("terminate", instance_id)
    status = await app.ended(instance_id)
    assert (status["runtimeStatus"], status["output"]) == ("Terminated", "why")
    assert await app.post(f"instances/{instance_id}/raiseEvent/Decision", 1) == 410
    assert await app.post(f"instances/{instance_id}/terminate") == 410


async def test_an_ended_orchestration_is_purged_and_a_running_one_is_not(app: DurableApp) -> None:
    first = await app.run("fan_out", {"count": 3})
    assert await app.client("purge", first["instanceId"]) == 1
    assert (await app.get(first["instanceId"]))[0] == 404
    assert await app.client("purge", first["instanceId"]) == 0
    running = await app.start("approval")
    async with app.http.delete(f"{WEBHOOK}/instances/{running}") as answer:
        assert answer.status == 412


async def test_the_client_raises_events_as_text(app: DurableApp) -> None:
    await app.run("hello", None, "a")
    found = await app.client("status", "a")
    assert (found["name"], found["runtimeStatus"], found["output"]) == ("hello", "Completed", 9)
    await app.start("approval", None, "one")
    assert await app.post("orchestrators/hello/one") == 409
    for path in ("/api/start/hello?id=one", "/api/start/nobody"):
        async with app.http.post(path) as answer:
            assert answer.status == 500
    await app.client("raise", "one", {"by": "me"}, event="Decision")
    assert (await app.ended("one"))["output"]["decision"] == '{"by": "me"}'
    assert await app.post("orchestrators/hello/one") == 202
    assert (await app.until("one", lambda status: status["output"] == 9))["runtimeStatus"] == "Completed"


async def test_an_orchestrator_that_no_longer_fits_its_history_fails(app: DurableApp) -> None:
    instance_id = await app.start("changed")
    await app.is_at(instance_id, "TaskCompleted")
    sys.modules["function_app"].attempts["changed"] = 1
    await app.post(f"instances/{instance_id}/raiseEvent/Go", 1)
    status = await app.ended(instance_id)
    assert "Non-Deterministic workflow detected" in status["output"]


async def test_functions_are_called_by_the_names_of_their_triggers_in_any_case(app: DurableApp) -> None:
    assert (await app.run("Under_Another_Name", {"a": 1}))["output"] == {"a": 1}
    assert sys.modules["function_app"].noted == [["renamed_activity", {"at": 1}]]

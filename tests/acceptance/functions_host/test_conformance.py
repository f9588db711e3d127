import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from local.functions_host import HostOptions, IndexingFailed
from tests.acceptance.functions_host.conftest import WORKERS
from tests.acceptance.functions_host.runtime_worker import worker_of
from tests.acceptance.functions_host.sample import WEBHOOK, DurableApp, Sample, kinds_of, seen, serving, serving_sample
from tests.local.functions_host.conftest import forget
from tests.local.functions_host.doubles import ManualClock, eventually

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture(params=WORKERS)
async def sample(app: Path, request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[Sample]:
    options = HostOptions(worker=worker_of(request.param), clock=clock, chance=lambda: 0.5)
    async with serving_sample(app, options) as sample:
        yield sample


async def test_a_function_gets_exact_bodies_positions_and_metadata_and_never_an_unbound_batch(sample: Sample) -> None:
    await sample.send("1", b'{"v": 1}', b"", b"\xff\x00")
    await sample.send("0", b"a", b"b", group="async")
    await sample.send("0", b"a", b"", b"c", group="texts")  # a batch of texts loses its empty bodies
    await sample.send("0", b"d", group="texts")
    await eventually(lambda: seen("ingest") and seen("ingest_async") and seen("ingest_texts"))
    assert (seen("ingest_async"), seen("ingest_texts")) == ([["a", "b"]], [["d"]])
    found = seen("ingest")[0]
    assert [each["body"] for each in found["events"]] == [repr(b'{"v": 1}'), "b''", repr(b"\xff\x00")]
    assert [each["seq"] for each in found["events"]] == ["0", "1", "2"]
    assert found["events"][2]["t"] == "datetime.datetime(2026, 11, 21, 12, 0, 2)"
    assert found["metadata"]["PartitionContext"]["FullyQualifiedNamespace"] == "localhost"
    names = ("partition", "function_name", "is_main_thread")
    assert [found[name] for name in names] == ["1", "ingest", False]
    assert len(found["invocation_id"]) == 36


async def test_a_failing_function_is_retried_with_its_count(sample: Sample, clock: ManualClock) -> None:
    await sample.send("0", b"poison")
    for _ in range(2):
        # the timer of the sample app sleeps in steps of a minute; a retry is due sooner
        await eventually(lambda: clock.is_somebody_due_within(timedelta(seconds=30)))
        assert await clock.next_sleep() == timedelta(seconds=10)
        await clock.advance(timedelta(seconds=10))
    await eventually(lambda: len(seen("ingest")) == 3)
    await sample.send("0", b"next")
    await eventually(lambda: len(seen("ingest")) == 4)
    found = seen("ingest")
    assert [each["retry_count"] for each in found] == [0, 1, 2, 0]
    assert {each["max_retry_count"] for each in found} == {2}
    assert len({each["invocation_id"] for each in found}) == 2


async def test_an_http_function_gets_the_request_and_answers_with_text_bytes_nothing_or_500(sample: Sample) -> None:
    path, headers = "/api/Items/7/a%20b?q=1&empty=&q=2", {"X-Test": "One"}
    async with sample.http.post(path, data=b"\xffbody", headers=headers) as answer:
        assert (answer.status, answer.headers["X-Own"], answer.content_type) == (201, "1", "application/json")
        found = await answer.json()
    assert found["method"] == "POST"
    assert found["url"].endswith(path)
    assert (found["id"], found["part"], found["query"]) == ("7", "a b", {"q": "1,2"})
    assert found["header"] == "One"
    assert all(name == name.lower() for name in found["headers"])
    assert found["body"] == repr(b"\xffbody")
    assert await sample.request("GET", "/api/files/a/b") == (200, b"a/b by file")
    assert await sample.request("PUT", "/api/echo", b"\x00\xff") == (200, b"\x00\xff")
    assert await sample.request("GET", "/api/nothing") == (204, b"")
    assert await sample.request("GET", "/api/broken") == (500, b"")
    assert await sample.request("GET", "/api/none") == (500, b"")


async def test_a_timer_that_is_fired_gets_its_status(sample: Sample) -> None:
    sample.host.fire("tick")
    await eventually(lambda: seen("tick"))
    found = seen("tick")[0]
    assert found["past_due"] is False
    assert found["schedule"] == {"AdjustForDST": True}
    assert found["status"]["Next"] == "2026-11-22T05:00:00+00:00"


HEAD = "import typing\nimport azure.durable_functions as df\nimport azure.functions as func\napp = df.DFApp()\n"
HUB = (
    '@app.event_hub_message_trigger(arg_name="events", event_hub_name="h", connection="C",'
    ' cardinality="many", data_type="BINARY")\n'
)

REFUSED = {
    "a parameter without a binding": HUB + "def f(events: typing.List[func.EventHubEvent], other): ...",
    "a binding without a parameter": HUB + "def f(): ...",
    "a context of another type": HUB + "def f(events: typing.List[func.EventHubEvent], context: int): ...",
    "list instead of typing.List": HUB + "def f(events: list[func.EventHubEvent]): ...",
    "a trigger annotated as something else": HUB + "def f(events: func.HttpRequest): ...",
    "a return annotation that is no response": '@app.route(route="r")\ndef f(req: func.HttpRequest) -> int: ...',
    "a return annotation that is a generic": '@app.route(route="r")\ndef f(req) -> typing.List[int]: ...',
    "an orchestrator's context by another name": '@app.orchestration_trigger(context_name="ctx")\ndef f(ctx): yield',
    "two apps": "other = func.FunctionApp()",
    "two functions of one name": HUB + "def f(events): ...\n" + HUB + "def f(events): ...",
    "an import that fails": "import there_is_no_such_module",
}


ACCEPTED = {
    "no annotations": HUB + "def f(events): ...",
    "one event annotated": HUB + "def f(events: func.EventHubEvent): ...",
    "a context without annotation": HUB + "async def f(events, context): ...",
    "a text as the answer": '@app.route(route="r")\ndef f(req: func.HttpRequest) -> str: ...',
    "an orchestrator": '@app.orchestration_trigger(context_name="context")\ndef f(context): yield',
    "an activity": '@app.activity_trigger(input_name="n")\ndef f(n: int) -> typing.List[int]: ...',
    "a client": '@app.route(route="r")\n@app.durable_client_input(client_name="c")\nasync def f(req, c): ...',
    "an answer without annotation": '@app.route(route="r")\ndef f(req): ...',
}


async def indexed(directory: Path, worker: str, source: str) -> list[str]:
    directory.mkdir()
    (directory / "function_app.py").write_text(HEAD + source + "\n")
    chosen = worker_of(worker)
    try:
        return [function.name for function in await chosen.index(directory)]
    except IndexingFailed:
        return []
    finally:
        await chosen.close()
        forget(directory)


@pytest.mark.parametrize("worker", WORKERS)
async def test_both_workers_accept_and_refuse_the_same_signatures(tmp_path: Path, worker: str) -> None:
    found = {name: await indexed(tmp_path / name, worker, source) for name, source in (ACCEPTED | REFUSED).items()}
    assert found == {name: ["f"] * (name in ACCEPTED) for name in found}


early_events = pytest.mark.filterwarnings("ignore:Potential duplicate Task completion")


@pytest_asyncio.fixture(params=WORKERS)
async def durable(durable_app: Path, request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[DurableApp]:
    async with serving(durable_app, HostOptions(worker=worker_of(request.param), clock=clock)) as durable:
        yield durable


async def test_activities_fan_out_and_in(durable: DurableApp) -> None:
    for count in (1, 6, 300):
        status = await durable.run("fan_out", {"count": count})
        assert status["output"] == sum(n * n for n in range(count))
        assert status["customStatus"] == {"squared": count}
        assert kinds_of(status).count("TaskCompleted") == count


async def test_a_failed_orchestration_says_why(durable: DurableApp) -> None:
    reasons = {
        "boom": "Orchestrator function 'boom' failed: the orchestrator failed",
        "unhandled": "Activity function 'flaky' failed:  ValueError: attempt 1",
        "calls_nobody": "'nobody' doesn't exist",
        "calls_http": "call_http is not emulated",
        "calls_again": "a call of an activity with retries is not emulated",
    }
    for name, why in reasons.items():
        status = await durable.run(name)
        assert status["runtimeStatus"] == "Failed"
        assert why in status["output"]


async def test_a_timer_lasts_its_whole_time_even_beyond_six_days(durable: DurableApp, clock: ManualClock) -> None:
    for wait in (timedelta(seconds=86.4), timedelta(days=6.5), timedelta(days=20)):
        instance_id = await durable.start("sleeper", {"seconds": wait.total_seconds()})
        end_at = clock.now() + wait
        while clock.now() < end_at:
            await clock.next_sleep()
            await clock.advance(min(timedelta(hours=1), end_at - clock.now()))
        assert (await durable.ended(instance_id))["output"] == wait.total_seconds()


async def test_an_event_or_a_timer_wins_and_the_timer_lost_is_cancelled(
    durable: DurableApp, clock: ManualClock
) -> None:
    decided, late = await durable.start("approval"), await durable.start("approval")
    for instance_id in (decided, late):
        await durable.is_at(instance_id, "TimerCreated")
    assert await durable.post(f"instances/{decided}/raiseEvent/Decision", {"by": "me"}) == 202
    assert (await durable.ended(decided))["output"] == {"decision": {"by": "me"}, "then": 16}
    await clock.advance(timedelta(hours=1))
    assert (await durable.ended(late))["output"] == "too late"


@early_events
async def test_an_orchestration_waits_for_a_timer_that_nobody_cancelled(
    durable: DurableApp, clock: ManualClock
) -> None:
    instance_id = await durable.start("forgets_to_cancel")
    await durable.is_at(instance_id, "TimerCreated")
    await durable.post(f"instances/{instance_id}/raiseEvent/Decision", 1)
    await durable.is_at(instance_id, "TimerCreated", "EventRaised")
    assert (await durable.get(instance_id))[1]["runtimeStatus"] == "Running"
    await clock.advance(timedelta(hours=1))
    assert (await durable.ended(instance_id))["output"] == "decided"
    instance_id = await durable.start("late_reader")
    await durable.post(f"instances/{instance_id}/raiseEvent/Early", "early")
    await durable.is_at(instance_id, "EventRaised")
    await durable.post(f"instances/{instance_id}/raiseEvent/Begin", 1)
    assert (await durable.ended(instance_id))["output"] == "early"


async def test_continuing_as_new_begins_with_the_new_input_and_an_empty_history(durable: DurableApp) -> None:
    status = await durable.run("counting", {"round": 1, "rounds": 3, "squares": []})
    assert status["output"] == [1, 4, 9]
    assert status["customStatus"] == "round 3"
    assert kinds_of(status) == ["ExecutionStarted", "TaskCompleted", "ExecutionCompleted"]
    assert '"round": 3' in status["input"]


async def test_a_suspended_orchestration_takes_nothing_until_it_is_resumed(durable: DurableApp) -> None:
    instance_id = await durable.start("approval")
    await durable.is_at(instance_id, "TimerCreated")
    await durable.client("suspend", instance_id)
    await durable.until(instance_id, lambda status: status["runtimeStatus"] == "Suspended")
    await durable.post(f"instances/{instance_id}/raiseEvent/Decision", "held")
    assert (await durable.run("hello"))["output"] == 9
    assert "EventRaised" not in kinds_of((await durable.get(instance_id))[1])
    await durable.client("resume", instance_id)
    assert (await durable.ended(instance_id))["output"]["decision"] == "held"
    instance_id = await durable.start("approval")
    await durable.is_at(instance_id, "TimerCreated")
    await durable.client("terminate", instance_id)
    status = await durable.ended(instance_id)
    assert (status["runtimeStatus"], status["output"]) == ("Terminated", "why")
    assert await durable.post(f"instances/{instance_id}/raiseEvent/Decision", 1) == 410
    assert await durable.post(f"instances/{instance_id}/terminate") == 410


async def test_an_ended_orchestration_is_purged_and_a_running_one_is_not(durable: DurableApp) -> None:
    first = await durable.run("fan_out", {"count": 3})
    assert await durable.client("purge", first["instanceId"]) == 1
    assert (await durable.get(first["instanceId"]))[0] == 404
    assert await durable.client("purge", first["instanceId"]) == 0
    running = await durable.start("approval")
    async with durable.http.delete(f"{WEBHOOK}/instances/{running}") as answer:
        assert answer.status == 412


async def test_the_client_raises_events_as_text(durable: DurableApp) -> None:
    await durable.run("hello", None, "a")
    found = await durable.client("status", "a")
    assert (found["name"], found["runtimeStatus"], found["output"]) == ("hello", "Completed", 9)
    await durable.start("approval", None, "one")
    assert await durable.post("orchestrators/hello/one") == 409
    for path in ("/api/start/hello?id=one", "/api/start/nobody"):
        async with durable.http.post(path) as answer:
            assert answer.status == 500
    await durable.client("raise", "one", {"by": "me"}, event="Decision")
    assert (await durable.ended("one"))["output"]["decision"] == '{"by": "me"}'
    assert await durable.post("orchestrators/hello/one") == 202
    assert (await durable.until("one", lambda status: status["output"] == 9))["runtimeStatus"] == "Completed"


async def test_an_orchestrator_that_no_longer_fits_its_history_fails(durable: DurableApp) -> None:
    instance_id = await durable.start("changed")
    await durable.is_at(instance_id, "TaskCompleted")
    sys.modules["function_app"].attempts["changed"] = 1
    await durable.post(f"instances/{instance_id}/raiseEvent/Go", 1)
    status = await durable.ended(instance_id)
    assert "Non-Deterministic workflow detected" in status["output"]


async def test_functions_are_called_by_the_names_of_their_triggers_in_any_case(durable: DurableApp) -> None:
    assert (await durable.run("Under_Another_Name", {"a": 1}))["output"] == {"a": 1}
    assert sys.modules["function_app"].noted == [["renamed_activity", {"at": 1}]]

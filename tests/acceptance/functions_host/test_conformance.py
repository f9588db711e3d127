from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from local.functions_host import HostOptions, IndexingFailed
from tests.acceptance.functions_host.conftest import WORKERS
from tests.acceptance.functions_host.runtime_worker import worker_of
from tests.acceptance.functions_host.sample import Sample, seen, serving_sample
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

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from local.functions_host import FunctionsHost, HostOptions, NotEmulated, SettingsFault
from local.functions_host.errors import CannotListen
from local.functions_host.event_source import HubAddress
from local.functions_host.settings import BODY_LIMIT
from local.functions_host.state_file import StateFile
from tests.acceptance.functions_host import sample as samples
from tests.acceptance.functions_host.sample import WEBHOOK, Hubs, Sample, ingested, seen, serving, serving_sample
from tests.local.functions_host.conftest import forget
from tests.local.functions_host.doubles import ManualClock, eventually
from tests.patience import allowed

pytestmark = pytest.mark.asyncio

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def options(tmp_path: Path, clock: ManualClock) -> HostOptions:
    return HostOptions(state=tmp_path / "state.db", clock=clock)


@pytest.fixture
def hubs() -> Hubs:
    return Hubs()


@pytest_asyncio.fixture
async def sample(app: Path, options: HostOptions, hubs: Hubs) -> AsyncIterator[Sample]:
    async with serving_sample(app, options, hubs) as sample:
        yield sample


def next_host(app: Path, options: HostOptions, hubs: Hubs) -> AbstractAsyncContextManager[Sample]:
    return serving_sample(app, replace(options, clock=ManualClock()), hubs)


async def checkpoint_is(options: HostOptions, number: int) -> None:
    state = StateFile(options.state)

    def is_written() -> bool:
        found = state.read_checkpoint(HubAddress("localhost", "telemetry", "$Default"), "0")
        return found is not None and found.sequence_number == number

    await eventually(is_written)
    state.close()


async def test_a_restarted_host_goes_on_after_its_checkpoint_with_a_retry_that_was_due_and_without_a_failed_batch(
    app: Path, options: HostOptions, hubs: Hubs, clock: ManualClock
) -> None:
    async with serving_sample(app, options, hubs) as sample:
        await sample.send("0", b"a")
        await ingested(["a"])
        await sample.send("0", b"poison", group="async")  # without a retry policy: lost, as in Azure
        await eventually(lambda: seen("ingest_async") == [["poison"]])
        await sample.send("0", b"poison")
        await ingested(["a"], ["poison"])
        await eventually(lambda: clock.is_somebody_due_within(timedelta(seconds=10)))
        _, status = await sample.request("GET", "/admin/host/drain/status")
        assert json.loads(status) == {"state": "Disabled", "outstandingInvocations": 0, "outstandingRetries": 1}
        await sample.send("1", b"free")  # the other partition does not wait
        await ingested(["a"], ["poison"], ["free"])
        assert sample.host.state == "Running"
    assert sample.host.state == "Drained"
    async with next_host(app, options, hubs) as sample:
        await ingested(["a"], ["poison"], ["free"], ["poison"])
        await sample.send("0", b"next", group="async")
        await eventually(lambda: seen("ingest_async") == [["poison"], ["next"]])


async def test_batches_are_delivered_again_and_skipped_over_http(app: Path, options: HostOptions, hubs: Hubs) -> None:
    hubs.of("$Default").answers.clear()  # its partitions are not known yet
    async with serving_sample(app, options, hubs) as sample:
        http = sample

        async def status_of(faults: object) -> int:
            return (await http.request("POST", "/admin/faults", json.dumps(faults), JSON))[0]

        sample.host.skip(1)
        hubs.of("$Default").answers.set()
        await sample.send("0", b"lost")
        await checkpoint_is(options, 0)
        await sample.send("0", b"a", b"b", b"c", b"d")
        await ingested(["a", "b", "c"], ["d"])
        assert await status_of({"redeliver": 1}) == 202
        await ingested(["a", "b", "c"], ["d"], ["d"])
        assert await status_of({"skip": 1}) == 202
        await sample.send("0", b"lost")
        await checkpoint_is(options, 5)
        await sample.send("0", b"kept")
        await ingested(["a", "b", "c"], ["d"], ["d"], ["kept"])
        wrongs: list[object] = [{}, {"redeliver": 0}, {"lose": 1}, {"skip": "1"}, {"skip": True}, []]
        assert [await status_of(wrong) for wrong in wrongs] == [400] * 6


async def test_draining_stops_the_triggers_and_keeps_http(sample: Sample, hubs: Hubs) -> None:
    await sample.send("0", b"a")
    await ingested(["a"])
    assert await sample.request("POST", "/admin/host/drain", headers=JSON) == (202, b"")
    await sample.host.drain()
    _, status = await sample.request("GET", "/admin/host/drain/status")
    assert json.loads(status) == {"state": "Completed", "outstandingInvocations": 0, "outstandingRetries": 0}
    assert hubs.of("$Default").closed
    await sample.send("0", b"later")
    assert await sample.request("GET", "/api/nothing") == (204, b"")
    assert len(seen("ingest")) == 1


async def test_admin_fires_timers_only_and_unmapped_verbs_paths_and_constraints_are_not_found(sample: Sample) -> None:
    assert (await sample.request("GET", "/admin/host/ping"))[0] == 200
    for name, code in (("TICK", 202), ("ingest", 400), ("item", 400), ("nobody", 404)):
        assert (await sample.request("POST", f"/admin/functions/{name}", b'{"input": ""}', JSON))[0] == code, name
    await eventually(lambda: seen("tick"))
    for method, path in (("DELETE", "/api/items/7"), ("GET", "/api/items/x"), ("GET", "/items/7"), ("GET", "/")):
        assert await sample.request(method, path) == (404, b""), (method, path)

    async def chunks() -> AsyncIterator[bytes]:
        yield b"lost"

    assert await sample.request("PUT", "/api/echo", chunks()) == (200, b""), "as in Azure"


async def test_settings_of_the_file_disable_functions_limit_bodies_and_last_as_long_as_the_host(
    app: Path, options: HostOptions, hubs: Hubs, caplog: pytest.LogCaptureFixture
) -> None:
    off = {"AzureWebJobs.item.Disabled": "true", "AzureWebJobs.ingest.Disabled": "1"}
    samples.write_settings(app, **off, **{BODY_LIMIT: "1000"}, ONLY_IN_THE_FILE="1")
    async with serving_sample(app, options, hubs) as sample:
        assert os.environ["ONLY_IN_THE_FILE"] == "1"
        assert (await sample.request("GET", "/api/items/7"))[0] == 404
        _, functions = await sample.request("GET", "/admin/functions")
        assert {each["name"] for each in json.loads(functions) if each["isDisabled"]} == {"item", "ingest"}
        assert set(hubs.by_group) == {"async", "texts"}
        assert (await sample.request("PUT", "/api/echo", b"x" * 1000))[0] == 200
        assert await sample.request("PUT", "/api/echo", b"x" * 1001) == (500, b"")
        assert await sample.request("PUT", "/api/echo", b"x" * 900_000) == (500, b"")
        port = replace(options, port=sample.host.port)
        with pytest.raises(CannotListen, match=r"\(address already in use\); free it or pass --port"):
            await FunctionsHost(app, port).start()
    assert "ONLY_IN_THE_FILE" not in os.environ
    assert [getattr(record, "action", "") for record in caplog.records] == ["body_too_large"] * 2


async def test_all_faults_of_settings_and_triggers_that_are_not_emulated_are_refused_by_name(
    app: Path, options: HostOptions
) -> None:
    (app / "host.json").write_text('{"version": "2.0", "extensions": {"eventHubs": {"prefetchCount": -1}}}')
    counts = {"PYTHON_THREADPOOL_THREAD_COUNT": "0", BODY_LIMIT: "1 MB"}
    samples.write_settings(app, HUB="", EVENTHUB="nonsense", SCHEDULE="never", **counts)
    with pytest.raises(SettingsFault) as refused:
        await FunctionsHost(app, options).start()
    text = str(refused.value)
    assert all(name in text for name in ("prefetchCount", "HUB", "EVENTHUB", "schedule", "THREAD_COUNT", BODY_LIMIT))
    assert len(refused.value.faults) == 4 + 2 * 3
    forget(app)
    (app / "host.json").write_text('{"version": "2.0"}')
    (app / "function_app.py").write_text(
        "import azure.functions as func\napp = func.FunctionApp()\n"
        '@app.queue_trigger(arg_name="q", queue_name="q", connection="C")\ndef keep(q): ...\n'
    )
    samples.write_settings(app)
    with pytest.raises(NotEmulated, match="function keep: the binding q of type queueTrigger"):
        await FunctionsHost(app, options).start()


SHAPES = json.loads((Path(__file__).parents[2] / "fixtures" / "durable_shapes.json").read_text())


async def test_waiting_orchestrations_go_on_after_a_restart_and_a_drained_host_begins_no_turn(
    durable_app: Path, options: HostOptions, clock: ManualClock
) -> None:
    async with serving(durable_app, options) as app:
        waiting = await app.start("approval")
        await app.is_at(waiting, "TimerCreated")
        assert await app.http.post("/admin/host/drain", json={})
        while (await (await app.http.get("/admin/host/status")).json())["state"] != "Drained":
            await asyncio.sleep(0.005)
        held = await app.start("hello")
        assert (await app.get(held))[1]["runtimeStatus"] == "Pending"
    clock.pass_time(timedelta(hours=2))
    async with serving(durable_app, options) as app:
        assert (await app.ended(waiting))["output"] == "too late"
        assert (await app.ended(held))["output"] == 9


async def test_settings_of_durable_that_are_not_emulated_are_refused_by_name_and_a_disabled_activity_is_not_called(
    durable_app: Path, options: HostOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as disabled:
        disabled.setenv("AzureWebJobs.square.Disabled", "1")
        async with serving(durable_app, options) as app:
            assert "'square' doesn't exist, is disabled" in (await app.run("hello"))["output"]
    settings = {"storageProvider": {"type": "mssql"}, "extendedSessionsEnabled": True, "hubName": "x", "new": 1}
    (durable_app / "host.json").write_text(json.dumps({"version": "2.0", "extensions": {"durableTask": settings}}))
    with pytest.raises(SettingsFault) as refused:
        async with serving(durable_app, options):
            pass
    named = [each.split(": ")[-2] for each in refused.value.faults]
    assert named == ["extendedSessionsEnabled", "type", "new", "hubName"]


async def test_answers_of_durable_have_the_shapes_of_the_extension(durable_app: Path, options: HostOptions) -> None:
    async with serving(durable_app, options) as app:
        expected = SHAPES["check_status_response"]
        async with app.http.post("/api/start/hello", params={"id": "demo"}) as answer:
            found: dict[str, Any] = {"status": answer.status, "body": await answer.json()}
            found["headers"] = {name: answer.headers[name] for name in expected["headers"]}
            origin = str(answer.url.origin())
        assert found == json.loads(json.dumps(expected).replace("http://localhost:42595", origin))
        status, shape = await app.run("fan_out", {"count": 2}), SHAPES["get_status"]
        assert status.keys() == shape.keys()
        compared = status.keys() - {"historyEvents", "output"}
        assert [name for name in compared if type(status[name]) is not type(shape[name])] == []
        assert (status["createdTime"], status["input"]) == ("2026-11-21T12:00:00Z", '{"count": 2}')
        async with app.http.post(f"{WEBHOOK}/orchestrators/nope") as answer:
            found = {"status": answer.status, "body": await answer.json()}
        text, _, known = found["body"].pop("ExceptionMessage").partition("orchestrator functions: ")
        expected = json.loads(json.dumps(SHAPES["unknown_orchestrator"]))
        assert text == expected["body"].pop("ExceptionMessage").partition("orchestrator functions: ")[0]
        assert found == expected
        assert known.startswith("'hello', 'fan_out', ")


FOREIGN_HOSTS = (
    *("evil.example", "localhost.evil.example:7071", "evil.example:7071/localhost", "localhost@evil.example"),
    *("evil@localhost", "127.0.0.1.nip.io", "localhost.", "0.0.0.0:7071", "192.168.0.7:7071", "localhost:80:80"),
    *("localhost evil.example", "[::1]evil.example", "[::ffff:127.0.0.1]", ""),
)
FOREIGN_ORIGINS = (
    *("https://evil.example", "http://localhost.evil.example", "http://127.0.0.1.nip.io:7071", "file://localhost"),
    *("http://evil.example:7071#http://localhost", "http://localhost@evil.example", "https://localhost:7071/"),
    *("chrome-extension://localhost", "localhost", "null", ""),
)
OF_JSON = "Content-Type: application/json"


def request(line: str, *headers: str, body: str = "", host: str = "localhost") -> bytes:
    length = (f"Content-Length: {len(body)}",) if body else ()
    return "\r\n".join((f"{line} HTTP/1.1", f"Host: {host}", *headers, *length, "Connection: close", "", body)).encode()


async def status_of(sample: Sample, sent: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", sample.host.port)
    writer.write(sent)
    async with asyncio.timeout(allowed(10)):
        line = await reader.readline()
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
    return int(line.split()[1])


async def test_a_foreign_host_or_origin_is_refused_in_any_request_and_loopback_is_answered(sample: Sample) -> None:
    for host in FOREIGN_HOSTS:
        for address in ("/admin/host/ping", "/api/nothing", "/nowhere", f"{WEBHOOK}/instances"):
            assert await status_of(sample, request(f"GET {address}", host=host)) in (400, 421), (host, address)
    twice = request("GET /admin/host/ping", "Host: evil.example")
    assert await status_of(sample, twice) in (400, 421)
    for host in ("localhost", "LOCALHOST:7071", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:65535"):
        own = request("GET /admin/host/ping", f"Origin: http://{host}", host=host)
        assert await status_of(sample, own) == 200, host
    for origin in FOREIGN_ORIGINS:
        caller = f"Origin: {origin}"
        orders = (
            request("POST /admin/functions/tick", caller, OF_JSON, body="{}"),
            request("OPTIONS /admin/faults", caller, "Access-Control-Request-Method: POST"),
            request("PUT /api/echo", caller, body="x"),
            request("GET /api/nothing", caller),
        )
        assert [await status_of(sample, each) for each in orders] == [403] * 4, origin
    assert not seen("tick") and not seen("echo")


async def test_a_form_of_any_page_gives_admin_no_order(sample: Sample) -> None:
    forms = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp")
    for address in ("/admin/faults", "/ADMIN/host/drain", "/admin/host/drain", "/admin/functions/tick"):
        for kind in forms:
            order = request(f"POST {address}", f"Content-Type: {kind}", body='{"skip":1}')
            assert await status_of(sample, order) == 415, (address, kind)
        assert await status_of(sample, request(f"POST {address}")) == 415, address
    assert sample.host.state == "Running"
    order = request("POST /admin/functions/tick", OF_JSON + "; charset=utf-8", body="{}")
    assert await status_of(sample, order) == 202
    await eventually(lambda: seen("tick"))


async def test_a_request_that_trickles_ends_its_line_before_a_function_runs(app: Path, options: HostOptions) -> None:
    async def drip(port: int, start: bytes) -> bytes:
        """Send a start, and x after x. Return all that the host answered before it closed."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answer = bytearray()
        async with asyncio.timeout(allowed(10)):
            writer.write(start)
            with suppress(ConnectionError):
                while not reader.at_eof():
                    writer.write(b"x")
                    with suppress(TimeoutError):
                        answer += await asyncio.wait_for(reader.read(1000), 0.02)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        return bytes(answer)

    async with serving_sample(app, replace(options, patience=timedelta(seconds=0.3))) as sample:
        for start in (b"GET /api/no", b"GET /api/nothing HTTP/1.1\r\nX-Slow: "):
            assert await drip(sample.host.port, start) == b""
        whole = request("PUT /api/echo", "Content-Length: 100000").replace(b"Connection: close\r\n", b"")
        assert (await drip(sample.host.port, whole))[:13] == b"HTTP/1.1 408 "
    assert not seen("echo")

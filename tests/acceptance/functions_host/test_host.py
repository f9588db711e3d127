"""The host as a whole: settings, faults on demand, drain and restart, with hubs in memory."""

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest

from local.functions_host import FunctionsHost, HostOptions, NotEmulated, SettingsFault
from local.functions_host.errors import CannotListen
from local.functions_host.event_source import HubAddress
from tests.acceptance.functions_host.sample import Hubs, running, seen, write_settings
from tests.unit.local.functions_host.doubles import ManualClock, eventually

pytestmark = pytest.mark.asyncio


@pytest.fixture
def hubs() -> Hubs:
    return Hubs()


@pytest.fixture
def options(hubs: Hubs, tmp_path: Path) -> HostOptions:
    return HostOptions(open_source=hubs.open, state=tmp_path / "state.db")


async def ingested(*batches: list[str]) -> None:
    """Wait until the sample app got these batches (bodies as texts) in this order."""
    await eventually(lambda: len(seen("ingest")) >= len(batches))
    bodies = [[each["body"][2:-1] for each in batch["events"]] for batch in seen("ingest")]
    assert bodies == list(batches)


async def test_a_restarted_host_goes_on_where_it_was(app: Path, options: HostOptions, hubs: Hubs) -> None:
    for number in range(2):
        async with running(app, options):
            await hubs.of("$Default").send("0", b"a%d" % number)
            await ingested(*[[f"a{each}"] for each in range(number + 1)])


async def test_a_batch_whose_retry_is_due_at_stop_is_delivered_again_by_the_next_host(
    app: Path, options: HostOptions, hubs: Hubs
) -> None:
    clock = ManualClock()
    async with running(app, replace(options, clock=clock)):
        await hubs.of("$Default").send("0", b"poison")
        await ingested(["poison"])
        await eventually(lambda: clock.is_somebody_due_within(timedelta(seconds=10)))
    async with running(app, replace(options, clock=ManualClock())):
        await ingested(["poison"], ["poison"])


async def test_a_failed_batch_without_retry_policy_is_lost_as_in_azure(
    app: Path, options: HostOptions, hubs: Hubs
) -> None:
    async with running(app, options):
        await hubs.of("async").send("0", b"poison")
        await eventually(lambda: seen("ingest_async") == [["poison"]])
    async with running(app, options):
        await hubs.of("async").send("0", b"next")
        await eventually(lambda: seen("ingest_async") == [["poison"], ["next"]])


async def test_partitions_run_side_by_side(app: Path, options: HostOptions, hubs: Hubs) -> None:
    clock = ManualClock()
    async with running(app, replace(options, clock=clock)):
        await hubs.of("$Default").send("0", b"poison")
        await eventually(lambda: clock.is_somebody_due_within(timedelta(seconds=10)))
        await hubs.of("$Default").send("1", b"free")
        await ingested(["poison"], ["free"])


async def test_batches_can_be_delivered_again_and_skipped_over_http(
    app: Path, options: HostOptions, hubs: Hubs
) -> None:
    async with running(app, options) as host, aiohttp.ClientSession(host.base_url) as http:
        await hubs.of("$Default").send("0", b"a", b"b", b"c", b"d")
        await ingested(["a", "b", "c"], ["d"])
        assert await status_of(http, {"redeliver": 1}) == 202
        await ingested(["a", "b", "c"], ["d"], ["d"])
        assert await status_of(http, {"skip": 1}) == 202
        await hubs.of("$Default").send("0", b"lost")
        await eventually(lambda: checkpoint_of(host) == 4)
        await hubs.of("$Default").send("0", b"kept")
        await ingested(["a", "b", "c"], ["d"], ["d"], ["kept"])
        wrongs: tuple[object, ...] = ({}, {"redeliver": 0}, {"lose": 1}, {"skip": "1"}, {"skip": True}, [])
        for wrong in wrongs:
            assert await status_of(http, wrong) == 400


async def test_a_batch_can_be_skipped_before_the_partitions_are_known(
    app: Path, options: HostOptions, hubs: Hubs
) -> None:
    hub = hubs.of("$Default")
    hub.answers.clear()
    async with running(app, options) as host:
        host.skip(1)
        hub.answers.set()
        await hub.send("0", b"lost")
        await eventually(lambda: checkpoint_of(host) == 0)
        await hub.send("0", b"kept")
        await ingested(["kept"])


def checkpoint_of(host: FunctionsHost) -> int | None:
    """The sequence number of the host checkpoint of partition 0."""
    found = host._state.read_checkpoint(HubAddress("localhost", "telemetry", "$Default"), "0")
    return found.sequence_number if found else None


async def status_of(http: aiohttp.ClientSession, faults: object) -> int:
    async with http.post("/admin/faults", json=faults) as answer:
        return answer.status


async def test_draining_stops_the_triggers_and_keeps_http(app: Path, options: HostOptions, hubs: Hubs) -> None:
    async with running(app, options) as host, aiohttp.ClientSession(host.base_url) as http:
        await hubs.of("$Default").send("0", b"a")
        await ingested(["a"])
        async with http.post("/admin/host/drain") as answer:
            assert answer.status == 202
        await host.drain()
        async with http.get("/admin/host/drain/status") as answer:
            assert await answer.json() == {"state": "Completed", "outstandingInvocations": 0}
        assert hubs.of("$Default").closed
        await hubs.of("$Default").send("0", b"later")
        async with http.get("/api/nothing") as answer:
            assert answer.status == 204
    assert len(seen("ingest")) == 1


async def test_admin_lists_functions_and_fires_timers_only(app: Path, options: HostOptions) -> None:
    async with running(app, options) as host, aiohttp.ClientSession(host.base_url) as http:
        async with http.get("/admin/functions") as answer:
            assert {each["name"] for each in await answer.json()} >= {"ingest", "item", "tick"}
        async with http.get("/admin/host/status") as answer:
            assert (await answer.json())["state"] == "Running"
        async with http.get("/admin/host/ping") as answer:
            assert answer.status == 200
        for name, status in (("TICK", 202), ("ingest", 400), ("item", 400), ("nobody", 404)):
            async with http.post(f"/admin/functions/{name}", json={"input": ""}) as answer:
                assert answer.status == status
        await eventually(lambda: seen("tick"))


async def test_unmapped_verbs_paths_and_constraints_are_not_found(app: Path, options: HostOptions) -> None:
    async with running(app, options) as host, aiohttp.ClientSession(host.base_url) as http:
        for method, path in (("DELETE", "/api/items/7"), ("GET", "/api/items/x"), ("GET", "/items/7"), ("GET", "/")):
            async with http.request(method, path) as answer:
                assert (answer.status, await answer.read()) == (404, b"")


async def test_a_chunked_request_arrives_empty_as_in_azure(app: Path, options: HostOptions) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"lost"

    async with (
        running(app, options) as host,
        aiohttp.ClientSession(host.base_url) as http,
        http.put("/api/echo", data=chunks()) as answer,
    ):
        assert await answer.read() == b""


async def test_a_failing_function_tells_the_caller_nothing_and_the_log_everything(
    app: Path, options: HostOptions, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        running(app, options) as host,
        aiohttp.ClientSession(host.base_url) as http,
        http.get("/api/broken") as answer,
    ):
        assert (answer.status, await answer.read()) == (500, b"")
    (record,) = [each for each in caplog.records if each.name == "functions_host"]
    assert vars(record)["error"] == "ValueError: a secret in the text"
    assert "function_app.py" in vars(record)["stack"]


async def test_a_disabled_function_is_listed_but_not_run(app: Path, options: HostOptions, hubs: Hubs) -> None:
    write_settings(app, **{"AzureWebJobs.item.Disabled": "true", "AzureWebJobs.ingest.Disabled": "1"})
    async with running(app, options) as host, aiohttp.ClientSession(host.base_url) as http:
        async with http.get("/api/items/7") as answer:
            assert answer.status == 404
        async with http.get("/admin/functions") as answer:
            assert {each["name"] for each in await answer.json() if each["isDisabled"]} == {"item", "ingest"}
        assert set(host.listeners) == {"ingest_async", "ingest_texts"}
        assert "ingest: eventHubTrigger (disabled)" in host.routes


async def test_all_faults_of_settings_are_reported_together_with_their_names(app: Path, options: HostOptions) -> None:
    (app / "host.json").write_text('{"version": "2.0", "extensions": {"eventHubs": {"prefetchCount": -1}}}')
    write_settings(app, HUB="", EVENTHUB="nonsense", SCHEDULE="never", PYTHON_THREADPOOL_THREAD_COUNT="0")
    with pytest.raises(SettingsFault) as refused:
        await FunctionsHost(app, options).start()
    text = str(refused.value)
    assert all(name in text for name in ("prefetchCount", "HUB", "EVENTHUB", "schedule", "THREAD_COUNT"))
    assert len(refused.value.faults) == 3 + 2 * 3


async def test_the_settings_of_the_file_are_in_the_environment_only_while_the_host_runs(
    app: Path, options: HostOptions
) -> None:
    write_settings(app, ONLY_IN_THE_FILE="1")
    async with running(app, options):
        assert os.environ["ONLY_IN_THE_FILE"] == "1"
    assert "ONLY_IN_THE_FILE" not in os.environ


async def test_a_taken_port_is_one_clear_error(app: Path, options: HostOptions) -> None:
    async with running(app, options) as host:
        second = FunctionsHost(app, replace(options, port=host.port))
        with pytest.raises(CannotListen, match=f"cannot listen on port {host.port}"):
            await second.start()


async def test_an_app_with_a_trigger_that_is_not_emulated_is_refused_by_name(
    empty_app: Path, options: HostOptions
) -> None:
    (empty_app / "function_app.py").write_text(
        "import azure.functions as func\napp = func.FunctionApp()\n"
        '@app.queue_trigger(arg_name="q", queue_name="q", connection="C")\ndef keep(q): ...\n'
    )
    with pytest.raises(NotEmulated, match="function keep: the binding q of type queueTrigger"):
        await FunctionsHost(empty_app, options).start()


async def test_hosts_can_be_started_and_stopped_one_after_the_other(app: Path, options: HostOptions) -> None:
    for _ in range(3):
        async with running(app, options) as host:
            assert host.state == "Running"
        assert host.state == "Drained"

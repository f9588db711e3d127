"""The host as a whole: settings, faults on demand, drain and restart, with hubs in memory."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from local.functions_host import FunctionsHost, HostOptions, NotEmulated, SettingsFault
from local.functions_host.errors import CannotListen
from local.functions_host.event_source import HubAddress
from local.functions_host.settings import BODY_LIMIT
from local.functions_host.state_file import StateFile
from tests.acceptance.functions_host.sample import Hubs, Sample, ingested, seen, serving_sample, write_settings
from tests.local.functions_host.doubles import ManualClock, eventually

pytestmark = pytest.mark.asyncio

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def options(tmp_path: Path) -> HostOptions:
    return HostOptions(state=tmp_path / "state.db", clock=ManualClock())


@pytest.fixture
def hubs() -> Hubs:
    return Hubs()


@pytest_asyncio.fixture
async def sample(app: Path, options: HostOptions, hubs: Hubs) -> AsyncIterator[Sample]:
    async with serving_sample(app, options, hubs) as sample:
        yield sample


def next_host(app: Path, options: HostOptions, hubs: Hubs) -> AbstractAsyncContextManager[Sample]:
    """A host with the state and the hubs of the one before."""
    return serving_sample(app, replace(options, clock=ManualClock()), hubs)


async def test_a_restarted_host_goes_on_after_its_checkpoint(app: Path, options: HostOptions, hubs: Hubs) -> None:
    for number in range(3):
        async with next_host(app, options, hubs) as sample:
            await sample.send("0", b"a%d" % number)
            await ingested(*[[f"a{each}"] for each in range(number + 1)])
            assert sample.host.state == "Running"
        assert sample.host.state == "Drained"


async def test_a_batch_whose_retry_is_due_at_stop_is_delivered_again_by_the_next_host(
    app: Path, options: HostOptions, hubs: Hubs
) -> None:
    clock = ManualClock()
    async with serving_sample(app, replace(options, clock=clock), hubs) as sample:
        await sample.send("0", b"poison")
        await ingested(["poison"])
        await eventually(lambda: clock.is_somebody_due_within(timedelta(seconds=10)))
        _, status = await sample.request("GET", "/admin/host/drain/status")
        assert json.loads(status) == {"state": "Disabled", "outstandingInvocations": 0, "outstandingRetries": 1}
        await sample.send("1", b"free")  # the other partition does not wait
        await ingested(["poison"], ["free"])
    async with next_host(app, options, hubs):
        await ingested(["poison"], ["free"], ["poison"])


async def test_a_failed_batch_without_retry_policy_is_lost_as_in_azure(
    app: Path, options: HostOptions, hubs: Hubs
) -> None:
    for expected in ([["poison"]], [["poison"], ["next"]]):
        async with next_host(app, options, hubs) as sample:
            await sample.send("0", expected[-1][0].encode(), group="async")
            await eventually(lambda: seen("ingest_async") == expected)  # noqa: B023


async def test_batches_can_be_delivered_again_and_skipped_over_http(sample: Sample, options: HostOptions) -> None:
    await sample.send("0", b"a", b"b", b"c", b"d")
    await ingested(["a", "b", "c"], ["d"])
    assert await status_of(sample, {"redeliver": 1}) == 202
    await ingested(["a", "b", "c"], ["d"], ["d"])
    assert await status_of(sample, {"skip": 1}) == 202
    await sample.send("0", b"lost")
    await checkpoint_is(options, 4)
    await sample.send("0", b"kept")
    await ingested(["a", "b", "c"], ["d"], ["d"], ["kept"])
    wrongs: list[object] = [{}, {"redeliver": 0}, {"lose": 1}, {"skip": "1"}, {"skip": True}, []]
    for wrong in wrongs:
        assert await status_of(sample, wrong) == 400, wrong


async def test_a_batch_can_be_skipped_before_the_partitions_are_known(
    app: Path, options: HostOptions, hubs: Hubs
) -> None:
    hubs.of("$Default").answers.clear()
    async with serving_sample(app, options, hubs) as sample:
        sample.host.skip(1)
        hubs.of("$Default").answers.set()
        await sample.send("0", b"lost")
        await checkpoint_is(options, 0)
        await sample.send("0", b"kept")
        await ingested(["kept"])


async def checkpoint_is(options: HostOptions, number: int) -> None:
    """Wait for the host checkpoint of partition 0."""
    state = StateFile(options.state)

    def is_written() -> bool:
        found = state.read_checkpoint(HubAddress("localhost", "telemetry", "$Default"), "0")
        return found is not None and found.sequence_number == number

    await eventually(is_written)
    state.close()


async def status_of(sample: Sample, faults: object) -> int:
    return (await sample.request("POST", "/admin/faults", json.dumps(faults), JSON))[0]


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


async def test_admin_lists_functions_and_fires_timers_only(sample: Sample) -> None:
    _, functions = await sample.request("GET", "/admin/functions")
    assert {each["name"] for each in json.loads(functions)} >= {"ingest", "item", "tick"}
    _, status = await sample.request("GET", "/admin/host/status")
    assert json.loads(status)["state"] == "Running"
    assert (await sample.request("GET", "/admin/host/ping"))[0] == 200
    for name, code in (("TICK", 202), ("ingest", 400), ("item", 400), ("nobody", 404)):
        assert (await sample.request("POST", f"/admin/functions/{name}", b'{"input": ""}', JSON))[0] == code, name
    await eventually(lambda: seen("tick"))


async def test_unmapped_verbs_paths_and_constraints_are_not_found(sample: Sample) -> None:
    for method, path in (("DELETE", "/api/items/7"), ("GET", "/api/items/x"), ("GET", "/items/7"), ("GET", "/")):
        assert await sample.request(method, path) == (404, b""), (method, path)


async def test_a_chunked_request_arrives_empty_as_in_azure(sample: Sample) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"lost"

    assert await sample.request("PUT", "/api/echo", chunks()) == (200, b"")


async def test_a_disabled_function_is_listed_but_not_run(app: Path, options: HostOptions, hubs: Hubs) -> None:
    write_settings(app, **{"AzureWebJobs.item.Disabled": "true", "AzureWebJobs.ingest.Disabled": "1"})
    async with serving_sample(app, options, hubs) as sample:
        assert (await sample.request("GET", "/api/items/7"))[0] == 404
        _, functions = await sample.request("GET", "/admin/functions")
        assert {each["name"] for each in json.loads(functions) if each["isDisabled"]} == {"item", "ingest"}
        assert set(hubs.by_group) == {"async", "texts"}
        assert "ingest: eventHubTrigger (disabled)" in sample.host.routes


async def test_all_faults_of_settings_are_reported_together_with_their_names(app: Path, options: HostOptions) -> None:
    (app / "host.json").write_text('{"version": "2.0", "extensions": {"eventHubs": {"prefetchCount": -1}}}')
    counts = {"PYTHON_THREADPOOL_THREAD_COUNT": "0", BODY_LIMIT: "1 MB"}
    write_settings(app, HUB="", EVENTHUB="nonsense", SCHEDULE="never", **counts)
    with pytest.raises(SettingsFault) as refused:
        await FunctionsHost(app, options).start()
    text = str(refused.value)
    assert all(name in text for name in ("prefetchCount", "HUB", "EVENTHUB", "schedule", "THREAD_COUNT", BODY_LIMIT))
    assert len(refused.value.faults) == 4 + 2 * 3


async def test_a_body_beyond_the_limit_of_the_settings_is_an_empty_500_before_the_function_runs(
    app: Path, options: HostOptions, hubs: Hubs, caplog: pytest.LogCaptureFixture
) -> None:
    write_settings(app, **{BODY_LIMIT: "1000"})
    async with serving_sample(app, options, hubs) as sample:
        assert (await sample.request("PUT", "/api/echo", b"x" * 1000))[0] == 200
        assert await sample.request("PUT", "/api/echo", b"x" * 1001) == (500, b"")
        assert await sample.request("PUT", "/api/echo", b"x" * 900_000) == (500, b"")
    actions = [getattr(record, "action", "") for record in caplog.records]
    assert actions == ["body_too_large"] * 2


async def test_the_settings_of_the_file_are_in_the_environment_only_while_the_host_runs(
    app: Path, options: HostOptions, hubs: Hubs
) -> None:
    write_settings(app, ONLY_IN_THE_FILE="1")
    async with serving_sample(app, options, hubs):
        assert os.environ["ONLY_IN_THE_FILE"] == "1"
    assert "ONLY_IN_THE_FILE" not in os.environ


async def test_a_taken_port_is_one_clear_error(app: Path, sample: Sample, options: HostOptions) -> None:
    port = sample.host.port
    with pytest.raises(CannotListen) as refused:
        await FunctionsHost(app, replace(options, port=port)).start()
    assert str(refused.value) == f"cannot listen on port {port} (address already in use); free it or pass --port"


async def test_an_app_with_a_trigger_that_is_not_emulated_is_refused_by_name(
    empty_app: Path, options: HostOptions
) -> None:
    (empty_app / "function_app.py").write_text(
        "import azure.functions as func\napp = func.FunctionApp()\n"
        '@app.queue_trigger(arg_name="q", queue_name="q", connection="C")\ndef keep(q): ...\n'
    )
    with pytest.raises(NotEmulated, match="function keep: the binding q of type queueTrigger"):
        await FunctionsHost(empty_app, options).start()

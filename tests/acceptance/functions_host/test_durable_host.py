"""Durable in the host as a whole: restart, drain, faults of settings, shapes of the extension, list of functions."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from local.functions_host import HostOptions, SettingsFault
from tests.acceptance.functions_host.durable_sample import WEBHOOK, DurableApp, serving
from tests.local.functions_host.doubles import ManualClock

pytestmark = pytest.mark.asyncio

SHAPES = json.loads((Path(__file__).parents[2] / "fixtures" / "durable_shapes.json").read_text())


@pytest.fixture
def options(clock: ManualClock, tmp_path: Path) -> HostOptions:
    return HostOptions(clock=clock, state=tmp_path / "state.db")


@pytest_asyncio.fixture
async def app(durable_app: Path, options: HostOptions) -> AsyncIterator[DurableApp]:
    async with serving(durable_app, options) as app:
        yield app


async def test_a_restarted_host_goes_on_with_waiting_orchestrations(
    durable_app: Path, options: HostOptions, clock: ManualClock
) -> None:
    async with serving(durable_app, options) as app:
        instance_id = await app.start("approval")
        await app.is_at(instance_id, "TimerCreated")
    clock.pass_time(timedelta(hours=2))
    async with serving(durable_app, options) as app:
        assert (await app.ended(instance_id))["output"] == "too late"


async def test_a_drained_host_begins_no_turn_and_the_next_one_does(durable_app: Path, options: HostOptions) -> None:
    async with serving(durable_app, options) as app:
        assert await app.http.post("/admin/host/drain", json={})
        while (await (await app.http.get("/admin/host/status")).json())["state"] != "Drained":
            await asyncio.sleep(0.005)
        instance_id = await app.start("hello")
        assert (await app.get(instance_id))[1]["runtimeStatus"] == "Pending"
    async with serving(durable_app, options) as app:
        assert (await app.ended(instance_id))["output"] == 9


async def test_settings_of_host_json_that_are_not_emulated_are_refused_by_name(
    durable_app: Path, options: HostOptions
) -> None:
    settings = {"storageProvider": {"type": "mssql"}, "extendedSessionsEnabled": True, "hubName": "x", "new": 1}
    (durable_app / "host.json").write_text(json.dumps({"version": "2.0", "extensions": {"durableTask": settings}}))
    with pytest.raises(SettingsFault) as refused:
        async with serving(durable_app, options):
            pass
    assert [each.split(": ")[-2] for each in refused.value.faults] == [
        "extendedSessionsEnabled",
        "type",
        "new",
        "hubName",
    ]


async def test_a_disabled_activity_cannot_be_called(
    durable_app: Path, options: HostOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AzureWebJobs.square.Disabled", "1")
    async with serving(durable_app, options) as app:
        assert "'square' doesn't exist, is disabled" in (await app.run("hello"))["output"]


async def test_starting_answers_with_the_links_of_the_extension(app: DurableApp) -> None:
    expected = SHAPES["check_status_response"]
    async with app.http.post("/api/start/hello", params={"id": "demo"}) as answer:
        found = {"status": answer.status, "body": await answer.json()}
        found["headers"] = {name: answer.headers[name] for name in expected["headers"]}
        origin = str(answer.url.origin())
    assert found == json.loads(json.dumps(expected).replace("http://localhost:42595", origin))


async def test_a_status_has_the_shape_of_the_extension_with_instants_cut_to_seconds(app: DurableApp) -> None:
    status = await app.run("fan_out", {"count": 2})
    assert status.keys() == SHAPES["get_status"].keys()
    compared = status.keys() - {"historyEvents", "output"}
    assert {name: type(status[name]) for name in compared} == {
        name: type(SHAPES["get_status"][name]) for name in compared
    }
    assert status["createdTime"] == "2026-11-21T12:00:00Z"
    assert status["input"] == '{"count": 2}'


async def test_an_unknown_orchestrator_is_answered_as_the_extension_does(app: DurableApp) -> None:
    async with app.http.post(f"{WEBHOOK}/orchestrators/nope") as answer:
        found = {"status": answer.status, "body": await answer.json()}
    text, _, known = found["body"].pop("ExceptionMessage").partition("orchestrator functions: ")
    expected = json.loads(json.dumps(SHAPES["unknown_orchestrator"]))
    assert text == expected["body"].pop("ExceptionMessage").partition("orchestrator functions: ")[0]
    assert found == expected
    assert known.startswith("'hello', 'fan_out', ")


async def test_the_list_of_functions_shows_durable_ones(app: DurableApp) -> None:
    async with app.http.get("/admin/functions") as answer:
        types = {each["name"]: each["config"]["bindings"][0]["type"] for each in await answer.json()}
    assert (types["hello"], types["square"]) == ("orchestrationTrigger", "activityTrigger")

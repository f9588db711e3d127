import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from local.functions_host.durable.management import Management
from local.functions_host.durable.orchestrations import Orchestrations
from local.functions_host.durable.store import DurableStore
from local.functions_host.json_sections import JsonSection
from local.functions_host.settings import DurableOptions, parse_durable_options
from tests.local.functions_host.doubles import ManualClock
from tests.local.functions_host.durable.doubles import FUNCTIONS

START = "orchestrators/caller"


class Api:
    """The management API over HTTP, and the store of its task hub."""

    def __init__(self, http: "TestClient[web.Request, web.Application]", store: DurableStore) -> None:
        self.http = http
        self.store = store

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        async with self.http.request(method, f"/durabletask/{path}", **more) as answer:
            return answer.status, await answer.json(content_type=None)


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Api]:
    ids, store = itertools.count(), DurableStore(None)
    orchestrations = Orchestrations(store, FUNCTIONS, ManualClock(), lambda: f"id{next(ids)}", lambda: None)
    application = web.Application()
    Management(orchestrations, "SampleHub").add_routes(application.router)
    async with TestClient(TestServer(application)) as client:
        yield Api(client, store)
    store.close()


@pytest.mark.asyncio
async def test_an_id_that_the_extension_refuses_or_a_body_that_is_no_json_is_refused(api: Api) -> None:
    for instance_id in ("@one", "a%5Cb", "a%23b", "a%3Fb", "a%0Ab", "x" * 257):
        status, answer = await api.ask("POST", f"{START}/{instance_id}")
        assert status == 400, instance_id
        assert "nstance ID" in answer["ExceptionMessage"], instance_id
    assert (await api.ask("POST", START, data="{"))[0] == 400
    assert (await api.ask("POST", f"{START}/one?taskHub=samplehub"))[0] == 202
    headers = {"Content-Type": "application/json"}
    assert (await api.ask("POST", "instances/one/raiseEvent/go", data="{", headers=headers))[0] == 400
    assert (await api.ask("POST", "instances/one/raiseEvent/go", data="1"))[0] == 400


@pytest.mark.asyncio
async def test_a_request_that_is_not_emulated_is_refused_by_name(api: Api) -> None:
    starts = [f"{START}?{query}" for query in ("timeout=1", "pollinginterval=1", "version=2", "taskHub=Other")]
    posts = [("POST", path) for path in (*starts, "instances/one/rewind", "instances/one/restart", "entities/a/b")]
    for method, path in (*posts, ("GET", "instances"), ("DELETE", "instances/"), ("GET", "entities/")):
        status, answer = await api.ask(method, path)
        assert status == 501, path
        assert "not emulated" in answer["Message"], path


def test_the_limits_of_host_json_are_honoured_and_a_value_that_is_not_emulated_is_a_fault() -> None:
    def read(**content: object) -> tuple[DurableOptions, list[str]]:
        faults: list[str] = []
        return parse_durable_options(JsonSection(content, "host.json", faults)), faults

    assert read(tracing={"traceInputsAndOutputs": True}, storageProvider={"partitionCount": 4})[1] == []
    limits = {"maxConcurrentActivityFunctions": 1, "MaxConcurrentOrchestratorFunctions": "2"}
    assert read(hubName="Mine", **limits) == (DurableOptions("Mine", 1, 2), [])
    wrong: list[tuple[dict[str, object], str]] = [
        ({"storageProvider": {"type": "Netherite"}}, "storageProvider: type: 'Netherite' is not emulated"),
        ({"extendedSessionsEnabled": True}, "extendedSessionsEnabled: True is not emulated, only false"),
        ({"overridableExistingInstanceStates": "AnyState"}, "only nonrunningstates"),
        ({"defaultVersion": "1"}, "defaultversion: is not emulated"),
        ({"hubName": "%HUB%"}, "hubName: must be 3 to 45 letters"),
        ({"maxConcurrentActivityFunctions": 0}, "must be a whole number of at least 1"),
    ]
    for content, fault in wrong:
        (found,) = read(**content)[1]
        assert fault in found

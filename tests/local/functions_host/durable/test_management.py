import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from local.functions_host.durable.instances import EpisodeCommit, Instance, Status
from local.functions_host.durable.management import Management
from local.functions_host.durable.orchestrations import Orchestrations
from local.functions_host.durable.store import DurableStore
from tests.local.functions_host.doubles import NOON, ManualClock
from tests.local.functions_host.durable.doubles import FUNCTIONS

pytestmark = pytest.mark.asyncio

START = "orchestrators/caller"


class Api:
    """The management API over HTTP, and the store of its task hub."""

    def __init__(self, http: "TestClient[web.Request, web.Application]", store: DurableStore) -> None:
        self.http = http
        self.store = store

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        async with self.http.request(method, f"/durabletask/{path}", **more) as answer:
            return answer.status, await answer.json(content_type=None)

    async def code(self, method: str, path: str, **more: Any) -> int:
        return (await self.ask(method, path, **more))[0]

    def find(self, instance_id: str) -> Instance:
        found = self.store.find(instance_id)
        assert found is not None
        return found

    def end(self, instance_id: str, status: Status = Status.COMPLETED) -> None:
        commit = EpisodeCommit(instance_id, self.find(instance_id).execution_id, NOON, status, (), output='"done"')
        assert self.store.commit_episode(commit)


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Api]:
    ids, store = itertools.count(), DurableStore(None)
    orchestrations = Orchestrations(store, FUNCTIONS, ManualClock(), lambda: f"id{next(ids)}", lambda: None)
    application = web.Application()
    Management(orchestrations, "SampleHub").add_routes(application.router)
    async with TestClient(TestServer(application)) as client:
        yield Api(client, store)
    store.close()


async def test_an_id_that_the_extension_refuses_is_refused(api: Api) -> None:
    for instance_id in ("@one", "a%5Cb", "a%23b", "a%3Fb", "a%0Ab", "x" * 257):
        status, answer = await api.ask("POST", f"{START}/{instance_id}")
        assert status == 400, instance_id
        assert "nstance ID" in answer["ExceptionMessage"], instance_id


async def test_a_body_that_is_no_json_is_refused(api: Api) -> None:
    assert await api.code("POST", START, data="{") == 400
    await api.ask("POST", f"{START}/one")
    headers = {"Content-Type": "application/json"}
    assert await api.code("POST", "instances/one/raiseEvent/go", data="{", headers=headers) == 400
    assert await api.code("POST", "instances/one/raiseEvent/go", data="1") == 400


async def test_only_an_instance_that_has_not_ended_takes_events(api: Api) -> None:
    for verb in ("raiseEvent/go", "terminate", "suspend", "resume"):
        one = f"instances/{verb[:3]}"
        assert await api.code("POST", f"{one}/{verb}", json=1) == 404
        await api.ask("POST", f"{START}/{verb[:3]}")
        assert await api.code("POST", f"{one}/{verb}?reason=why", json=1) == 202
        assert len(api.store.read_episode(verb[:3], NOON).entries) == 2
        api.end(verb[:3])
        assert await api.code("POST", f"{one}/{verb}", json=1) == 410


async def test_the_http_code_shows_the_status_of_an_instance(api: Api) -> None:
    assert await api.code("GET", "instances/nobody") == 404
    on_failure = "?returnInternalServerErrorOnFailure=true"
    cases: tuple[tuple[Status | None, str, int], ...] = (
        (None, "", 202),
        (Status.COMPLETED, "", 200),
        (Status.TERMINATED, on_failure, 200),
        (Status.FAILED, "", 200),
        (Status.FAILED, on_failure, 500),
    )
    for number, (status, query, code) in enumerate(cases):
        await api.ask("POST", f"{START}/i{number}")
        if status is not None:
            api.end(f"i{number}", status)
        async with api.http.get(f"/durabletask/instances/i{number}{query}") as answer:
            assert (answer.status, "Location" in answer.headers) == (code, code == 202)


async def test_a_request_that_is_not_emulated_is_refused_by_name(api: Api) -> None:
    starts = [f"{START}?{query}" for query in ("timeout=1", "pollinginterval=1", "version=2", "taskHub=Other")]
    posts = [("POST", path) for path in (*starts, "instances/one/rewind", "instances/one/restart", "entities/a/b")]
    for method, path in (*posts, ("GET", "instances"), ("DELETE", "instances/"), ("GET", "entities/")):
        status, answer = await api.ask(method, path)
        assert status == 501, path
        assert "not emulated" in answer["Message"], path


async def test_the_name_of_the_task_hub_matches_in_any_case(api: Api) -> None:
    assert await api.code("POST", f"{START}?taskHub=samplehub") == 202
    assert await api.code("POST", "instances/one/dance") == 404

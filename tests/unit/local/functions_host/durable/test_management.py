import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from local.functions_host.durable.commits import EntityCommit, EpisodeCommit
from local.functions_host.durable.instances import Status
from local.functions_host.durable.management import Management
from local.functions_host.durable.orchestrations import Orchestrations
from local.functions_host.durable.store import DurableStore
from tests.unit.local.functions_host.doubles import NOON, ManualClock
from tests.unit.local.functions_host.durable.doubles import FUNCTIONS

pytestmark = pytest.mark.asyncio

Http = TestClient[web.Request, web.Application]


@pytest.fixture
def store() -> DurableStore:
    return DurableStore(None)


@pytest_asyncio.fixture
async def http(store: DurableStore) -> AsyncIterator[Http]:
    ids = itertools.count()
    orchestrations = Orchestrations(store, FUNCTIONS, ManualClock(), lambda: f"id{next(ids)}", lambda: None)
    application = web.Application()
    Management(orchestrations, "SampleHub").add_routes(application.router)
    async with TestClient(TestServer(application)) as client:
        yield client


async def ask(http: Http, method: str, path: str, **more: Any) -> tuple[int, Any]:
    async with http.request(method, f"/durabletask/{path}", **more) as answer:
        return answer.status, await answer.json(content_type=None)


def end(store: DurableStore, instance_id: str, status: Status = Status.COMPLETED) -> None:
    found = store.find(instance_id)
    assert found is not None
    assert store.commit_episode(EpisodeCommit(instance_id, found.execution_id, NOON, status, (), output='"done"'))


async def test_both_addresses_lead_to_the_same(http: Http) -> None:
    for prefix in ("/durabletask", "/runtime/webhooks/durabletask"):
        async with http.post(f"{prefix}/orchestrators/CALLER") as answer:
            assert answer.status == 202
            assert answer.headers["Location"] == (await answer.json())["statusQueryGetUri"]


async def test_the_input_is_kept_as_the_json_that_came(http: Http, store: DurableStore) -> None:
    assert (await ask(http, "POST", "orchestrators/caller/one", data='{"n":  1}'))[0] == 202
    found = store.find("one")
    assert found is not None
    assert found.input == '{"n":  1}'
    assert (await ask(http, "GET", "instances/one"))[1]["input"] == {"n": 1}
    assert (await ask(http, "GET", "instances/one?showInput=false"))[1]["input"] is None


@pytest.mark.parametrize("instance_id", ["@one", "a%5Cb", "a%23b", "a%3Fb", "a%0Ab", "x" * 257])
async def test_an_id_that_the_extension_refuses_is_refused(http: Http, instance_id: str) -> None:
    async with http.post(f"/durabletask/orchestrators/caller/{instance_id}") as answer:
        assert answer.status == 400
        assert "nstance ID" in (await answer.json())["ExceptionMessage"]


async def test_what_is_no_json_is_refused(http: Http) -> None:
    assert (await ask(http, "POST", "orchestrators/caller", data="{"))[0] == 400
    await ask(http, "POST", "orchestrators/caller/one")
    headers = {"Content-Type": "application/json"}
    assert (await ask(http, "POST", "instances/one/raiseEvent/go", data="{", headers=headers))[0] == 400
    assert (await ask(http, "POST", "instances/one/raiseEvent/go", data="1"))[0] == 400


@pytest.mark.parametrize("verb", ["raiseEvent/go", "terminate", "suspend", "resume"])
async def test_what_is_sent_to_an_instance_depends_on_how_it_is(http: Http, store: DurableStore, verb: str) -> None:
    assert (await ask(http, "POST", f"instances/one/{verb}", json=1))[0] == 404
    await ask(http, "POST", "orchestrators/caller/one")
    assert (await ask(http, "POST", f"instances/one/{verb}?reason=why", json=1))[0] == 202
    assert len(store.read_episode("one", NOON).entries) == 2
    end(store, "one")
    assert (await ask(http, "POST", f"instances/one/{verb}", json=1))[0] == 410


@pytest.mark.parametrize(
    ("status", "query", "code"),
    [
        (None, "", 202),
        (Status.COMPLETED, "", 200),
        (Status.TERMINATED, "?returnInternalServerErrorOnFailure=true", 200),
        (Status.FAILED, "", 200),
        (Status.FAILED, "?returnInternalServerErrorOnFailure=true", 500),
    ],
)
async def test_a_status_is_told_by_its_code_too(
    http: Http, store: DurableStore, status: Status | None, query: str, code: int
) -> None:
    await ask(http, "POST", "orchestrators/caller/one")
    if status is not None:
        end(store, "one", status)
    async with http.get(f"/durabletask/instances/one{query}") as answer:
        assert answer.status == code
        assert ("Location" in answer.headers) == (code == 202)
    assert (await ask(http, "GET", "instances/nobody"))[0] == 404


async def test_pages_go_on_where_the_one_before_ended(http: Http) -> None:
    for name in ("a", "b", "c"):
        await ask(http, "POST", f"orchestrators/caller/{name}")
    found, token = [], ""
    while True:
        headers = {"x-ms-continuation-token": token} if token else {}
        async with http.get("/durabletask/instances/?top=2", headers=headers) as answer:
            found.append([each["instanceId"] for each in await answer.json()])
            token = answer.headers["x-ms-continuation-token"]
        if not token:
            break
    assert found == [["a", "b"], ["c"]]
    assert (await ask(http, "GET", "instances", headers={"x-ms-continuation-token": "ä"}))[0] == 400


async def test_only_what_has_ended_is_purged(http: Http, store: DurableStore) -> None:
    for name in ("a", "b", "c"):
        await ask(http, "POST", f"orchestrators/caller/{name}")
    assert (await ask(http, "DELETE", "instances/a"))[0] == 412
    end(store, "a")
    end(store, "b", Status.FAILED)
    assert await ask(http, "DELETE", "instances/a") == (200, {"instancesDeleted": 1})
    assert (await ask(http, "DELETE", "instances/a"))[0] == 404
    assert (await ask(http, "DELETE", "instances/"))[0] == 400
    noon = "createdTimeFrom=2026-11-21T12:00:00Z"
    assert (await ask(http, "DELETE", f"instances/?{noon}&runtimeStatus=Running"))[0] == 404
    assert await ask(http, "DELETE", f"instances/?{noon}") == (200, {"instancesDeleted": 1})
    assert (await ask(http, "GET", "instances/c"))[0] == 202


async def test_an_instance_is_restarted_with_its_input(http: Http, store: DurableStore) -> None:
    await ask(http, "POST", "orchestrators/caller/one", json=5)
    assert (await ask(http, "POST", "instances/one/restart?restartWithNewInstanceId=false"))[0] == 409
    end(store, "one")
    status, links = await ask(http, "POST", "instances/one/restart")
    assert status == 202
    again = store.find(links["id"])
    assert again is not None
    assert (again.instance_id != "one", again.input) == (True, "5")
    assert (await ask(http, "POST", "instances/nobody/restart"))[0] == 404


async def test_entities_are_signalled_read_and_purged(http: Http, store: DurableStore) -> None:
    assert (await ask(http, "POST", "entities/nobody/k?op=add"))[0] == 400
    assert (await ask(http, "POST", "entities/Counter/k?op=add", json="5"))[0] == 202
    assert (await ask(http, "POST", "entities/counter/k?op=get"))[0] == 202
    assert (await ask(http, "DELETE", "entities/counter/k"))[0] == 202
    batch = store.read_entity("@counter@k", NOON, 10)
    operations = [(each.event["op"], each.event["input"]) for each in batch.entries]
    assert operations == [("add", '"5"'), ("get", None), ("delete", None)]
    assert (await ask(http, "GET", "entities/counter/k"))[0] == 404
    store.commit_entity(EntityCommit("@counter@k", (), "7", ()))
    assert await ask(http, "GET", "entities/counter/k") == (200, 7)
    assert (await ask(http, "DELETE", "instances/@counter@k"))[0] == 200
    assert (await ask(http, "DELETE", "instances/@counter@k"))[0] == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "orchestrators/caller?timeout=1"),
        ("POST", "orchestrators/caller?version=2"),
        ("POST", "orchestrators/caller?taskHub=Other"),
        ("POST", "instances/one/rewind"),
        ("GET", "entities/counter"),
        ("GET", "entities/"),
    ],
)
async def test_what_is_not_emulated_is_refused_by_name(http: Http, method: str, path: str) -> None:
    status, answer = await ask(http, method, path)
    assert status == 501
    assert "not emulated" in answer["Message"]


async def test_the_task_hub_s_own_name_is_taken_in_any_case(http: Http) -> None:
    assert (await ask(http, "POST", "orchestrators/caller?taskHub=samplehub"))[0] == 202
    assert (await ask(http, "POST", "instances/one/dance"))[0] == 404

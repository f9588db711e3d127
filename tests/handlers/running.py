"""The app's functions as the worker calls them, in this process, over an embedded store. No hub listens at its port."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import azure.functions as func
import pytest

from core.errors import StoreUnavailable
from core.incarnations.hub_check import NOT_VERIFIED
from core.model.events import Event, Partition
from core.store.database import Database
from core.store.script import Named, Outcome, Script
from handlers import api, dead_letters, ingest, tasks, timers
from handlers.app import aggregation, app
from handlers.operations import status as health
from tests.fakes.builders import event
from tests.fakes.durable import DurableClient
from tests.fakes.engines import SqliteEngine
from tests.fakes.host_events import decode, metadata_of, recorded_metadata
from tests.fakes.memory_hub import MemoryHub

HOME = b'{"kind":"registration","home_id":"home-1","time_zone":"Europe/Berlin","armed":true}'
MOTION = b'{"kind":"motion","home_id":"home-1","sensor_id":"h","state":"idle","observed_at":"2026-01-01T12:00:00Z"}'
CONTEXT: Any = SimpleNamespace(invocation_id="6e2a0f1c-52c8-4c5f-9d0a-0d8d3a3b9b11")
SETTINGS = {
    "STORE_PATIENCE_SECONDS": "0",
    "EVENTHUB": "Endpoint=sb://localhost:1;SharedAccessKeyName=n;SharedAccessKey=azE=;UseDevelopmentEmulator=true",
    "EVENTHUB_NAME": "telemetry",
    "EVENTHUB_CONSUMER_GROUP": "cg",
}


class SettingsHub(MemoryHub):
    def partitions(self) -> tuple[Partition, ...]:
        return tuple(app().settings.stream.partition(one.partition_id) for one in super().partitions())


def forget_health() -> None:
    for one in (health.READINESS, health.WRITABLE, health.BOOKS, health.STANDING):
        one.forget()


def handed_over(number: int, body: bytes) -> Event:
    at = datetime.fromisoformat(recorded_metadata()["SystemPropertiesArray"][0]["EnqueuedTimeUtc"])
    return event(number, body, at=at.replace(tzinfo=UTC))


class LostDatabase:
    """A database that answers until a script begins with a given statement. Without a statement, it never answers."""

    def __init__(self, database: Database | None = None, since: str | None = None) -> None:
        self._database, self._since = database, since

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        return self._reached().ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        if script.steps[0].statement == self._since:
            self._database = None
        return self._reached().run(script, rehearse)

    def close(self) -> None:
        """Close nothing: the database is the test's."""

    def _reached(self) -> Database:
        if self._database is None:
            raise StoreUnavailable("the database does not answer")
        return self._database


@cache
def functions() -> Mapping[str, Callable[..., Any]]:
    all_of_them = func.FunctionApp()
    for module in (ingest, timers, dead_letters, tasks, api):
        all_of_them.register_functions(module.bp)
    return {one.get_function_name(): one.get_user_function() for one in all_of_them.get_functions()}


@dataclass(frozen=True)
class Reply:
    """An answer of the API."""

    status: int
    media: str
    headers: Mapping[str, str]
    body: Any

    @property
    def fields(self) -> list[str]:
        return [one["field"] for one in self.body.get("errors", [])]


def reply_of(response: func.HttpResponse) -> Reply:
    octets = response.get_body() if response.mimetype.endswith("json") else b""
    return Reply(
        response.status_code, response.mimetype, dict(response.headers), json.loads(octets) if octets else None
    )


def request(method: str, body: object = None, **given: Any) -> func.HttpRequest:
    """Make a request, by default of JSON."""
    headers = {"Content-Type": "application/json", **given.pop("headers", {})}
    octets = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    return func.HttpRequest(method, "/api", headers=headers, body=octets, **given)


def client_function(name: str) -> Any:
    return vars(functions()[name])["client_function"]


def respond(name: str, asked: func.HttpRequest, client: DurableClient | None = None) -> func.HttpResponse:
    """Call a function. One that leaves a task drives it with the client."""
    function = functions()[name]
    if "client_function" in vars(function):
        answer: func.HttpResponse = asyncio.run(client_function(name)(asked, CONTEXT, client=client or DurableClient()))
        return answer
    return cast("func.HttpResponse", function(asked, CONTEXT))


class Running:
    """The app over `sqlite`, with the log lines that it wrote."""

    def __init__(self, sqlite: SqliteEngine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sqlite = sqlite
        self.client = DurableClient()
        self._caplog = caplog
        caplog.set_level("INFO", "hubledger")
        self._monkeypatch = monkeypatch
        self.restart(**SETTINGS, **sqlite.environment())

    def restart(self, **settings: str) -> None:
        self.close()
        for name, value in settings.items():
            self._monkeypatch.setenv(name, value)

    def without(self, *settings: str) -> None:
        for name in settings:
            self._monkeypatch.delenv(name)

    def close(self) -> None:
        forget_health()
        if app.value is not None:
            app.value.close()
        app.value = aggregation.value = None

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [vars(record) for record in self._caplog.records if record.name.startswith("hubledger")]

    def ingest(self, numbers: list[int], bodies: list[bytes], partition_id: str = "1", retries: int = 0) -> None:
        """Let the trigger have a batch. No hub listens, so nothing verifies it.

        Microsoft's worker has no retry context for a first attempt.
        """
        own = app()
        ingestion = replace(own.core.ingestion, incarnations=NOT_VERIFIED)
        app.value = replace(own, core=replace(own.core, ingestion=ingestion))
        events = decode(metadata_of(numbers, partition_id=partition_id), bodies)
        retrying = SimpleNamespace(retry_count=retries, max_retry_count=8) if retries else None
        functions()["ingest"](events, SimpleNamespace(invocation_id="i-1", retry_context=retrying))

    def give_hub(self, *bodies: bytes) -> SettingsHub:
        hub = SettingsHub({"1": [handed_over(number, body) for number, body in enumerate(bodies)]})
        app.value = replace(app(), hub=hub)  # type: ignore[arg-type]
        return hub

    def drive(self, task_id: str) -> Any:
        """Do as the orchestration of a task does until it is over. Return the last answer of an activity."""
        for _ in range(100):
            opened = functions()["open_task"](task_id)
            if not opened.get("parts"):
                return opened
            for part in opened["parts"]:
                done = functions()["task_slice"]({"task_id": task_id, "part": part})
                if "error" in done:
                    return done
        raise AssertionError("the task did not end")

    def get(self, operation: str, route: Mapping[str, str] | None = None, **params: str) -> Reply:
        return reply_of(respond(operation, request("GET", params=params, route_params=route)))

    def has_begun_to_drive(self, task_id: str) -> bool:
        return self.client.started == [("drive_task", f"task-{task_id}", task_id)]

    def task(self, task_id: str) -> Any:
        return self.get("show_task", {"task_id": task_id}).body

    def tasks(self) -> list[Any]:
        return list(self.get("list_tasks").body["tasks"])

    def open(self, kind: str, /, **asked: object) -> Any:
        reply = self.put(kind, asked)
        assert reply.status == 201, reply.body
        assert reply.headers["Location"] == f"/api/tasks/{reply.body['task_id']}"
        return reply.body

    def move(self, verb: str, task_id: str, **more: object) -> Reply:
        return self.post(f"{verb}_task", {"reason": "because I say so", **more}, {"task_id": task_id})

    def tick(self, client: DurableClient | None = None) -> list[str]:
        """Let the timer of tasks tick. Return the tasks that it drives."""
        client = client or DurableClient()
        asyncio.run(client_function("watch_tasks")(None, client=client))
        return [str(given) for _, _, given in client.started]

    def keep(self) -> None:
        for chunk in functions()["claim_letters"](None):
            functions()["retry_letters"](chunk, CONTEXT)

    def put(self, kind: str, body: object, task_id: str | None = None, **headers: str) -> Reply:
        """Open a task of a kind, by default with a new id."""
        asked = {"kind": kind, **body} if isinstance(body, dict) else body
        return self.post("put_task", asked, {"task_id": task_id or str(uuid4())}, **headers)

    def post(self, operation: str, body: object, route: Mapping[str, str] | None = None, **headers: str) -> Reply:
        """Call a function that changes. One that leaves a task drives it with `client`."""
        return reply_of(respond(operation, request("POST", body, route_params=route, headers=headers), self.client))

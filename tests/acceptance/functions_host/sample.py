"""The sample apps in a host of this process, whose hubs are in memory, or in a host of its own."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp

from local.functions_host import FunctionsHost, HostOptions
from local.functions_host.app_settings import HubConnection
from local.functions_host.clock import Clock
from local.functions_host.event_source import EventSource
from local.functions_host.settings import EventHubOptions
from local.programs import APP
from tests.acceptance.started import READY, start
from tests.local.functions_host.doubles import DEADLINE_S, MemoryHub, eventually
from tests.patience import Patience, allowed, ended

CONNECTION_STRING = (
    "Endpoint=sb://localhost:5672/;SharedAccessKeyName=key;SharedAccessKey=secret;UseDevelopmentEmulator=true"
)
SETTINGS = {"HUB": "telemetry", "EVENTHUB": CONNECTION_STRING, "SCHEDULE": "0 0 5 * * *"}
ALONE = {f"AzureWebJobs.{name}.Disabled": "true" for name in ("ingest_async", "ingest_texts")}  # `ingest` is left
WEBHOOK = "/runtime/webhooks/durabletask"


def write_settings(directory: Path, **changes: str) -> None:
    (directory / "local.settings.json").write_text(json.dumps({"Values": {**SETTINGS, **changes}}))


@dataclass
class Hubs:
    by_group: dict[str, MemoryHub] = field(default_factory=dict)

    def open(self, connection: HubConnection, options: EventHubOptions, clock: Clock) -> EventSource:
        return self.of(connection.address.consumer_group)

    def of(self, consumer_group: str) -> MemoryHub:
        return self.by_group.setdefault(consumer_group, MemoryHub("0", "1"))


@asynccontextmanager
async def running(directory: Path, options: HostOptions | None = None) -> AsyncIterator[FunctionsHost]:
    host = FunctionsHost(directory, replace(options or HostOptions(), port=0))
    await host.start()
    try:
        yield host
    finally:
        await host.stop()


def seen(function_name: str) -> list[Any]:
    found: list[Any] = sys.modules["function_app"].seen.get(function_name, [])
    return found


def bodies() -> list[list[str]]:
    return [[each["body"][2:-1] for each in batch["events"]] for batch in seen("ingest")]


async def ingested(*batches: list[str]) -> None:
    await eventually(lambda: len(seen("ingest")) >= len(batches))
    assert bodies() == list(batches)


@dataclass(frozen=True, slots=True)
class Sample:
    host: FunctionsHost
    http: aiohttp.ClientSession
    hubs: Hubs

    async def send(self, partition_id: str, *bodies: bytes, group: str = "$Default") -> None:
        await self.hubs.of(group).send(partition_id, *bodies)

    async def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        async with self.http.request(method, path, data=body, headers=headers) as answer:
            return answer.status, await answer.read()


@asynccontextmanager
async def serving_sample(
    directory: Path, options: HostOptions | None = None, hubs: Hubs | None = None
) -> AsyncIterator[Sample]:
    own = hubs or Hubs()
    async with (
        running(directory, replace(options or HostOptions(), open_source=own.open)) as host,
        aiohttp.ClientSession(host.base_url) as http,
    ):
        yield Sample(host, http, own)


@dataclass(frozen=True, slots=True)
class DurableApp:
    """A client of the Durable app: it starts and watches orchestrations over HTTP."""

    http: aiohttp.ClientSession

    async def start(self, name: str, value: Any = None, instance_id: str | None = None) -> str:
        """Start an orchestration through the SDK's client in a function of the app, and return its id."""
        query = {} if instance_id is None else {"id": instance_id}
        async with self.http.post(f"/api/start/{name}", json=value, params=query) as answer:
            assert answer.status == 202, await answer.text()
            return str((await answer.json())["id"])

    async def run(self, name: str, value: Any = None, instance_id: str | None = None) -> Any:
        return await self.ended(await self.start(name, value, instance_id))

    async def ended(self, instance_id: str) -> Any:
        final = ("Completed", "Failed", "Terminated")
        return await self.until(instance_id, lambda status: status["runtimeStatus"] in final)

    async def until(self, instance_id: str, holds: Callable[[Mapping[str, Any]], object]) -> Any:
        """Wait until the condition holds for the status with its history and values."""
        async with asyncio.timeout(allowed(DEADLINE_S)):
            while not holds(status := (await self.get(instance_id))[1]):
                await asyncio.sleep(0.005)
        return status

    async def is_at(self, instance_id: str, *kinds: str) -> None:
        await self.until(instance_id, lambda status: kinds_of(status)[1:] == list(kinds))

    async def get(self, instance_id: str) -> tuple[int, Any]:
        query = {"showHistory": "true", "showHistoryOutput": "true"}
        async with self.http.get(f"{WEBHOOK}/instances/{instance_id}", params=query) as answer:
            return answer.status, await answer.json(content_type=None)

    async def post(self, path: str, value: Any = None) -> int:
        async with self.http.post(f"{WEBHOOK}/{path}", json=value) as answer:
            return answer.status

    async def client(self, verb: str, instance_id: str, value: Any = None, **query: str) -> Any:
        async with self.http.post(f"/api/client/{verb}/{instance_id}", json=value, params=query) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json(content_type=None)


def kinds_of(status: Mapping[str, Any]) -> list[str]:
    return [each["EventType"] for each in status["historyEvents"]]


@asynccontextmanager
async def serving(directory: Path, options: HostOptions) -> AsyncIterator[DurableApp]:
    async with running(directory, options) as host, aiohttp.ClientSession(host.base_url) as http:
        yield DurableApp(http)


class StartedHost:
    """`python -m local.functions_host` for an app, as a person starts it. It is ready when this is made."""

    def __init__(self, app: Path, *arguments: str) -> None:
        self._seen, self.lines = app / "seen.jsonl", list[str]()
        words = ("local.functions_host", "--app", str(app), "--port", "0", *arguments)
        self.process = start(*words, settings={"PYTHONPATH": str(APP), "SEEN_FILE": str(self._seen)})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith(READY):
                break
        assert self.lines[-1].startswith(READY), self.process.communicate()[1]
        self.base_url = self.lines[-1].removeprefix(READY)

    def seen(self, function_name: str) -> list[Any]:
        lines = self._seen.read_text().splitlines() if self._seen.exists() else []
        return [value for name, value in map(json.loads, lines) if name == function_name]

    def until(self, holds: Callable[[], object]) -> None:
        patience = Patience(30)
        while not holds():
            assert self.process.poll() is None, f"the host ended with {self.process.returncode}"
            patience.pause()

    def stop(self, number: int) -> tuple[int, str]:
        """Send a signal. Return the exit code and the text of standard error."""
        self.process.send_signal(number)
        _, errors = ended(self.process, 30)
        return self.process.returncode, errors


def refused(*arguments: str) -> str:
    """Run the command with an app that cannot run, and return the one line that says why."""
    process = start("local.functions_host", *arguments, settings={"PYTHONPATH": os.environ.get("PYTHONPATH", "")})
    _, errors = ended(process, 30)
    assert (process.returncode, len(errors.splitlines())) == (1, 1), errors
    assert errors.startswith("functions host: ")
    return str(errors)

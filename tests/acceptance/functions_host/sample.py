"""Run the sample app in a host of this process, with hubs in memory."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp

from local.functions_host import FunctionsHost, HostOptions
from local.functions_host.app_settings import HubConnection
from local.functions_host.clock import Clock
from local.functions_host.event_source import EventSource
from local.functions_host.settings import EventHubOptions
from tests.local.functions_host.doubles import MemoryHub, eventually

CONNECTION_STRING = (
    "Endpoint=sb://localhost:5672/;SharedAccessKeyName=key;SharedAccessKey=secret;UseDevelopmentEmulator=true"
)
SETTINGS = {"HUB": "telemetry", "EVENTHUB": CONNECTION_STRING, "SCHEDULE": "0 0 5 * * *"}


def write_settings(directory: Path, **changes: str) -> None:
    """Write local.settings.json of an app."""
    (directory / "local.settings.json").write_text(json.dumps({"Values": {**SETTINGS, **changes}}))


class Hubs:
    """The hubs in memory by consumer group."""

    def __init__(self) -> None:
        self.by_group: dict[str, MemoryHub] = {}

    def open(self, connection: HubConnection, options: EventHubOptions, clock: Clock) -> EventSource:
        return self.of(connection.address.consumer_group)

    def of(self, consumer_group: str) -> MemoryHub:
        return self.by_group.setdefault(consumer_group, MemoryHub("0", "1"))


@asynccontextmanager
async def running(directory: Path, options: HostOptions | None = None) -> AsyncIterator[FunctionsHost]:
    """Run a host on a free port."""
    host = FunctionsHost(directory, replace(options or HostOptions(), port=0))
    await host.start()
    try:
        yield host
    finally:
        await host.stop()


def seen(function_name: str) -> list[Any]:
    """Return the notes of a function of the sample app."""
    found: list[Any] = sys.modules["function_app"].seen.get(function_name, [])
    return found


@dataclass(frozen=True, slots=True)
class Sample:
    """A running host of the sample app, its HTTP address and its hubs."""

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
async def serving_sample(directory: Path, options: HostOptions, hubs: Hubs) -> AsyncIterator[Sample]:
    """Run a host of the sample app whose hubs are in memory."""
    async with (
        running(directory, replace(options, open_source=hubs.open)) as host,
        aiohttp.ClientSession(host.base_url) as http,
    ):
        yield Sample(host, http, hubs)


async def ingested(*batches: list[str]) -> None:
    """Wait until `ingest` got these batches (bodies as texts) in this order."""
    await eventually(lambda: len(seen("ingest")) >= len(batches))
    bodies = [[each["body"][2:-1] for each in batch["events"]] for batch in seen("ingest")]
    assert bodies == list(batches)

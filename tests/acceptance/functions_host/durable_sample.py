"""Start and watch the orchestrations of the Durable app over HTTP, as a person would."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from local.functions_host import HostOptions
from tests.acceptance.functions_host.sample import running
from tests.local.functions_host.doubles import DEADLINE_S
from tests.patience import allowed

WEBHOOK = "/runtime/webhooks/durabletask"


class DurableApp:
    """The app behind its HTTP address."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self.http = http

    async def start(self, name: str, value: Any = None, instance_id: str | None = None) -> str:
        """Start through the SDK's client in a function of the app; return the id."""
        query = {} if instance_id is None else {"id": instance_id}
        async with self.http.post(f"/api/start/{name}", json=value, params=query) as answer:
            assert answer.status == 202, await answer.text()
            return str((await answer.json())["id"])

    async def run(self, name: str, value: Any = None, instance_id: str | None = None) -> Any:
        """Start, wait for the end, and return the whole status."""
        return await self.ended(await self.start(name, value, instance_id))

    async def ended(self, instance_id: str) -> Any:
        """Wait for the end and return the whole status."""
        final = ("Completed", "Failed", "Terminated")
        return await self.until(instance_id, lambda status: status["runtimeStatus"] in final)

    async def until(self, instance_id: str, holds: Callable[[Mapping[str, Any]], object]) -> Any:
        """Wait until the condition holds for the status with its history and values."""
        async with asyncio.timeout(allowed(DEADLINE_S)):
            while not holds(status := (await self.get(instance_id))[1]):
                await asyncio.sleep(0.005)
        return status

    async def is_at(self, instance_id: str, *kinds: str) -> None:
        """Wait until the history of an orchestration has exactly these kinds of events after its beginning."""
        await self.until(instance_id, lambda status: kinds_of(status)[1:] == list(kinds))

    async def get(self, instance_id: str) -> tuple[int, Any]:
        query = {"showHistory": "true", "showHistoryOutput": "true"}
        async with self.http.get(f"{WEBHOOK}/instances/{instance_id}", params=query) as answer:
            return answer.status, await answer.json(content_type=None)

    async def post(self, path: str, value: Any = None) -> int:
        """Post to the management API and return the status."""
        async with self.http.post(f"{WEBHOOK}/{path}", json=value) as answer:
            return answer.status

    async def client(self, verb: str, instance_id: str, value: Any = None, **query: str) -> Any:
        """Call a verb of the SDK's client in a function of the app."""
        async with self.http.post(f"/api/client/{verb}/{instance_id}", json=value, params=query) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json(content_type=None)


def kinds_of(status: Mapping[str, Any]) -> list[str]:
    """Return the kinds of the events in a history."""
    return [each["EventType"] for each in status["historyEvents"]]


@asynccontextmanager
async def serving(directory: Path, options: HostOptions) -> AsyncIterator[DurableApp]:
    """Run a host of the app."""
    async with running(directory, options) as host, aiohttp.ClientSession(host.base_url) as http:
        yield DurableApp(http)

"""Run Hubledger itself and treat its keeper badly: end it, purge it, start a second one; print the letters as JSON.

Arguments: builtin or microsoft, the folder of the app, and the store's file. Settings come from the environment.
"""

import asyncio
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import aiohttp

from local.functions_host import HostOptions
from tests.acceptance.functions_host.runtime_worker import worker_of
from tests.acceptance.functions_host.sample import Hubs, running

DURABLE, KEEPER = "/runtime/webhooks/durabletask", "dead-letters-1"


class App:
    """The app on a host, with a home after the other that registers only after its first reading."""

    def __init__(self, hubs: Hubs, base_url: str, store: Path, session: aiohttp.ClientSession) -> None:
        self._hub = hubs.of("hubledger")
        self._base_url = base_url
        self._store = store
        self._session = session
        self._homes = 0

    async def post(self, path: str, body: object = None) -> int:
        async with self._session.post(f"{self._base_url}{path}", json=body) as answer:
            await answer.read()
            return answer.status

    async def purge(self) -> int:
        async with self._session.delete(f"{self._base_url}{DURABLE}/instances/{KEEPER}") as answer:
            return answer.status

    async def watch(self) -> None:
        assert await self.post("/admin/functions/watch_dead_letters", {"input": ""}) == 202

    async def state(self) -> str:
        async with self._session.get(f"{self._base_url}{DURABLE}/instances/{KEEPER}") as answer:
            return "" if answer.status == 404 else (await answer.json())["runtimeStatus"]

    async def until_state(self, *wanted: str) -> None:
        while await self.state() not in wanted:
            await asyncio.sleep(0.05)

    async def late_home(self) -> None:
        """One letter more, which can be resolved at once."""
        self._homes += 1
        home = f'"home_id":"H{self._homes}"'
        reading = f'{{"kind":"door",{home},"sensor_id":"S","state":"idle","observed_at":"2026-11-21T12:00:00Z"}}'
        registration = f'{{"kind":"registration",{home},"time_zone":"Etc/UTC","armed":true}}'
        await self._hub.send("1", reading.encode())
        while len(self.letters()) < self._homes:
            await asyncio.sleep(0.05)
        await self._hub.send("1", registration.encode())

    async def until_resolved(self) -> None:
        while any(status != "resolved" for status, _ in self.letters()):
            await asyncio.sleep(0.05)

    def letters(self) -> list[tuple[str, int]]:
        """Status and attempts of each."""
        with closing(sqlite3.connect(self._store)) as connection:
            return connection.execute("SELECT status, attempts FROM event_hub_dead_letter ORDER BY 1").fetchall()


async def main(worker: str, directory: Path, store: Path) -> None:
    """A late home after each blow, whose letter must be resolved all the same."""
    hubs = Hubs()
    options = HostOptions(worker=worker_of(worker), open_source=hubs.open)
    async with running(directory, options) as host, aiohttp.ClientSession() as session, asyncio.timeout(90):
        app = App(hubs, host.base_url, store, session)
        await app.late_home()
        await app.until_resolved()
        assert await app.post(f"{DURABLE}/instances/{KEEPER}/terminate?reason=test") == 202
        await app.until_state("Terminated")
        await app.watch()
        await app.late_home()
        await app.until_resolved()
        assert await app.post(f"{DURABLE}/instances/{KEEPER}/terminate?reason=test") == 202
        await app.until_state("Terminated")
        assert await app.purge() == 200
        await app.watch()
        await app.until_state("Running")
        assert await app.post(f"{DURABLE}/orchestrators/keep_dead_letters/another") == 202
        for _ in range(5):
            await app.late_home()
        await app.until_resolved()
        print(json.dumps(app.letters()))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))

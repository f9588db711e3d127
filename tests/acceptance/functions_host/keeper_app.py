"""Run Hubledger itself, end, purge and double its keeper of letters, and print the letters as JSON.

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
from tests.acceptance.functions_host.app_hub import give_the_app_a_hub
from tests.acceptance.functions_host.runtime_worker import worker_of
from tests.acceptance.functions_host.sample import Hubs, running
from tests.patience import allowed

DURABLE = "/runtime/webhooks/durabletask"
KEEPER = f"{DURABLE}/instances/dead-letters-1"


class App:
    """The running app; each of its homes registers only after its first reading."""

    def __init__(self, hubs: Hubs, http: aiohttp.ClientSession, store: Path) -> None:
        self._hub = hubs.of("hubledger")
        self._http = http
        self._store = store
        self._homes = 0

    async def request(self, method: str, path: str, body: object = None) -> tuple[int, str]:
        async with self._http.request(method, path, json=body) as answer:
            return answer.status, await answer.text()

    async def end(self) -> None:
        """Terminate the keeper, and wait for its end."""
        assert (await self.request("POST", f"{KEEPER}/terminate?reason=test"))[0] == 202
        await self.until_state("Terminated")

    async def watch(self) -> None:
        assert (await self.request("POST", "/admin/functions/watch_dead_letters", {"input": ""}))[0] == 202

    async def until_state(self, wanted: str) -> None:
        while f'"runtimeStatus": "{wanted}"' not in (await self.request("GET", KEEPER))[1]:
            await asyncio.sleep(0.01)

    async def late_home(self) -> None:
        """Add one letter that can be resolved at once."""
        self._homes += 1
        home = f'"home_id":"H{self._homes}"'
        reading = f'{{"kind":"door",{home},"sensor_id":"S","state":"idle","observed_at":"2026-11-21T12:00:00Z"}}'
        registration = f'{{"kind":"registration",{home},"time_zone":"Etc/UTC","armed":true}}'
        await self._hub.send("1", reading.encode())
        while len(self.letters()) < self._homes:
            await asyncio.sleep(0.01)
        await self._hub.send("1", registration.encode())

    async def until_resolved(self) -> None:
        while any(status != "resolved" for status, _ in self.letters()):
            await asyncio.sleep(0.01)

    def letters(self) -> list[tuple[str, int]]:
        """Return status and attempts of each letter."""
        with closing(sqlite3.connect(self._store)) as connection:
            return connection.execute("SELECT status, attempts FROM event_hub_dead_letter ORDER BY 1").fetchall()


async def main(worker: str, directory: Path, store: Path) -> None:
    """Add late homes after each fault of the keeper, whose letters must all be resolved."""
    hubs = Hubs()
    options = HostOptions(worker=worker_of(worker), open_source=hubs.open)
    async with (
        running(directory, options) as host,
        aiohttp.ClientSession(host.base_url) as http,
        asyncio.timeout(allowed(90)),
    ):
        give_the_app_a_hub()
        app = App(hubs, http, store)
        await app.late_home()
        await app.until_resolved()
        await app.end()
        await app.watch()
        await app.late_home()
        await app.until_resolved()
        await app.end()
        assert (await app.request("DELETE", KEEPER))[0] == 200
        await app.watch()
        await app.until_state("Running")
        assert (await app.request("POST", f"{DURABLE}/orchestrators/keep_dead_letters/dead-letters-2"))[
            0
        ] == 202  # a double
        for _ in range(5):
            await app.late_home()
        await app.until_resolved()
        print(json.dumps(app.letters()))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))

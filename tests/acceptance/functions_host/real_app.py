"""Run Hubledger itself on one of the two workers, and print the results as JSON.

Arguments: builtin or microsoft, the folder of the app, and the store's file. Settings come from the environment. It
prints the status and a replay of a batch. Then its keeper of letters is ended, purged and doubled amid letters.
"""

import asyncio
import json
import sqlite3
import sys
import threading
import time
import uuid
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from azure.functions import meta

from core.incarnations.hub_check import HubVerification
from core.model.events import Event, SequenceNumber
from handlers.app import app
from local.functions_host import HostOptions
from tests.acceptance.functions_host.runtime_worker import worker_of
from tests.acceptance.functions_host.sample import WEBHOOK, Hubs, running
from tests.fakes.memory_hub import MemoryHub
from tests.patience import allowed

BODIES = (
    b'{"kind":"registration","home_id":"H0","time_zone":"Europe/Paris","armed":true}',
    b'{"kind":"door","home_id":"H0","sensor_id":"S1","state":"active","observed_at":"2026-11-21T12:00:00Z"}',
    b"",
)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)  # the first event of the trigger; one a second follows
KEEPER = f"{WEBHOOK}/instances/dead-letters-1"


def give_the_app_a_hub() -> None:
    """Let the app verify, heal and replay from a hub whose partition 1 holds the bodies: none is at its address."""
    times = [NOON + timedelta(seconds=n) for n in range(len(BODIES))]
    log = [Event(SequenceNumber(n), str(n), times[n], None, {}, body) for n, body in enumerate(BODIES)]
    hub: Any = MemoryHub({"1": log})
    own, verification = app(), HubVerification(hub, time.monotonic, threading.RLock())
    before = own.core.ingestion
    ingestion = replace(before, gap_reading=replace(before.gap_reading, hub=hub), incarnations=verification)
    stalled = replace(own.stalled, means=replace(ingestion, store=own.stalled.means.store))
    app.value = replace(own, hub=hub, core=replace(own.core, ingestion=ingestion), stalled=stalled)


class Client:
    """The app over HTTP, its hub and its store. Each late home registers only after its first reading."""

    def __init__(self, hubs: Hubs, http: aiohttp.ClientSession, store: Path) -> None:
        self.hub, self._http, self._store, self._homes = hubs.of("hubledger"), http, store, 0

    async def request(self, method: str, path: str, status: int = 0, body: object = None) -> Any:
        async with self._http.request(method, path, json=body) as answer:
            assert not status or answer.status == status, await answer.text()
            return json.loads(await answer.text() or "null")

    async def until(self, path: str, name: str, *values: object) -> Any:
        while (found := await self.request("GET", path) or {}).get(name) not in values:
            await asyncio.sleep(0.01)
        return found

    async def end_keeper(self) -> None:
        await self.request("POST", f"{KEEPER}/terminate?reason=test", 202)
        await self.until(KEEPER, "runtimeStatus", "Terminated")

    async def watch(self) -> None:
        await self.request("POST", "/admin/functions/watch_dead_letters", 202, {"input": ""})

    async def late_homes(self, count: int) -> None:
        """Add letters that can be resolved at once, and wait until all are."""
        for _ in range(count):
            self._homes += 1
            home = f'"home_id":"H{self._homes}"'
            reading = f'{{"kind":"door",{home},"sensor_id":"S","state":"idle","observed_at":"2026-11-21T12:00:00Z"}}'
            await self.hub.send("0", reading.encode())
            while len(self.letters()) < self._homes:
                await asyncio.sleep(0.01)
            registration = f'{{"kind":"registration",{home},"time_zone":"Etc/UTC","armed":true}}'
            await self.hub.send("0", registration.encode())
        while set(self.letters()) != {"resolved"}:
            await asyncio.sleep(0.01)

    def letters(self) -> list[str]:
        with closing(sqlite3.connect(self._store)) as connection:
            found = connection.execute("SELECT status FROM event_hub_dead_letter WHERE partition_id = '0'")
            return [status for (status,) in found]


async def main(worker: str, directory: Path, store: Path) -> None:
    hubs = Hubs()
    options = HostOptions(worker=worker_of(worker), open_source=hubs.open)
    async with (
        running(directory, options) as host,
        aiohttp.ClientSession(host.base_url) as http,
        asyncio.timeout(allowed(100)),
    ):
        give_the_app_a_hub()
        client = Client(hubs, http, store)
        await client.hub.send("1", *BODIES)
        status = await client.until("/api/status", "accounted", len(BODIES))
        task = f"/api/tasks/{uuid.uuid4()}"
        await client.request("PUT", task, 201, {"kind": "replay", "reason": "to be seen", "dry_run": False})
        job = await client.until(task, "status", "done", "failed")
        await client.late_homes(1)
        await client.end_keeper()
        await client.watch()
        await client.late_homes(1)
        await client.end_keeper()
        await client.request("DELETE", KEEPER, 200)
        await client.watch()
        await client.until(KEEPER, "runtimeStatus", "Running")
        await client.request("POST", f"{WEBHOOK}/orchestrators/keep_dead_letters/dead-letters-2", 202)  # a double
        await client.late_homes(5)
    fast = getattr(meta._BaseConverter.__dict__["_parse_datetime"], "fast", False)
    print(json.dumps({"status": status, "job": job, "letters": client.letters(), "reads_times_fast": fast}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))

"""Run Hubledger itself, in a process of its own, on one of the two workers: a batch in, its books out, as JSON.

Arguments: builtin or microsoft, and the folder of the app. Its settings come from the environment.
"""

import asyncio
import json
import sys
from pathlib import Path

import aiohttp
from azure.functions import meta

from local.functions_host import HostOptions
from local.functions_host.builtin_worker import BuiltinWorker
from tests.acceptance.functions_host.runtime_worker import RuntimeWorker
from tests.acceptance.functions_host.sample import Hubs, running

REGISTRATION = b'{"kind":"registration","home_id":"H1","time_zone":"Europe/Paris","armed":true}'
READING = b'{"kind":"door","home_id":"H1","sensor_id":"S1","state":"active","observed_at":"2026-11-21T12:00:00Z"}'


async def main(worker: str, directory: Path) -> None:
    """Send a registration, a reading and a poison event, wait until they are accounted for, print the status."""
    hubs = Hubs()
    chosen = BuiltinWorker() if worker == "builtin" else RuntimeWorker()
    async with running(directory, HostOptions(worker=chosen, open_source=hubs.open)) as host:
        await hubs.of("hubledger").send("1", REGISTRATION, READING, b"")
        async with aiohttp.ClientSession() as session, asyncio.timeout(40):
            status = await _status(session, host.base_url)
            while status["accounted"] < 3:
                await asyncio.sleep(0.05)
                status = await _status(session, host.base_url)
    fast = getattr(meta._BaseConverter.__dict__["_parse_datetime"], "fast", False)
    print(json.dumps({**status, "reads_times_fast": fast}))


async def _status(session: aiohttp.ClientSession, base_url: str) -> dict:
    async with session.get(f"{base_url}/api/status") as answer:
        return await answer.json()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

"""Run Hubledger itself on one of the two workers: a batch in, its status and a replay of it out, as JSON.

Arguments: builtin or microsoft, and the folder of the app. Settings come from the environment.
"""

import asyncio
import json
import sys
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from azure.functions import meta

from core.model.events import Event, SequenceNumber
from local.functions_host import HostOptions
from tests.acceptance.functions_host.app_hub import give_the_app_a_hub
from tests.acceptance.functions_host.runtime_worker import worker_of
from tests.acceptance.functions_host.sample import Hubs, running
from tests.patience import allowed

BODIES = (
    b'{"kind":"registration","home_id":"H1","time_zone":"Europe/Paris","armed":true}',
    b'{"kind":"door","home_id":"H1","sensor_id":"S1","state":"active","observed_at":"2026-11-21T12:00:00Z"}',
    b"",
)
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)  # the first event of the trigger; one a second follows


async def main(worker: str, directory: Path) -> None:
    """Ingest a registration, a reading and a poison event, replay them, and print the status and the replay's job."""
    hubs = Hubs()
    options = HostOptions(worker=worker_of(worker), open_source=hubs.open)
    async with running(directory, options) as host:
        times = [NOON + timedelta(seconds=n) for n in range(len(BODIES))]
        log = [Event(SequenceNumber(n), str(n), times[n], None, {}, body) for n, body in enumerate(BODIES)]
        give_the_app_a_hub(log)
        await hubs.of("hubledger").send("1", *BODIES)
        async with aiohttp.ClientSession(host.base_url) as session, asyncio.timeout(allowed(40)):
            status = await _status(session)
            while status["accounted"] < len(BODIES):
                await asyncio.sleep(0.05)
                status = await _status(session)
            job = await _replayed(session)
    fast = getattr(meta._BaseConverter.__dict__["_parse_datetime"], "fast", False)
    print(json.dumps({"status": status, "job": job, "reads_times_fast": fast}))


async def _status(session: aiohttp.ClientSession) -> dict:
    async with session.get("/api/status") as answer:
        return await answer.json()


async def _replayed(session: aiohttp.ClientSession) -> Any:
    body = {"kind": "replay", "reason": "to be seen on the host", "dry_run": False}
    async with session.put(f"/api/tasks/{uuid.uuid4()}", json=body) as answer:
        assert answer.status == 201, await answer.text()
        place = answer.headers["Location"]
    while True:
        async with session.get(place) as answer:
            job = await answer.json()
        if job["status"] not in ("planned", "running"):
            return job
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

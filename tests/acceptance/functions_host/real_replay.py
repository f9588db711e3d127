"""Run Hubledger itself on one of the two workers and replay what it ingested: the job that ends it, as JSON.

Arguments: builtin or microsoft, and the folder of the app. Its settings come from the environment.
"""

import asyncio
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from core.model.events import Event
from core.model.spans import SequenceNumber
from handlers.app import app
from local.functions_host import HostOptions
from local.functions_host.builtin_worker import BuiltinWorker
from tests.acceptance.functions_host.real_app import READING, REGISTRATION, _status
from tests.acceptance.functions_host.runtime_worker import RuntimeWorker
from tests.acceptance.functions_host.sample import Hubs, running
from tests.fakes.memory_hub import MemoryHub

BODIES = (REGISTRATION, READING, b"")
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def main(worker: str, directory: Path) -> None:
    """Ingest three events, let a replay's orchestration do them again, and print the job."""
    hubs = Hubs()
    chosen = BuiltinWorker() if worker == "builtin" else RuntimeWorker()
    async with running(directory, HostOptions(worker=chosen, open_source=hubs.open)) as host:
        await hubs.of("hubledger").send("1", *BODIES)
        async with aiohttp.ClientSession(host.base_url) as session, asyncio.timeout(40):
            while (await _status(session, ""))["accounted"] < 3:
                await asyncio.sleep(0.05)
            _put_a_hub_behind_the_app()
            print(json.dumps(await _replayed(session)))


def _put_a_hub_behind_the_app() -> None:
    """Both workers run the app in this process: no hub listens at its address."""
    log = [Event(SequenceNumber(n), str(n), LONG_AGO, None, {}, body) for n, body in enumerate(BODIES)]
    hub: Any = MemoryHub({"1": log})
    app.value = replace(app(), hub=hub)


async def _replayed(session: aiohttp.ClientSession) -> Any:
    body = {"reason": "to be seen on the host", "dry_run": False}
    async with session.post("/api/replays", json=body, headers={"Idempotency-Key": "once"}) as answer:
        assert answer.status == 202, await answer.text()
        place = answer.headers["Location"]
    while True:
        async with session.get(place) as answer:
            job = await answer.json()
        if job["status"] not in ("planned", "running"):
            return job
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

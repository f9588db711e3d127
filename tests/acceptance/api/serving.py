"""Hubledger on the local functions host, over HTTP, with hubs in memory: a process of its own, fed by lines of JSON.

Arguments: the folder of the app, and a file for its log. Its settings come from the environment. It says where it
listens on its first line; each line that it is sent, {"partition_id", "bodies"}, is events for a hub; it ends when its
input does.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from local.functions_host import HostOptions
from local.functions_host.logs import configure_logs
from tests.acceptance.functions_host.sample import Hubs, running

GROUP = "hubledger"


async def main(directory: Path, log: Path) -> None:
    """Serve until the input ends."""
    configure_logs(log, verbose=False)
    hubs = Hubs()
    async with running(directory, HostOptions(open_source=hubs.open)) as host:
        print(host.base_url, flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            asked: dict[str, Any] = json.loads(line)
            await hubs.of(GROUP).send(asked["partition_id"], *(body.encode() for body in asked["bodies"]))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))

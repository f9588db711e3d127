"""Serve Hubledger on the local functions host in a separate process, over HTTP, with an empty hub in memory.

Arguments: the folder of the app, and a file for its log. Its settings come from the environment. It prints its address
on its first line, and ends when its input ends.
"""

import asyncio
import sys
from pathlib import Path

from local.functions_host import HostOptions
from local.functions_host.logs import configure_logs
from tests.acceptance.functions_host.sample import Hubs, running


async def main(directory: Path, log: Path) -> None:
    """Serve until the input ends."""
    configure_logs(log, verbose=False)
    async with running(directory, HostOptions(open_source=Hubs().open)) as host:
        print(host.base_url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))

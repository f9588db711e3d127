"""`python -m bench.peers.launched MODULE ...`: run a module of a consumer, ours or a peer's, with the bench's seams.

The seams are settings. PEERS_CALLS names a file, which gets the number of calls of the database driver at the end.
PEERS_FAULTS has the SDK lose the first delivery of each partition, and repeat the second one: the loss stands for
a handler that failed while the checkpoint moved on, as the Functions host moves its own. It names a file, which gets
the number of events of each such delivery.
"""

import argparse
import asyncio
import atexit
import os
import runpy
import sqlite3
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

LOST, TWICE = 1, 2  # of the deliveries of each partition
Deliver = Callable[[Any, Any], Awaitable[None]]


class CountingCursor(sqlite3.Cursor):
    """Counts the calls of all cursors of its class."""

    calls = 0

    def execute(self, *given: Any) -> Any:
        CountingCursor.calls += 1
        return super().execute(*given)

    def executemany(self, *given: Any) -> Any:
        CountingCursor.calls += 1
        return super().executemany(*given)


class CountingConnection(sqlite3.Connection):
    """Makes cursors that count."""

    def cursor(self, factory: Any = CountingCursor) -> Any:
        return super().cursor(factory)

    def execute(self, *given: Any) -> Any:
        return self.cursor().execute(*given)

    def executemany(self, *given: Any) -> Any:
        return self.cursor().executemany(*given)


def count_calls(path: Path) -> None:
    """Count the calls of every connection that is opened from now on. Write the number at the end."""
    sqlite3.connect = partial(sqlite3.connect, factory=CountingConnection)  # type: ignore[assignment]
    atexit.register(lambda: path.write_text(str(CountingCursor.calls)))


def struck(deliver: Deliver, note: Callable[[str], object]) -> Deliver:
    """Return a callback that loses one delivery of each partition, and delivers one twice. It notes both."""
    seen = Counter[str]()

    async def delivered(context: Any, given: Any) -> None:
        if given:
            seen[context.partition_id] += 1
        number = seen[context.partition_id] if given else 0
        count = len(given) if isinstance(given, list) else 1
        if number == LOST:
            note(f"lost {count}\n")
            return
        await deliver(context, given)
        if number == TWICE:
            note(f"twice {count}\n")
            await deliver(context, given)

    return delivered


def strike_deliveries(path: Path) -> None:
    """Strike the callbacks of every aio client, and note it in a file."""
    from azure.eventhub.aio import EventHubConsumerClient

    noted = path.open("a", buffering=1, encoding="utf-8")
    for name, callback in (("receive", "on_event"), ("receive_batch", "on_event_batch")):
        setattr(
            EventHubConsumerClient, name, _with_struck(getattr(EventHubConsumerClient, name), callback, noted.write)
        )


def _with_struck(receive: Any, callback: str, note: Callable[[str], object]) -> Any:
    async def received(client: Any, deliver: Any = None, **more: Any) -> None:
        await receive(client, struck(deliver or more.pop(callback), note), **more)

    return received


def consume(arguments: list[str]) -> None:
    """Run a peer until SIGTERM."""
    from bench.peers.consumers import PATTERNS, Place, until_cancelled

    parser = argparse.ArgumentParser(prog="python -m bench.peers.launched peer")
    parser.add_argument("pattern", choices=PATTERNS)
    for name in ("hub", "group", "container"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args(arguments)
    secret = {name: os.environ[f"PEERS_{name.upper()}"] for name in ("connection", "blobs", "store")}
    asyncio.run(
        until_cancelled(given.pattern, Place(hub=given.hub, group=given.group, container=given.container, **secret))
    )


def main() -> None:
    """Install the seams that the settings name, and run the module, or a peer."""
    if calls := os.environ.get("PEERS_CALLS"):
        count_calls(Path(calls))
    if faults := os.environ.get("PEERS_FAULTS"):
        strike_deliveries(Path(faults))
    module, *arguments = sys.argv[1:]
    if module == "peer":
        consume(arguments)
        return
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

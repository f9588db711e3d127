"""The CPU per event of a whole way, on the local hub: of the SDK alone, of the worker, and of the Functions host."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.usage import cpu_of
from local.feed.businesses import HOMES
from local.programs import APP
from local.stack.app_totals import count_accounted
from local.stack.processes import Child
from local.stack.stack import HUB, READER_GROUP, Stack

LOOK_EVERY = 0.1  # seconds


@dataclass(frozen=True, slots=True)
class Hub:
    """A local hub that holds so many events, and the stack that started it."""

    stack: Stack
    events: int


def of_sdk(hub: Hub, *shortcuts: str) -> float:
    """Return the microseconds per event of a process that only receives, by the SDK as it is or with shortcuts."""
    given = (hub.stack.connection, HUB, READER_GROUP, str(hub.events), *shortcuts)
    command = [sys.executable, "-m", "bench.way.receiving", *given]
    done = subprocess.run(command, cwd=APP, capture_output=True, text=True, check=True)
    return float(done.stdout)


def of_worker(hub: Hub) -> float:
    """Return the microseconds per event of a worker that ingests all events into a new store."""
    return _of_app(hub, lambda: hub.stack.start_worker(HOMES.transform))


def of_host(hub: Hub) -> float:
    """Return the microseconds per event of the Functions host, its worker included: they share a process here."""
    return _of_app(hub, lambda: hub.stack.start_host(HOMES.transform)[0])


def _of_app(hub: Hub, start: Callable[[], Child]) -> float:
    place = hub.stack.place
    for path in place.folder.glob("*.db*"):
        if path.name.startswith((place.store.name, "functions-host.db")):
            path.unlink()
    hub.stack.create_store(HOMES.transform)
    app = start()
    try:
        began = cpu_of(app.pid)  # whole: a later beginning would leave out what the SDK has prefetched until then
        accounted = _wait(app, place.store, hub.events)
        return 1e6 * (cpu_of(app.pid) - began) / accounted
    finally:
        app.end()


def _wait(app: Child, store: Path, events: int) -> int:
    """Return the number of events that are accounted for, once there are so many."""
    while (accounted := count_accounted(store)) < events:
        app.refuse_dead()
        time.sleep(LOOK_EVERY)
    return accounted

"""The Functions host with our trigger, and with three functions as people write them, in turn: `python -m bench host`.

It is Microsoft's host where `func` is installed, with Azurite, or else the local one. The first fifth of the events is
left out: the host starts, and our app opens.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

from bench.figures import Figure, Result, Table
from bench.peers.run import BARE, FAST, HOST, NOTHING, TRANSFORM, Bench, group_of
from bench.peers.watching import Look, cpu_of_family
from bench.report.words import SHARE
from bench.usage import READABLE
from bench.way.part import DEFAULTS
from core.model.policies import embedded_path
from local.acceptance.hosts import FUNC
from local.functions_host.supervisor import free_port
from local.programs import APP
from local.stack import azurite
from local.stack.app_totals import count_accounted
from local.stack.folders import HOST_READY
from local.stack.processes import Child, ChildFailed, Children, Command
from local.stack.stack import HUB, Place, Stack, app_settings

EVENTS = int(os.environ.get("BENCH_EVENTS", "160000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
NAMES = {
    HOST: "our trigger",
    FAST: "that inserts, with our reading of times",
    BARE: "that inserts",
    NOTHING: "that returns at once",
}
STEADY = (0.2, 0.95)  # of the events
LEAST = 0.92
LONGEST = 30.0  # seconds without an event
LOOK_EVERY = 0.05  # seconds


def measure() -> Iterator[Result]:
    """Measure the four functions in turn on one hub, each with a store of its own."""
    if not READABLE:
        print("host: skipped, this part reads CPU from /proc")
        return
    is_real = shutil.which("func") is not None
    if not is_real:
        print("host: func is not installed, so the local host runs the functions: it is one process with its worker")
    with tempfile.TemporaryDirectory(dir=APP) as name, ExitStack() as opened:
        folder = Path(name)
        storage = opened.enter_context(azurite.running(folder)) if is_real else ""
        children = opened.enter_context(Children(folder))
        stack = Stack(Place(folder), children, time.sleep)
        groups = [word for kind in NAMES for word in ("--consumer-group", group_of(kind))]
        stack.start_emulator(*groups, "--retain", str(EVENTS), "--lead", "0")
        bench = Bench(folder, children, stack.connection, storage)
        bench.start_feed(HUB, EVENTS, "full").wait_done(time.sleep)
        taken: dict[str, list[tuple[float, float]]] = {kind: [] for kind in NAMES}
        for number in range(ROUNDS):
            for kind in NAMES if number % 2 == 0 else reversed(NAMES):
                taken[kind].append(steady(run(bench, kind)))
    yield from report(taken, "Microsoft's host" if is_real else "the local host")


def run(bench: Bench, kind: str) -> list[Look]:
    """Run a function until it has handled all events, and return what was seen of it meanwhile."""
    consumer = bench.consumer(kind, HUB)
    app, seen, store = consumer.folder, consumer.folder / "seen", embedded_path(consumer.store)
    settings = {
        **app_settings(bench.connection, Place(consumer.folder), TRANSFORM),
        **DEFAULTS,
        "STORE_CONNECTION": consumer.store,
        "EVENTHUB_CONSUMER_GROUP": group_of(kind),
        "AzureWebJobsStorage": bench.blobs,
        "PEERS_STORE": consumer.store,
        "PEERS_FUNCTION": kind,
        "PEERS_SEEN": str(seen),
        "PYTHONPATH": str(APP),
        "PYTHONWARNINGS": "ignore",
    }
    if kind == HOST and store is not None:
        app, count = APP, partial(count_accounted, store)
    else:
        count = partial(_sum, seen)
        _write_app(app)
    child = _start(bench, app, consumer.folder, settings)
    looks = [Look(time.monotonic(), 0, cpu_of_family(child.pid))]
    while looks[-1].rows < EVENTS:
        time.sleep(LOOK_EVERY)
        child.refuse_dead()
        look = Look(time.monotonic(), count(), cpu_of_family(child.pid))
        looks = [*looks, look] if look.rows > looks[-1].rows else looks
        if look.seconds > looks[-1].seconds + LONGEST:
            raise ChildFailed(
                f"{NAMES[kind]}: no event in {LONGEST:g} s after {look.rows} of {EVENTS}:\n{child.tail()}"
            )
    child.end()
    return looks


def _write_app(folder: Path) -> None:
    """Write the app of a bare function: with our host.json, but for Durable, which it does not need."""
    settings = json.loads((APP / "host.json").read_text(encoding="utf-8"))
    del settings["extensions"]["durableTask"]
    (folder / "host.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "function_app.py").write_text("from bench.peers.functions import app as app\n", encoding="utf-8")


def _start(bench: Bench, app: Path, folder: Path, settings: dict[str, str]) -> Child:
    """Start the host with an app, and return when it has begun. Microsoft's host is ready before it says so."""
    port = free_port(0)
    if bench.blobs:
        own = {"FUNCTIONS_WORKER_RUNTIME": "python", "VIRTUAL_ENV": sys.prefix}
        command = Command(folder.name, FUNC, ["--port", str(port)], settings | own, app)
    else:
        words = ["--app", str(app), "--port", str(port), "--state", str(folder / "host.db")]
        command = Command(folder.name, "local.functions_host", [*words, "--log", str(folder / "host.log")], settings)
    child = bench.children.start(command)
    if not bench.blobs:
        child.wait_ready(HOST_READY, time.sleep)
    return child


def _sum(seen: Path) -> int:
    return sum(map(int, seen.read_text(encoding="utf-8").split())) if seen.exists() else 0


def steady(looks: Sequence[Look]) -> tuple[float, float]:
    """Return the events a second, and the microseconds of the processor per event, between the shares of STEADY."""
    within = [one for one in looks if STEADY[0] * EVENTS <= one.rows <= STEADY[1] * EVENTS]
    within = within if len(within) > 1 else list(looks)
    begin, end = within[0], within[-1]
    events = end.rows - begin.rows
    return events / (end.seconds - begin.seconds), 1e6 * (end.cpu - begin.cpu) / events


def report(taken: Mapping[str, Sequence[tuple[float, float]]], kind: str) -> Iterator[Result]:
    """Yield the rates and the prices of the four, and ours in shares of the others: the medians over the rounds."""
    rows = [(NAMES[one], *map(median, zip(*runs, strict=True))) for one, runs in taken.items()]
    yield Table(f"a function on {kind}, steady", ("function", "events/s", "CPU, µs per event"), tuple(rows))
    for other, target in ((FAST, LEAST), (BARE, None), (NOTHING, None)):
        pairs = [ours[0] / theirs[0] for ours, theirs in zip(taken[HOST], taken[other], strict=True)]
        text, met = (f">= {target:g}", median(pairs) >= target) if target else ("", None)
        yield Figure(f"{SHARE}{NAMES[other]}", median(pairs), "of it", text, met)

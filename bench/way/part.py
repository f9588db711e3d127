"""The way of an event, stage by stage: its CPU in the worker and through the Functions host, beside the SDK alone."""

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from bench.figures import Figure, Result, Table
from bench.usage import READABLE
from bench.way.receiving import open_client
from bench.way.recorded import record
from bench.way.stages import OF_BOTH, OF_HOST, OF_WORKER, replayed
from bench.way.whole import Hub, of_host, of_sdk, of_worker
from local.feed.businesses import HOMES
from local.programs import APP
from local.stack.processes import Children
from local.stack.stack import HUB, READER_GROUP, FeedOrder, Place, Stack

EVENTS = int(os.environ.get("BENCH_EVENTS", "100000"))
ROUNDS = 3
SENDERS = 5_000  # homes: they are registered among the first events, so that most events are readings
SDK = "the SDK receives, with shortcuts"
SHORT = "shortcuts"
REST = "the rest: loop, threads, memory, timers"
COLUMNS = ("stage", "CPU, µs per event", "share, %")
LEAST = 1.0
DEFAULTS = {  # of the settings that the local run changes: its letters are retried every second
    "BATCH_LINES_PER_MINUTE": "20",
    "DEAD_LETTER_BASE_SECONDS": "30",
    "DEAD_LETTER_CEILING_SECONDS": "3600",
    "DEAD_LETTER_LEASE_SECONDS": "300",
    "DEAD_LETTER_LOOK_SECONDS": "60",
}


def measure() -> Iterator[Result]:
    """Measure the whole ways in turn, then the stages of each, replayed alone. The rest is the difference."""
    if not READABLE:
        print("way: skipped, this part reads CPU from /proc")
        return
    with tempfile.TemporaryDirectory(dir=APP) as folder, Children(Path(folder)) as children:
        stack = Stack(Place(Path(folder)), children, time.sleep, DEFAULTS)
        emulator = stack.start_emulator("--retain", str(2 * EVENTS), "--lead", "0")
        stack.start_feed(FeedOrder(HOMES, SENDERS, str(EVENTS), "full", 1)).wait_done(time.sleep)
        whole = _in_turn(Hub(stack, EVENTS))
        recorded = asyncio.run(record(open_client(stack.connection, HUB, READER_GROUP), EVENTS))
        emulator.end()
        stack = Stack(Place(Path(folder, "replayed")), children, time.sleep)
        stack.place.folder.mkdir()
        stack.create_store(HOMES.transform)
        stages = replayed(recorded, HOMES.transform, stack.place.store)
    stages[SDK] = whole[SHORT]
    yield table("CPU of the whole way: the worker", stages, (SDK, *OF_WORKER, *OF_BOTH), whole["worker"])
    yield table("CPU through the Functions host", stages, (SDK, *OF_HOST, *OF_BOTH), whole["host"])
    yield from _figures(whole)


def _in_turn(hub: Hub) -> dict[str, float]:
    """Return the median of each way, measured in turn, and of the shares of the SDK's in the worker's."""
    ways = {"sdk": of_sdk, SHORT: lambda hub: of_sdk(hub, SHORT), "worker": of_worker, "host": of_host}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, measured in ways.items():
            taken[name].append(measured(hub))
    shares = [sdk / worker for sdk, worker in zip(taken["sdk"], taken["worker"], strict=True)]
    return {"share": median(shares), **{name: median(each) for name, each in taken.items()}}


def table(name: str, stages: Mapping[str, float], order: Sequence[str], whole: float) -> Table:
    """Return the stages of a way with their shares, and the rest of the whole."""
    given = {stage: stages[stage] for stage in order}
    given[REST] = whole - sum(given.values())
    return Table(name, COLUMNS, tuple((stage, each, 100 * each / whole) for stage, each in given.items()))


def _figures(whole: Mapping[str, float]) -> Iterator[Figure]:
    share = whole["share"]
    note = f"{whole['sdk']:.0f} of {whole['worker']:.0f} us"
    yield Figure("CPU of the SDK alone, of the worker's whole way", share, "of it", f">= {LEAST}", share >= LEAST, note)
    yield Figure("CPU of the SDK alone with our shortcuts per event", whole[SHORT], "us", "", None)
    yield Figure("CPU of the worker's whole way per event", whole["worker"], "us", "", None)
    yield Figure("CPU through the Functions host per event", whole["host"], "us", "", None)

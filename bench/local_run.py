"""The whole local run at 7,000 events/s of 100,000 homes: its rate, its lag, its waits, and the host's memory."""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Figure
from bench.usage import READABLE, cpu_of, resident_of
from bench.waits import percentile, waits
from local.feed.businesses import HOMES
from local.programs import APP
from local.stack.app_totals import count_accounted
from local.stack.processes import Child, Children
from local.stack.sql_server import Server
from local.stack.stack import HUB, FeedOrder, Place, Stack

RATE, SENDERS = 7_000, 100_000
EVENTS = int(os.environ.get("BENCH_EVENTS", "1000000"))  # two and a half minutes
WARMING = 100_000  # events at full speed, so that the host lags behind and fills its prefetch buffers
SETTLED = 0.2  # of the events: the point at which the host's memories are full
LOOK_EVERY = 2.0  # seconds


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the run: seconds since the feed began, events accounted for, resident bytes of the host."""

    seconds: float
    accounted: int
    resident: int


def measure(server: Server | None = None) -> Iterator[Figure]:
    """Measure the share of the rate that was accounted for, the swing of the lag, memory, CPU and wait per event."""
    if not READABLE:
        print("local: skipped, this part reads memory and CPU from /proc")
        return
    with tempfile.TemporaryDirectory(dir=APP) as folder, Children(Path(folder)) as children:
        stack = Stack(Place(Path(folder), server=server), children, time.sleep)
        emulator = stack.start_emulator("--retain", "200000")
        stack.create_store(HOMES.transform)
        host, _ = stack.start_host(HOMES.transform)
        _warm_up(stack, host)
        feed = stack.start_feed(FeedOrder(HOMES, SENDERS, str(EVENTS), str(RATE), 1, _record(stack, "measured")))
        began = time.time()
        looks = _watch(stack, host, feed)
        yield from _figures(looks)
        yield from _cpu({"emulator": emulator, "host": host}, looks[-1].accounted)
        _drain(stack, host)
        emulator.end()
        yield from _waits(stack, began)


def _warm_up(stack: Stack, host: Child) -> None:
    """Receive from every partition before the clock starts: the SDK takes seconds to open them."""
    stack.start_feed(FeedOrder(HOMES, SENDERS, str(WARMING), "full", 2, _record(stack, "warming"))).wait_done(
        time.sleep
    )
    while count_accounted(stack.place.live) < WARMING:
        host.refuse_dead()
        time.sleep(0.2)


def _record(stack: Stack, name: str) -> tuple[str, str]:
    return ("--record", str(stack.place.folder / f"{name}.db"))


def _watch(stack: Stack, host: Child, feed: Child) -> list[Look]:
    looks, began = [Look(0.0, count_accounted(stack.place.live), resident_of(host.pid))], time.monotonic()
    while feed.running:
        time.sleep(LOOK_EVERY)
        host.refuse_dead()
        accounted = count_accounted(stack.place.live)
        looks.append(Look(time.monotonic() - began, accounted, resident_of(host.pid)))
        print(
            f"  {looks[-1].seconds:5.0f} s {accounted:>9,} accounted, host {looks[-1].resident >> 20} MB",
            file=sys.stderr,
        )
    return looks


def _figures(looks: list[Look]) -> Iterator[Figure]:
    total = looks[-1].accounted
    steady = [look for look in looks if SETTLED * total <= look.accounted <= 0.95 * total]
    begin, end = steady[0], steady[-1]
    rate = (end.accounted - begin.accounted) / (end.seconds - begin.seconds)
    share = 100 * rate / RATE
    yield Figure(
        "local run, share of 7,000 events/s accounted for", share, "%", ">= 98", share >= 98, f"{rate:,.0f} /s"
    )
    lags = [(begin.accounted - look.accounted) / RATE + look.seconds - begin.seconds for look in steady]
    lag = max(lags) - min(lags)
    yield Figure("local run, swing of the lag, in seconds of publishing", lag, "s", "<= 5", lag <= 5)
    growth = looks[-1].resident / begin.resident
    name = f"host's memory after {total:,} events, against after {begin.accounted:,}"
    size = f"{begin.resident >> 20} MB, then {looks[-1].resident >> 20} MB"
    yield Figure(name, growth, "x", "<= 1.15", growth <= 1.15, size)


def _drain(stack: Stack, host: Child) -> None:
    """Wait until nothing more is accounted for."""
    before = -1
    while (accounted := count_accounted(stack.place.live)) > before:
        host.refuse_dead()
        before = accounted
        time.sleep(LOOK_EVERY)


def _waits(stack: Stack, began: float) -> Iterator[Figure]:
    found = waits(stack.place.hub, HUB, stack.place.live, began)
    name, note = "local run, from enqueued to committed", f"of {len(found):,} events"
    middle, most = percentile(found, 50), percentile(found, 99)
    yield Figure(f"{name}, median", middle, "s", "", None, note)
    yield Figure(f"{name}, p99", most, "s", "< 2", most < 2, f"{note}, with 7,000 /s published")


def _cpu(children: dict[str, Child], events: int) -> Iterator[Figure]:
    for name, child in children.items():
        yield Figure(f"local run, CPU of the {name} per event", 1e6 * cpu_of(child.pid) / events, "us", "", None)

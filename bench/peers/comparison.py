"""The comparison itself: throughput in turn, latency below each limit, the same faults, then tables and verdicts."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.figures import Figure, Result, Table
from bench.peers.faults import Suffered, suffer
from bench.peers.latency import Fed, feed_slowly, hub_of, percentiles
from bench.peers.recounted import published
from bench.peers.run import HOST, NAMES, OURS, SPARK, WORKER, Bench, groups
from bench.peers.spark_run import read_files
from bench.peers.watching import Measured, measured, peak_of_family, stored_by, watch
from bench.usage import READABLE
from local.programs import APP
from local.stack import azurite
from local.stack.processes import Children
from local.stack.sql_server import Server
from local.stack.stack import HUB, PARTITIONS, Place, Stack

EVENTS = int(os.environ.get("BENCH_EVENTS", "60000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "2"))
SHORT_HUB, SHORT_SHARE = "short", 16  # (a) takes minutes for what the others take in seconds
IN_TURN, ONCE = (WORKER, "d", "b", "c"), ("c10", HOST, "a20", "a")
WATCHED = (WORKER, HOST, "a", "b", "c", "d")  # those whose latency and losses are measured
LONGEST, SLOW = 20.0, 10.0  # seconds of a run; (a) is measured on a part of the events
MOST_RATE = 2_000.0  # events a second of a feed below each consumer's limit, or half of the limit
AT_ONCE = 3  # trials of faults: they are counted, not timed
SEED = 1
AGAINST = (("d", 80.0), ("a", 10.0), ("a20", None), ("b", 0.9), ("c", 5.0), ("c10", 5.0))
LABELS = {"a": "(a)", "a20": "(a) of 20", "b": "(b)", "c": "(c)", "c10": "(c) of 10", "d": "(d)"}
ON_A_SERVER = {"b": 1.5}


@dataclass(slots=True)
class Found:
    """The measurements by consumer. `calls` holds the calls to the driver per event."""

    runs: dict[str, list[Measured]] = field(default_factory=dict)
    calls: dict[str, float] = field(default_factory=dict)
    fed: dict[str, Fed] = field(default_factory=dict)
    suffered: dict[str, Suffered] = field(default_factory=dict)
    times: dict[str, tuple[float, float] | None] = field(default_factory=dict)

    def middle(self, kind: str, name: str) -> float | None:
        """Return the median of a figure of a consumer's runs, or None when it has none."""
        return median(getattr(one, name) for one in self.runs[kind]) if self.runs.get(kind) else None


def measure(server: Server | None = None) -> Iterator[Result]:
    """Measure all consumers on one hub, and on a server throughput only. Skip where Azurite is not installed."""
    if not READABLE or azurite.command() is None:
        print("peers: skipped, this part reads /proc, and needs Azurite: `make azurite` installs it")
        return
    found = Found()
    with tempfile.TemporaryDirectory(dir=APP) as name, ExitStack() as opened:
        folder = Path(name)
        blobs = opened.enter_context(azurite.running(folder))
        children = opened.enter_context(Children(folder))
        stack = Stack(Place(folder), children, time.sleep)
        hubs = [word for hub in (SHORT_HUB, *map(hub_of, WATCHED)) for word in ("--hub", f"{hub}:{PARTITIONS}")]
        emulator = stack.start_emulator(*hubs, *groups(), "--retain", str(EVENTS))
        bench = Bench(folder, children, stack.connection, blobs, server)
        _throughput(bench, found)
        if server is None:
            _latencies(bench, found)
            _faults(bench, found)
        emulator.end()
        found.times = {kind: percentiles(stack.place.hub, fed) for kind, fed in found.fed.items()}
        if server is None and (run := read_files(bench, stack.place.hub)):
            found.runs[SPARK] = [run]
    if server is None:
        print("peers: the same on a T-SQL server is skipped, --store names none")
    yield from report(found, on_a_server=server is not None)


def _throughput(bench: Bench, found: Found) -> None:
    """Measure the fast consumers in turn, forwards and backwards, and each of the others once."""
    for hub, events in ((HUB, EVENTS), (SHORT_HUB, max(1, EVENTS // SHORT_SHARE))):
        bench.start_feed(hub, events, "full").wait_done(time.sleep)
    for number in range(ROUNDS):
        for kind in IN_TURN if number % 2 == 0 else IN_TURN[::-1]:
            _run(bench, found, kind, LONGEST)
    for kind in ONCE:
        if bench.server is None or kind != HOST:
            _run(bench, found, kind, SLOW if kind in ("a", "a20") else LONGEST)


def _run(bench: Bench, found: Found, kind: str, seconds: float) -> None:
    consumer = bench.consumer(kind, HUB)
    counted, of = consumer.folder / "calls", published(bench.record(HUB))
    child = bench.start(consumer, PEERS_CALLS=str(counted))
    looks = watch(child, consumer, of.rows, seconds)
    peak = peak_of_family(child.pid)
    child.end()
    events_per_row = of.events / of.rows
    run = measured(looks, events_per_row, peak, stored_by(consumer))
    found.runs.setdefault(kind, []).append(run)
    if bench.server is None and counted.exists():
        found.calls[kind] = int(counted.read_text(encoding="utf-8")) / max(1, looks[-1].rows) / events_per_row
    _tell(f"{NAMES[kind]}: {run.rate:,.0f} events/s, {run.cpu:.0f} us of CPU per event")


def _latencies(bench: Bench, found: Found) -> None:
    for kind in WATCHED:
        limit = found.middle(kind, "rate") or MOST_RATE
        found.fed[kind] = feed_slowly(bench, kind, max(10.0, min(MOST_RATE, limit / 2)))
        _tell(f"{NAMES[kind]}: fed at {found.fed[kind].rate:,.0f} events/s")


def _faults(bench: Bench, found: Found) -> None:
    """Put each consumer through the faults, some at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        trials = {kind: pool.submit(suffer, bench, kind, SHORT_HUB if kind == "a" else HUB, SEED) for kind in WATCHED}
        for kind, trial in trials.items():
            found.suffered[kind] = trial.result()
            _tell(f"{NAMES[kind]}: {found.suffered[kind]}")


def report(found: Found, on_a_server: bool) -> Iterator[Result]:
    """Yield the tables, and then ours against each peer."""
    yield Table("peers, on the same events", tuple(COLUMNS), tuple(_row(found, kind) for kind in found.runs))
    if found.suffered:
        rows = tuple((NAMES[kind], *_losses(one)) for kind, one in found.suffered.items())
        yield Table("peers, what each lost and doubled under the same faults", ("consumer", *LOSSES), rows)
    for peer, target in AGAINST:
        target = ON_A_SERVER.get(peer, target) if on_a_server else target
        yield _ratio(found, peer, target, "rate")
        yield _ratio(found, peer, target, "cpu")
    for kind in OURS:
        if kind in found.suffered:
            one = found.suffered[kind]
            wrong = one.kills.wrong + one.deliveries.wrong
            yield Figure(f"{NAMES[kind]}, rows and letters lost or doubled", wrong, "", "0", wrong == 0)


COLUMNS: dict[str, Callable[[Found, str], str | float | None]] = {
    "consumer": lambda found, kind: NAMES[kind],
    "events/s": lambda found, kind: found.middle(kind, "rate"),
    "CPU, µs per event": lambda found, kind: found.middle(kind, "cpu"),
    "fed at, events/s": lambda found, kind: found.fed[kind].rate if kind in found.fed else None,
    "p50, ms": lambda found, kind: (found.times.get(kind) or (None, None))[0],
    "p99, ms": lambda found, kind: (found.times.get(kind) or (None, None))[1],
    "peak, MB": lambda found, kind: found.middle(kind, "peak"),
    "database calls per event": lambda found, kind: found.calls.get(kind),
    "stored, bytes per event": lambda found, kind: found.middle(kind, "stored") or None,
}
LOSSES: dict[str, Callable[[Suffered], int | None]] = {
    "3 kills: rows lost": lambda one: one.kills.lost,
    "rows doubled": lambda one: one.kills.doubled,
    "lost deliveries: events": lambda one: one.lost_events,
    "rows lost": lambda one: one.deliveries.lost,
    "repeated deliveries: events": lambda one: one.repeated_events,
    "rows doubled again": lambda one: one.deliveries.doubled,
    "poison events": lambda one: one.poison,
    "bodies lost": lambda one: one.kills.letters_lost,
    "bodies doubled": lambda one: one.kills.letters_doubled,
}


def _row(found: Found, kind: str) -> tuple[str | float | None, ...]:
    return tuple(of(found, kind) for of in COLUMNS.values())


def _losses(one: Suffered) -> tuple[int | None, ...]:
    return tuple(of(one) for of in LOSSES.values())


def _ratio(found: Found, peer: str, target: float | None, name: str) -> Figure:
    """Return ours against a peer, by events a second or by the processor's time per event, and (d) in percent."""
    ours, theirs = found.middle(WORKER, name) or 0.0, found.middle(peer, name) or 0.0
    ratio = (ours / theirs if theirs else 0.0) if name == "rate" else (theirs / ours if ours else 0.0)
    value, unit = (100 * ratio, "%") if peer == "d" else (ratio, "x")
    by = "the clock" if name == "rate" else "CPU"
    note = f"{ours:,.0f} against {theirs:,.0f} {'events/s' if name == 'rate' else 'us per event'}"
    text = "" if target is None else f">= {target:g}"
    met = None if target is None else value >= target
    return Figure(f"ours against {LABELS[peer]}, by {by}", value, unit, text, met, note)


def _tell(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)

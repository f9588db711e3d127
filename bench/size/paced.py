"""The story at a steady pace: how long an event waits from the hub's stamp until others see its commit."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure
from bench.peers.latency import Fed, percentiles
from bench.peers.run import WORKER, Consumer
from bench.peers.watching import watch_commits
from bench.size.run import PATIENCE, Started, Story, start
from local.programs import APP
from local.stack.app_totals import count_accounted
from local.stack.processes import Children
from local.stack.stack import HUB, Place, Stack

PACE = 7_000  # events a second
SHARE = 98  # % of the pace that the workers must keep


def measure_paced(events: int, workers: int) -> Iterator[Figure]:
    """Measure the share of the pace that the workers keep, and the waits of the events after the first seconds."""
    with tempfile.TemporaryDirectory(dir=APP) as folder, Children(Path(folder)) as children:
        place = Place(Path(folder))
        started = start(
            Stack(place, children, time.sleep), children, Story(events, workers=workers, pace=PACE), retained=events
        )
        fed = _watched(place, started)
        for child in (*started.workers, started.emulator):
            child.end()
        yield from figures(fed, percentiles(place.hub, fed))


def figures(fed: Fed, waits: tuple[float, float] | None) -> Iterator[Figure]:
    """Return the figures of a run, from its commits and from the middle and the 99th percentile of its waits in ms.

    A run of less than the first seconds has no waits.
    """
    first, last = fed.commits[0], fed.commits[-1]
    events = sum(end - before for _, before, end, _ in fed.commits)
    share = 100 * (events - (first[2] - first[1])) / (last[3] - first[3]) / fed.rate
    note = f"{events:,} events, {fed.rate:,.0f} /s published"
    yield Figure("size, share of 7,000 events/s accounted for", share, "%", f">= {SHARE}", share >= SHARE, note)
    if waits is not None:
        middle, most = (ms / 1000 for ms in waits)
        yield Figure("size, from enqueued to committed at that pace, median", middle, "s", "", None)
        yield Figure("size, from enqueued to committed at that pace, p99", most, "s", "< 2", most < 2)


def _watched(place: Place, started: Started) -> Fed:
    """Watch the commits until every event is accounted for, or until too long after the publisher has ended."""
    ends_at, is_done = float("inf"), False

    def going_on() -> bool:
        nonlocal ends_at, is_done
        if started.publisher.running:
            return True
        if is_done or time.monotonic() > ends_at:
            return False
        ends_at = min(ends_at, time.monotonic() + PATIENCE)
        is_done = count_accounted(place.store) >= started.order.events
        return True  # once more when it is done: the last commits may not have been seen yet

    commits = list(watch_commits(Consumer(WORKER, HUB, place.folder, place.connection), going_on))
    started.publisher.wait_done(time.sleep)
    for worker in started.workers:
        worker.refuse_dead()
    return Fed(HUB, PACE, commits)

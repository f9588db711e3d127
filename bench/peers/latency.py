"""The time from enqueued to committed: the hub's stamp of an event, and the moment at which others see its commit."""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from bench.peers.run import Bench
from bench.peers.watching import Committed, has_read, watch_commits

WARM, LASTS = 5.0, 5.0  # seconds of the feed: while the partitions are opened, and measured
LATE, LONGEST = 2.0, 60.0  # seconds: after the feed at least, and in all at most
_ENQUEUED = "SELECT partition_id, sequence_number, enqueued_at FROM event WHERE hub = ?"


@dataclass(frozen=True, slots=True)
class Fed:
    """A consumer whose hub was fed at `rate` events a second, and the commits that were seen meanwhile."""

    hub: str
    rate: float
    commits: list[Committed]


def hub_of(kind: str) -> str:
    """Return the name of the hub that a feed fills for one consumer."""
    return f"paced-{kind}"


def feed_slowly(bench: Bench, kind: str, rate: float) -> Fed:
    """Feed a consumer at a rate, and watch its commits."""
    consumer = bench.consumer(kind, hub_of(kind))
    child = bench.start(consumer)
    feed = bench.start_feed(consumer.hub, int(rate * (WARM + LASTS)), f"{rate:.0f}")
    began, last = time.monotonic(), dict[str, int]()

    def going_on() -> bool:
        since = time.monotonic() - began
        if feed.running or since < WARM + LASTS + LATE:
            return True
        last.update(last or bench.ends(consumer.hub))  # once: nobody publishes any more
        return since < LONGEST and not has_read(consumer, last)

    commits = list(watch_commits(consumer, going_on))
    child.end()
    return Fed(consumer.hub, rate, commits)


def percentiles(database: Path, fed: Fed) -> tuple[float, float] | None:
    """Return p50 and p99 in ms, from the file of an emulator that has ended, or None when nothing was committed."""
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute(_ENQUEUED, (fed.hub,)).fetchall()
    enqueued = {(id, number): at / 1000 for id, number, at in found}
    if not enqueued:
        return None
    warm = min(enqueued.values()) + WARM
    taken = sorted(1000 * (at - enqueued[place]) for place, at in _first(fed.commits) if enqueued[place] > warm)
    if len(taken) < 2:
        return None
    cuts = quantiles(taken, n=100)
    return cuts[49], cuts[98]


def _first(commits: Iterable[Committed]) -> Iterator[tuple[tuple[str, int], float]]:
    """Yield each event with its first commit."""
    seen = set()
    for id, before, last, at in commits:
        for number in range(before + 1, last + 1):
            if (id, number) not in seen:
                seen.add((id, number))
                yield (id, number), at

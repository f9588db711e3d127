"""A drain at full speed: the reader's share while a publisher floods the hub, its lag, and the rest after the flood."""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from bench.figures import Figure
from bench.usage import READABLE, cpu_of
from local.event_hubs.lead import DEFAULT_LEAD
from local.feed.businesses import HOMES
from local.feed.feeding import LARGEST
from local.feed.record import published_copies
from local.recount.recount import recount
from local.stack.app_totals import count_accounted
from local.stack.processes import APP, Child, Children
from local.stack.stack import PARTITIONS, FeedOrder, Place, Stack

EVENTS = int(os.environ.get("BENCH_EVENTS", "300000"))
WARMING = max(1, EVENTS // 15)  # events that open every partition and fill the caches, before the clock starts
SENDERS = 10_000
LOOK_EVERY = 0.2  # seconds
EARLY, LATE = 0.1, 0.9  # of a drain without a publisher: its steady part
SHARE = 0.5  # a reader that is not starved has the better half of its speed
PAUSE = 5.0  # seconds without a newly accounted event


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the run: seconds of the clock, events accounted for, events published by the feed's newest line."""

    seconds: float
    accounted: int
    published: int


@dataclass(frozen=True, slots=True)
class Flood:
    """The looks at a flood, its end, the looks until all was accounted for, and the processor's time by process."""

    looks: list[Look]
    ended: Look
    cpu: dict[str, float]


class Drain:
    """The run: one story of homes in three parts (warming, flood, silence), with one record."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.emulator = stack.start_emulator("--retain", str(max(1_000, WARMING + 2 * EVENTS)))
        stack.create_store(HOMES.transform)
        self.store, self.record = stack.place.store, stack.place.folder / "record.db"
        self.published = self._parts = 0

    def start_host(self) -> Child:
        return self._stack.start_host(HOMES.transform)[0]

    def accounted(self) -> int:
        return count_accounted(self._stack.place.live)

    def start_feed(self, events: int) -> Child:
        """Start the next part of the story, at full speed; every home registers before its readings."""
        self._parts += 1
        more = ("--record", str(self.record), "--registered", *(["--append"] if self._parts > 1 else []))
        return self._stack.start_feed(FeedOrder(HOMES, SENDERS, str(events), "full", self._parts, more))

    def finish(self, feed: Child) -> None:
        """Wait for the end of a feed, and count its record."""
        feed.wait_done(self._stack.pause)
        self.published = published_copies(self.record).at_least

    def look(self, feed: Child | None, before: int = 0) -> Look:
        """Look at the run; with a feed, `before` is the number of events of the parts before it."""
        published = before + _progress(feed) if feed else self.published
        return Look(time.monotonic(), self.accounted(), published)

    def wait(self, host: Child, looks: list[Look]) -> list[Look]:
        """Look until every published event is accounted for."""
        looks = [*looks, self.look(None)]
        while looks[-1].accounted < self.published:
            host.refuse_dead()
            self.emulator.refuse_dead()
            self._stack.pause(LOOK_EVERY)
            looks.append(self.look(None))
            _tell(looks)
        return looks

    def flood(self, host: Child) -> Flood:
        """Publish while the host reads, and return when all is accounted for."""
        before, children = self.published, {"emulator": self.emulator, "host": host}
        began = {name: cpu_of(child.pid) for name, child in children.items()}
        feed = self.start_feed(EVENTS)
        looks: list[Look] = []
        while feed.running:
            host.refuse_dead()
            looks.append(self.look(feed, before))
            _tell(looks)
            self._stack.pause(LOOK_EVERY)
        self.finish(feed)
        ended = self.look(None)
        looks = self.wait(host, [*looks, ended])
        return Flood(looks, ended, {name: cpu_of(child.pid) - began[name] for name, child in children.items()})


def measure() -> Iterator[Figure]:
    """Measure a flood, then the drain of as many events without a publisher; recount both against the record."""
    if not READABLE:
        print("drain: skipped, this part reads the processor's time from /proc")
        return
    with tempfile.TemporaryDirectory(dir=APP) as folder, Children(Path(folder)) as children:
        drain = Drain(Stack(Place(Path(folder)), children, time.sleep))
        host = drain.start_host()
        drain.finish(drain.start_feed(WARMING))
        drain.wait(host, [])
        flood = drain.flood(host)
        host.end()
        began = time.monotonic()
        drain.finish(drain.start_feed(EVENTS))
        alone = EVENTS / (time.monotonic() - began)
        host = drain.start_host()
        silence = drain.wait(host, [])
        host.end()
        yield from figures(flood, silence, alone)
        yield from _lost_or_doubled(drain)


def figures(flood: Flood, silence: list[Look], alone: float) -> Iterator[Figure]:
    """Make the figures of a flood, of a drain without a publisher, and of the rate of a publisher without a reader."""
    looks, ended = flood.looks, flood.ended
    flooding = [look for look in looks if look.seconds <= ended.seconds]
    flooded = _rate(flooding)
    silent = _rate(_steady(silence))
    share = flooded / silent
    note = f"{flooded:,.0f} /s, and {silent:,.0f} /s when the publisher is silent"
    yield Figure("drain, accounted/s while publishing, as a share", share, "", f">= {SHARE}", share >= SHARE, note)
    lag = max(look.published - look.accounted for look in looks)
    bound = PARTITIONS * (DEFAULT_LEAD + LARGEST + _held_by_the_host())
    note = f"{lag:,} events, bound {bound:,}"
    yield Figure("drain, largest lag as a share of its bound", lag / bound, "", "<= 1", lag <= bound, note)
    pause = longest_pause(looks)
    yield Figure("drain, longest time without an accounted event", pause, "s", f"<= {PAUSE:g}", pause <= PAUSE)
    rest = looks[-1].seconds - ended.seconds
    note = f"{ended.published - ended.accounted:,} events"
    yield Figure("drain, time until drained after the last event", rest, "s", "", None, note)
    yield Figure("drain, published/s while the reader reads", _rate(flooding, "published"), "/s", "", None)
    yield Figure("drain, published/s without a reader", alone, "/s", "", None)
    for name, seconds in flood.cpu.items():
        yield Figure(f"drain, CPU of the {name} per event", 1e6 * seconds / EVENTS, "us", "", None)


def longest_pause(looks: list[Look]) -> float:
    """Return the longest time, in seconds, in which nothing was accounted for although something was published."""
    longest, moved = 0.0, looks[0]
    for before, look in pairwise(looks):
        if before.published <= before.accounted:
            moved = look
        longest = max(longest, look.seconds - moved.seconds)
        if look.accounted > before.accounted:
            moved = look
    return longest


def _lost_or_doubled(drain: Drain) -> Iterator[Figure]:
    found = recount(drain.store, drain.record)
    yield Figure(
        "drain, differences between the store and the record", len(found), "", "0", not found, "; ".join(found)
    )


def _rate(looks: list[Look], name: str = "accounted") -> float:
    """Return the rate from the last look before the first new event to the last look."""
    first = getattr(looks[0], name)
    begun = max((at for at, look in enumerate(looks) if getattr(look, name) == first), default=0)
    begin, end = looks[begun], looks[-1]
    return float((getattr(end, name) - first) / max(end.seconds - begin.seconds, 1e-9))


def _steady(looks: list[Look]) -> list[Look]:
    first, all_of_it = looks[0].accounted, looks[-1].accounted - looks[0].accounted
    steady = [look for look in looks if EARLY <= (look.accounted - first) / max(all_of_it, 1) <= LATE]
    return steady if steady and steady[-1].accounted > steady[0].accounted else looks


def _progress(feed: Child) -> int:
    """Return the number of published events in the newest whole line of a feed's output."""
    whole = feed.output.read_text(encoding="utf-8").splitlines(keepends=True)
    counted = [line for line in whole if line.startswith("{") and line.endswith("\n")]
    return int(json.loads(counted[-1])["published"]) if counted else 0


def _held_by_the_host() -> int:
    """Return the events of a partition that the host may hold: prefetched, asked for, read, waiting and delivered."""
    hubs = json.loads((APP / "host.json").read_text(encoding="utf-8"))["extensions"]["eventHubs"]
    return int(2 * hubs["prefetchCount"] + 3 * hubs["maxEventBatchSize"])


def _tell(looks: list[Look]) -> None:
    if len(looks) % int(2 / LOOK_EVERY) == 0:
        print(f"  {looks[-1].accounted:>9,} accounted, {looks[-1].published:>9,} published", file=sys.stderr)

"""The run of the story: the processes, from the first event to the last one that is accounted for."""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.size.looks import Look, look_at
from bench.size.publisher import RETAINED, Order
from local.feed.businesses import HOMES
from local.feed.record import published_copies
from local.stack.app_totals import Books, select
from local.stack.processes import Child, ChildFailed, Children, Command
from local.stack.stack import PARTITIONS, Stack, app_settings
from local.stack.store_totals import StoreBooks

LOOK_EVERY, TELL_EVERY = 1.0, 10.0  # seconds
PATIENCE = 60.0  # seconds without a newly accounted event
SHARING = 60.0  # seconds until the workers must have shared the partitions
_OWNERS = "SELECT COUNT(*) FROM event_hub_ownership WHERE owner_id <> '' GROUP BY owner_id"


@dataclass(frozen=True, slots=True)
class Story:
    """The size of a run: events, homes, workers, the shares of bad events and of those that come again, and the pace:
    events a second, or None for as fast as they are drained."""

    events: int
    homes: int = 100_000
    workers: int = 2
    bad: float = 0.002
    again: float = 0.001
    seed: int = 1
    pace: int | None = None


@dataclass(frozen=True, slots=True)
class Ran:
    """A run that has ended: its looks, the app's own books, and the files that are left."""

    looks: list[Look]
    books: Books
    logs: list[Path]
    order: Order


@dataclass(frozen=True, slots=True)
class Started:
    """The processes of a run, each at work."""

    emulator: Child
    workers: list[Child]
    publisher: Child
    settings: Mapping[str, str]
    order: Order


def run(stack: Stack, children: Children, story: Story) -> Ran:
    """Run the story until every published event is accounted for. Raises ChildFailed when no more of them are."""
    started = start(stack, children, story)
    named = {one.name: one for one in (started.emulator, started.publisher, *started.workers)}
    looks = _watch(stack, named, started.order)
    books = StoreBooks(started.settings)
    try:
        read = books.read(str(stack.place.store))
        return Ran(looks, read, [worker.output for worker in started.workers], started.order)
    finally:
        books.close()
        for worker in started.workers:
            worker.end()


def start(stack: Stack, children: Children, story: Story, retained: int = RETAINED) -> Started:
    """Start a hub that keeps so many events of a partition, workers that share its partitions, and the publisher."""
    emulator = stack.start_emulator("--retain", str(retained))
    stack.create_store(HOMES.transform)
    settings = {**app_settings(stack.connection, stack.place, HOMES.transform), "BATCH_LINES_PER_MINUTE": "60"}
    workers = [_worker(stack, children, number, settings, story) for number in range(1, story.workers + 1)]
    _wait_shared(stack, workers)
    order = _order(stack, story)
    publisher = children.start(Command("publisher", "bench.size.publisher", order.words()))
    return Started(emulator, workers, publisher, settings, order)


def _worker(stack: Stack, children: Children, number: int, settings: Mapping[str, str], story: Story) -> Child:
    worker = children.start(Command(f"worker-{number}", "bench.size.worker", [str(story.again)], settings))
    worker.wait_ready('"worker ready"', stack.pause)
    return worker


def _wait_shared(stack: Stack, workers: list[Child]) -> None:
    """Wait until each worker owns its part of the partitions."""
    deadline = time.monotonic() + SHARING
    while sorted(_owned(stack)) != sorted(PARTITIONS // len(workers) for _ in workers):
        for worker in workers:
            worker.refuse_dead()
        if time.monotonic() > deadline:
            raise ChildFailed(f"the workers own {_owned(stack)} of {PARTITIONS} partitions after {SHARING:g} s")
        stack.pause(0.2)


def _owned(stack: Stack) -> list[int]:
    return [count for (count,) in select(stack.place.store, _OWNERS)]


def _order(stack: Stack, story: Story) -> Order:
    folder = stack.place.folder
    return Order(
        stack.connection,
        story.events,
        story.homes,
        story.seed,
        story.bad,
        str(stack.place.store),
        str(folder / "record.db"),
        str(folder / "expected.json"),
        story.pace,
    )


def _watch(stack: Stack, named: Mapping[str, Child], order: Order) -> list[Look]:
    """Look until all is accounted for, and tell how far it is."""
    began = told_at = moved_at = time.monotonic()
    looks = [look_at(stack.place, named, 0.0)]
    while True:
        stack.pause(LOOK_EVERY)
        now = time.monotonic()
        looks.append(look_at(stack.place, named, now - began, looks[-1]))
        if looks[-1].accounted != looks[-2].accounted:
            moved_at = now
        if now - told_at >= TELL_EVERY:
            told_at = now
            print(f"  {_told(looks, order.events)}", file=sys.stderr, flush=True)
        if not named["publisher"].running and looks[-1].accounted >= published_copies(Path(order.record)).at_least:
            named["publisher"].wait_done(stack.pause)
            return looks
        _refuse_stuck(named, now - moved_at)


def _refuse_stuck(named: Mapping[str, Child], silence: float) -> None:
    for name, child in named.items():
        if name != "publisher" or child.exit_code():
            child.refuse_dead()
    if silence > PATIENCE:
        raise ChildFailed(f"no event was accounted for in {PATIENCE:g} s:\n{named['worker-1'].tail()}")


def _told(looks: list[Look], events: int) -> str:
    last, before = looks[-1], looks[max(0, len(looks) - 11)]
    rate = (last.accounted - before.accounted) / max(last.seconds - before.seconds, 1e-9)
    sizes = ", ".join(f"{name} {usage.resident >> 20} MB" for name, usage in sorted(last.usage.items()))
    store = f"store {last.files['store'] >> 20} MB, its log {last.files['log'] >> 20} MB"
    done = f"{last.seconds:5.0f} s {last.accounted:>11,} of {events:,}, {rate:,.0f} /s, lag {last.lag:.1f} s"
    return f"{done}, {sizes}, {store}"

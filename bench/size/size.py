"""The story at its size: an hour of 100,000 homes, drained as fast as the workers can, and recounted at the end,
then a minute of it at a steady pace."""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure, Result, Table
from bench.size.looks import Look
from bench.size.paced import measure_paced
from bench.size.recounted import recounted
from bench.size.run import Ran, Story, run
from bench.usage import READABLE
from local.demo.chaos import counted
from local.programs import APP
from local.stack.processes import Children
from local.stack.stack import Place, Stack

EVENTS = int(os.environ.get("BENCH_EVENTS", "300000"))  # an hour of the story has 20,000,000
WORKERS = int(os.environ.get("BENCH_WORKERS", "2"))
EVENT_BYTES = 260  # of the store, at most: for the check of the disk
SPARE = 2 << 30  # bytes of the disk that stay free
PACED = 420_000  # events of the run at a steady pace, at most: a minute
FIFTHS = 5
STEPS = 10  # rows of the table
FLAT = 1.15
DIFFERENCES = 10  # shown at most


class DiskTooSmall(Exception):
    """The disk has no room for the store of so many events."""


def measure() -> Iterator[Result]:
    """Measure the rate, the lag, the memory, the growth of the store and the processor's time, and recount."""
    if not READABLE:
        print("size: skipped, this part reads memory and CPU from /proc")
        return
    with tempfile.TemporaryDirectory(dir=APP) as folder:
        yield _disk(Path(folder))
        with Children(Path(folder)) as children:
            stack = Stack(Place(Path(folder)), children, time.sleep)
            ran = run(stack, children, Story(EVENTS, workers=WORKERS))
        yield _over_time(ran.looks)
        yield from figures(ran.looks)
        yield from _recounted(stack.place, ran)
    yield from measure_paced(min(EVENTS, PACED), WORKERS)


def figures(looks: list[Look]) -> Iterator[Figure]:
    """Return the figures of a run, from the first fifth of its events to its end."""
    fifths = at_fifths(looks)
    begin, end = fifths[0], fifths[-1]
    events = end.accounted - begin.accounted
    rate = events / (end.seconds - begin.seconds)
    note = f"{end.accounted:,} events in {end.seconds:,.0f} s, {_workers(end)} workers"
    yield Figure("size, events accounted for per second, after a fifth", rate, "1/s", ">= 7000", rate >= 7_000, note)
    yield from _lags(looks, begin)
    for name in ("worker", "emulator"):
        was, now = begin.together(name).resident, end.together(name).resident
        growth, sizes = now / was, f"{was >> 20} MB, then {now >> 20} MB"
        yield Figure(
            f"size, memory of the {name}s, against after a fifth", growth, "x", f"<= {FLAT}", growth <= FLAT, sizes
        )
    for name in ("worker", "emulator", "publisher"):
        yield Figure(f"size, CPU of the {name}s per event", _cpu(name, begin, end), "us", "", None)
    ratio = _cpu("worker", fifths[3], end) / _cpu("worker", begin, fifths[1])
    name = "size, CPU of the workers per event, last fifth against second"
    yield Figure(name, ratio, "x", f"<= {FLAT}", ratio <= FLAT)
    yield from _growth(fifths)


def _lags(looks: list[Look], begin: Look) -> Iterator[Figure]:
    lags = sorted(lag for look in looks if look.seconds >= begin.seconds for lag in look.lags)
    note = f"half of them below {lags[len(lags) // 2]:.2f} s; the publisher is a window ahead, so it is full"
    yield Figure("size, lag, 99 of 100 looks at a partition", lags[len(lags) * 99 // 100], "s", "", None, note)


def _growth(fifths: list[Look]) -> Iterator[Figure]:
    begin, end = fifths[0], fifths[-1]
    each, second, last = (_bytes(*ends) for ends in ((begin, end), (begin, fifths[1]), (fifths[3], end)))
    yield Figure("size, growth of the store per event", each, "B", "", None)
    ratio = last / second
    yield Figure("size, growth of the store, last fifth against second", ratio, "x", f"<= {FLAT}", ratio <= FLAT)
    yield Figure("size, the store's log at its end", end.files["log"] / 1e6, "MB", "", None)
    hub = end.files["hub"] / begin.files["hub"]
    sizes = f"{begin.files['hub'] >> 20} MB, then {end.files['hub'] >> 20} MB"
    yield Figure("size, files of the emulator, against after a fifth", hub, "x", f"<= {FLAT}", hub <= FLAT, sizes)


def at_fifths(looks: list[Look]) -> list[Look]:
    """Return the first looks with a fifth, two fifths … and all of the events, each after the one before."""
    total = looks[-1].accounted
    found = [next(look for look in looks if look.accounted >= part * total / FIFTHS) for part in range(1, FIFTHS)]
    return [*found, looks[-1]]


def _recounted(place: Place, ran: Ran) -> Iterator[Figure]:
    published, books = ran.order.events, ran.books
    differences = recounted(place.store, Path(ran.order.record), Path(ran.order.expected))
    if books.accounted != published:
        differences.append(f"books: {books.accounted} events accounted for, {published} published")
    if not books.balanced:
        differences.append("books: they are not balanced")
    for difference in differences[:DIFFERENCES]:
        print(f"  difference: {difference}", file=sys.stderr)
    note = f"{books.written:,} written, {books.filtered:,} filtered, {books.dead_lettered:,} letters"
    yield Figure("size, differences of the recount", len(differences), "", "0", not differences, note)
    again = 100 * counted(ran.logs)["redelivered"] / published
    yield Figure("size, events that came again and were dropped", again, "%", "> 0", again > 0)


def _over_time(looks: list[Look]) -> Table:
    total = looks[-1].accounted
    shown = [next(look for look in looks if look.accounted >= part * total / STEPS) for part in range(1, STEPS + 1)]
    columns = (
        "events",
        "s",
        "events/s",
        "lag, s",
        "workers, MB",
        "emulator, MB",
        "store, MB",
        "log of the store, MB",
        "store, bytes per event",
        "CPU of the workers, µs per event",
    )
    return Table("The story over time", columns, tuple(map(_row, [looks[0], *shown], shown)))


def _row(before: Look, look: Look) -> tuple[int | float | None, ...]:
    seconds = look.seconds - before.seconds
    return (
        look.accounted,
        look.seconds,
        (look.accounted - before.accounted) / seconds if seconds else None,
        look.lag,
        look.together("worker").resident / 1e6,
        look.together("emulator").resident / 1e6,
        look.files["store"] / 1e6,
        look.files["log"] / 1e6,
        look.files["store"] / look.accounted,
        _cpu("worker", before, look),
    )


def _cpu(name: str, begin: Look, end: Look) -> float:
    """Return microseconds of all processes of this name per event, between two looks."""
    events = end.accounted - begin.accounted
    return 1e6 * (end.together(name).cpu - begin.together(name).cpu) / events if events else 0.0


def _bytes(begin: Look, end: Look) -> float:
    return (end.files["store"] - begin.files["store"]) / max(1, end.accounted - begin.accounted)


def _workers(look: Look) -> int:
    return sum(name.startswith("worker") for name in look.usage)


def _disk(folder: Path) -> Figure:
    """Check that the disk has room. Raises DiskTooSmall."""
    needed, free = EVENTS * EVENT_BYTES + SPARE, shutil.disk_usage(folder).free
    if needed > free:
        raise DiskTooSmall(f"{EVENTS:,} events need up to {needed >> 30} GB, and {folder} has {free >> 30} GB")
    return Figure("size, disk that the run may need", needed / 1e9, "GB", "", None, f"{free / 1e9:.0f} GB are free")

"""The blows that hit a demo, and their moments: kills, and with chaos lost batches, cut connections, a locked store."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

from local.stack.consumers import Host
from local.stack.processes import Child
from local.stack.sql_server import Server
from local.stack.stack import Stack

BlowKind = Literal["kill", "skip", "cut", "lock"]
Strikes = Mapping[BlowKind, Callable[[], None]]

KILLS = 2  # the usual number in a chaos
SKIPPED = 2  # batches of each partition that the host loses at a blow
LOCKED = 7.0  # seconds: the store gives up after 5, so that running batches fail and are delivered again
DUPLICATES = 0.001  # the share of events that come twice, beside those that cut connections leave
LOCK_PATIENCE = 30.0  # seconds to wait for the lock of the store
LONGEST_DELAY = 0.4  # seconds: about as long as a few batches take
# The app looks early for gaps that no batch follows; an outage of the store reaches the host.
SETTINGS = {"WATCH_SCHEDULE": "*/2 * * * * *", "GAP_GRACE_SECONDS": "5", "STORE_PATIENCE_SECONDS": "1"}
# Where events are dangerous: letters that kill the process are retried soon, and the events of a home stay in order.
DANGEROUS = {**SETTINGS, "ORDER_POLICY": "hold_key", "TRANSFORM_DEADLINE_SECONDS": "30"}
UNDELIVERABLE = 5  # events that the trigger cannot deliver: one of each kind
REOPEN_AFTER = "2"  # seconds until a reader that stopped on such an event is opened again
LATER = 0.04  # the share of the events that a recreated hub gets
EARLY = 1.5  # seconds after the feed is ready: the first cut hits sends, and their answers are lost
_FAILURES = {
    "unbound": ("batch_unbound",),
    "stopped": ("reader_stopped", "listener_failed"),
    "dropped": ("events_dropped",),
}
_PARTS: tuple[tuple[BlowKind, float], ...] = (("skip", 0.3), ("lock", 0.5), ("cut", 0.6), ("skip", 0.75))


class Blow(NamedTuple):
    """A blow that is due `delay` seconds after `accounted` events are accounted for. The delay makes it hit a batch."""

    accounted: int
    delay: float
    kind: BlowKind


def blow_plan(events: int, kills: int, seed: int, *, chaos: bool) -> list[Blow]:
    """Return the blows in order: the kills, and with chaos the other blows, each in its own part of the run."""
    blows = _kill_plan(events, kills, seed)
    if chaos:
        chance = Random(f"chaos {seed}")
        blows.append(Blow(0, EARLY + LONGEST_DELAY * chance.random(), "cut"))
        for kind, fraction in _PARTS:
            due = int(events * (fraction + 0.1 * chance.random()))
            blows.append(Blow(due, LONGEST_DELAY * chance.random(), kind))
    return sorted(blows)


def _kill_plan(events: int, kills: int, seed: int) -> list[Blow]:
    """Place each kill in its own part of the run. The last of several comes while only letters are left to settle."""
    chance = Random(seed)
    running = kills if kills < 2 else kills - 1
    plan = []
    for part in range(running):
        fraction = 0.9 * (part + 0.1 + 0.9 * chance.random()) / running
        plan.append(Blow(int(events * fraction), LONGEST_DELAY * chance.random(), "kill"))
    if running < kills:
        plan.append(Blow(events, LONGEST_DELAY * chance.random(), "kill"))
    return plan


class Chaos:
    """Strike the host, its connections and the store. The host loses its first batches right away."""

    def __init__(self, stack: Stack, host: Host, emulator: Child) -> None:
        self._stack = stack
        self._host = host
        self._emulator = emulator
        self._skip(1)
        self.strikes: Strikes = {"kill": self._kill, "skip": self._skip, "cut": self._cut, "lock": self._lock}

    def _kill(self) -> None:
        """Kill the host, and have the next one lose a batch, as the real host does when a worker dies."""
        self._host.kill_one()
        self._skip(1)

    def _skip(self, batches: int = SKIPPED) -> None:
        lost = "batch" if batches == 1 else f"{batches} batches"
        print(f"skipping: the host loses the next {lost} of each partition", flush=True)
        self._host.skip(batches)

    def _cut(self) -> None:
        print("cutting every connection to the event hub", flush=True)
        self._emulator.cut_connections()

    def _lock(self) -> None:
        print(f"locking the store for {LOCKED:g} s", flush=True)
        live = self._stack.place.live
        with live.locked() if isinstance(live, Server) else _locked_file(live):
            self._stack.pause(LOCKED)


@contextmanager
def _locked_file(store: Path) -> Iterator[None]:
    with closing(sqlite3.connect(store, timeout=LOCK_PATIENCE, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def counted(logs: Iterable[Path]) -> Counter[str]:
    """Count the lines of the hosts' logs by action, and under `redelivered` the events that ingest dropped.

    A killed host may leave half of a line.
    """
    counts: Counter[str] = Counter()
    for line in (line for log in logs if log.exists() for line in log.read_text().splitlines()):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        counts[str(entry.get("action"))] += 1
        if entry.get("action") == "ingest":
            counts["redelivered"] += int(entry.get("redelivered", 0))
    return counts


def struck_figures(struck: Counter[BlowKind], counts: Counter[str]) -> dict[str, object]:
    """Return the blows for the result line: kills where there were some, and with chaos all other blows, and the deaths
    that a host like Azure's counted, and the ways in which its trigger failed."""
    figures: dict[str, object] = {}
    if struck["kill"]:
        figures["kills"] = struck["kill"]
    if struck["skip"]:
        skipped = counts["batch_skipped"]
        figures["chaos"] = {"skipped_batches": skipped, "cuts": struck["cut"], "locks": struck["lock"]}
    if deaths := counts["worker_died"]:
        figures["like_azure"] = {"worker_deaths": deaths, "host_exits": counts["host_recycled"]}
    failures = {name: sum(map(counts.__getitem__, of)) for name, of in _FAILURES.items()}
    if any(failures.values()):
        figures["undeliverable"] = failures
    return figures

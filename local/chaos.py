"""What befalls a demo on the way, and when: kills, and with chaos lost batches, cut connections and a locked store."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple

from local.consumers import Consumers, Host
from local.kills import LONGEST_DELAY, kill_plan
from local.processes import Child
from local.stack import Stack

Kind = Literal["kill", "skip", "cut", "lock"]
Strikes = Mapping[Kind, Callable[[], None]]

KILLS = 2  # of a chaos that names no other number
SKIPPED = 2  # batches of each partition that the host loses at a blow
LOCKED = 7.0  # seconds: the store gives up after 5, so that the batches in work fail and come again
DUPLICATES = 0.001  # of the events, beside those that cut connections leave
PATIENT = 30.0  # seconds that we wait ourselves for the store, before we lock it
# Gaps that no batch follows are looked for soon; an outage of the store reaches the host.
SETTINGS = {"GAP_CHECK_SCHEDULE": "*/2 * * * * *", "GAP_GRACE_SECONDS": "5", "STORE_PATIENCE_SECONDS": "1"}
EARLY = 1.5  # seconds after the feed was ready: the first cut hits sends, whose answers are lost
_PARTS: tuple[tuple[Kind, float], ...] = (("skip", 0.3), ("lock", 0.5), ("cut", 0.6), ("skip", 0.75))


class Blow(NamedTuple):
    """Due so many seconds after so many events are accounted for; the delay makes it hit a batch half-way."""

    accounted: int
    delay: float
    kind: Kind


def blow_plan(events: int, kills: int, seed: int, *, chaos: bool) -> list[Blow]:
    """In order: the kills, and with chaos the rest, each in its own part of the run."""
    blows = [Blow(*kill, "kill") for kill in kill_plan(events, kills, seed)]
    if chaos:
        chance = Random(f"chaos {seed}")
        blows.append(Blow(0, EARLY + LONGEST_DELAY * chance.random(), "cut"))
        for kind, fraction in _PARTS:
            due = int(events * (fraction + 0.1 * chance.random()))
            blows.append(Blow(due, LONGEST_DELAY * chance.random(), kind))
    return sorted(blows)


def kills_alone(consumers: Consumers) -> Strikes:
    """How blows are struck when there are only kills."""
    return {"kill": consumers.kill_one}


class Chaos:
    """Strikes the host, its connections and the store. From the beginning on the host loses its first batches."""

    def __init__(self, stack: Stack, host: Host, emulator: Child) -> None:
        self._stack = stack
        self._host = host
        self._emulator = emulator
        self._skip(1)
        self.strikes: Strikes = {"kill": self._kill, "skip": self._skip, "cut": self._cut, "lock": self._lock}

    def _kill(self) -> None:
        """A worker's death costs the real host the batch in work, which nobody sees: the next one is lost as well."""
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
        store = sqlite3.connect(self._stack.place.store, timeout=PATIENT, isolation_level=None)
        with closing(store):
            store.execute("BEGIN IMMEDIATE")
            self._stack.pause(LOCKED)
            store.execute("ROLLBACK")


def skipped_batches(logs: Iterable[Path]) -> int:
    """How many batches the hosts lost, as their logs say; a killed one may leave half a line."""
    return sum(_is_skip(line) for log in logs if log.exists() for line in log.read_text().splitlines())


def _is_skip(line: str) -> bool:
    try:
        return bool(json.loads(line).get("action") == "batch_skipped")
    except ValueError:
        return False


def struck_figures(struck: Counter[Kind], logs: Iterable[Path]) -> dict[str, object]:
    """What the result line says of the blows: kills where there were some, and with chaos all the rest."""
    figures: dict[str, object] = {}
    if struck["kill"]:
        figures["kills"] = struck["kill"]
    if struck["skip"]:
        figures["chaos"] = {"skipped_batches": skipped_batches(logs), "cuts": struck["cut"], "locks": struck["lock"]}
    return figures

"""Processes that die: after its death, nothing of a process reaches the store."""

import random
import threading
from collections.abc import Callable, Mapping
from typing import Any

from core.store.database import Database
from core.store.script import Named, Outcome, Script
from tests.fakes.store import Store


class Died(KeyboardInterrupt):
    """The process died: none of its handlers may act."""


class Process:
    """One process; its threads take turns by chance, at each call of the store and each event."""

    def __init__(self, chance: random.Random, risk: float = 0.0) -> None:
        self.is_dead = False
        self._chance = chance
        self._risk = risk  # of an innocent death at a step
        self._waiting: list[threading.Lock] = []
        self._done = _taken()

    def die(self) -> None:
        self.is_dead = True
        raise Died

    def step(self) -> None:
        """Let a different thread run; Died once the process is dead."""
        if self._waiting and not self.is_dead:
            own = _taken()
            self._waiting.append(own)
            self._next()
            own.acquire()
        if self.is_dead or self._chance.random() < self._risk:
            self.die()

    def run(self, actors: Mapping[str, Callable[[], None]]) -> bool:
        """Run all actors, one step of one at a time; return False when the process died."""
        faults: list[BaseException] = []

        def act(actor: Callable[[], None], own: threading.Lock) -> None:
            own.acquire()
            try:
                actor()
            except Died:
                pass
            except BaseException as fault:  # noqa: BLE001 - shown below
                faults.append(fault)
                self.is_dead = True
            self._next()

        for name, actor in actors.items():
            own = _taken()
            self._waiting.append(own)
            threading.Thread(target=act, args=(actor, own), name=name, daemon=True).start()
        self._next()
        self._done.acquire()
        if faults:
            raise faults[0]
        return not self.is_dead

    def _next(self) -> None:
        if self._waiting:
            self._waiting.pop(self._chance.randrange(len(self._waiting))).release()
        else:
            self._done.release()


def _taken() -> threading.Lock:
    """Return a lock that its thread waits for until a different thread releases it."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class MortalDatabase:
    """A database that a process reaches until it dies."""

    def __init__(self, database: Database, process: Process) -> None:
        self._database = database
        self._process = process

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        self._process.step()
        return self._database.ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self._process.step()
        outcome = self._database.run(script, rehearse)
        self._process.step()
        return outcome

    def close(self) -> None:
        """Keep the database for the next process."""


def mortal(store: Store, process: Process) -> Store:
    """Return the store of one mortal process."""
    return Store(MortalDatabase(store.database, process))

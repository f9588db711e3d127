"""The worlds that keep keys in order see bugs that break the order, planted between the store and its database."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from core.store.database import Database
from core.store.script import Named, Outcome, Script
from tests.fakes.memory_store import MemoryStore
from tests.fakes.store import Store
from tests.simulation.watch import WatchedStore
from tests.simulation.world import World


class Planted:
    """A database that leaves out a statement of every transaction, or makes held letters free or claimed after it."""

    def __init__(self, engine: MemoryStore, statement: str, becomes: str | None = None) -> None:
        self._engine, self._database, self._statement, self._becomes = engine, engine.database, statement, becomes

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        return self._database.ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        others = tuple(step for step in script.steps if step.statement != self._statement)
        if self._becomes is None:
            return self._database.run(replace(script, steps=others), rehearse)
        done = self._database.run(script, rehearse)
        if others != script.steps:
            update = f"UPDATE event_hub_dead_letter SET status = '{self._becomes}', due_at = failed_at WHERE rowid = "
            self._engine.sql(update + "(SELECT MAX(rowid) FROM event_hub_dead_letter WHERE status = 'held')")
        return done

    def close(self) -> None:
        self._database.close()


Plant = Callable[[MemoryStore], Database]
BUGS: dict[str, Plant] = {
    "letters that are never freed": lambda engine: Planted(engine, "free_letters"),
    "a replay that leaves the letters after it as they were": lambda engine: Planted(engine, "order_letters"),
    "two free letters of a key": lambda engine: Planted(engine, "free_letters", "waiting"),
    "a held letter that is claimed": lambda engine: Planted(engine, "claim_letters", "retrying"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_seen_by_a_world_that_keeps_keys_in_order(bug: str) -> None:
    tried = 0
    for seed in count():
        engine = WatchedStore()
        world = World(seed, engine, Store(BUGS[bug](engine)))
        if world.site.policy.order == "hold_key":
            tried += 1
            assert tried <= 40, "no world saw it"
            try:
                world.run()
            except AssertionError:
                return

"""A database under watch: at every commit, the events of a partition key go in order."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

from core.store.database import Database
from core.store.script import Named, OfRows, Outcome, Script, Step
from tests.fakes.memory_store import MemoryStore

Key = tuple[str, str]  # the partition and the key


class KeyOrderWatch:
    """Checks the letters after every transaction. `applied` are the numbers by key, in the order of their rows."""

    def __init__(self, engine: MemoryStore, database: Database) -> None:
        self._engine = engine
        self._database = database
        self.keys: dict[tuple[str, int], str] = {}  # of each event, as the world made it
        self.applied: dict[Key, list[int]] = defaultdict(list)
        self.most_held = 0

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        return self._database.ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        done = self._database.run(script, rehearse)
        if not rehearse:
            chains = self._chains()
            for key, chain in chains.items():
                assert_chain(key, chain)
            for step in script.steps:
                if isinstance(step.statement, OfRows) and step.statement.verb == "append":
                    self._note(step, chains)
        return done

    def close(self) -> None:
        self._database.close()

    def _chains(self) -> dict[Key, list[tuple[int, str, int | None]]]:
        found = self._engine.sql(
            "SELECT partition_id, sequence_number, status, held_behind FROM event_hub_dead_letter"
            " WHERE status IN ('waiting', 'retrying', 'held', 'exhausted') ORDER BY partition_id, sequence_number"
        )
        chains: dict[Key, list[tuple[int, str, int | None]]] = defaultdict(list)
        held = 0
        for place, number, status, behind in found:
            held += status == "held"
            key = self.keys.get((place, number))
            assert key is not None or status != "held", (place, number)
            if key is not None:
                chains[place, key].append((number, status, behind))
        self.most_held = max(self.most_held, held)
        return chains

    def _note(self, step: Step, chains: dict[Key, list[tuple[int, str, int | None]]]) -> None:
        place = step.values["partition_id"]
        for number, _, _ in step.many or ():
            key = self.keys.get((place, number))
            if key is not None:
                earlier = [letter for letter in chains.get((place, key), ()) if letter[0] < number]
                assert not earlier, f"{place}/{number} of key {key} was applied, but {earlier} are open"
                self.applied[place, key].append(number)


def assert_chain(key: Key, chain: list[tuple[int, str, int | None]]) -> None:
    """Check that every open letter of a key except the first is held after the one before it."""
    assert chain[0][1] != "held", (key, chain)
    for (before, _, _), (_, status, behind) in pairwise(chain):
        assert (status, behind) == ("held", before), (key, chain)

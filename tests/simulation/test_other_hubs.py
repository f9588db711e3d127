"""Replays, dry runs and retries while the hub is swapped, emptied and given back: no task takes its absence for a loss.

Retention takes events too. Only those may be gone, whatever hub was there between.
"""

import threading
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.ingest.incarnation import HubVerification, VerifiedHub
from core.ingest.ingest import Means, ingest_batch
from core.letters.keeper import Keeper
from core.letters.plan import GONE
from core.letters.retry import claim_due, retry_chunk
from core.model.letters import LetterPolicy
from core.replay.run import ReplayKind
from tests.fakes.builders import EPOCH, STREAM, batch, event, partition
from tests.fakes.memory_store import MemoryStore
from tests.simulation.replay_world import ReplayWorld
from tests.simulation.seeds import seeds


class OtherHubs(ReplayWorld):
    """A world of replays whose hub is away at times; letters have no bodies, so that every retry reads the hub."""

    def __init__(self, seed: int, engine: MemoryStore) -> None:
        super().__init__(seed, engine)
        self.engine = engine
        self.policy = LetterPolicy(keep_bodies=False)
        self.aside: dict[str, Any] | None = None
        self.swaps = 0
        self.may_swap = True
        self.record.adopt_hub(self.record.read_incarnation(STREAM), self.hub.made_at)  # as the first batch does
        verification = HubVerification(self.hub, self.clock.monotonic, threading.RLock())
        self.verified = VerifiedHub(self.hub, verification, self.record)

    def means(self, store: Any) -> ReplayKind:
        return replace(super().means(store), hub=self.verified, letters=self.policy)

    def _acts(self) -> list[Any]:
        return [*super()._acts(), self._swap, self._swap, self._retry]

    def _swap(self) -> None:
        """Put a different or an emptied hub in the place of the right one, or give the right one back."""
        self.clock.advance(1.0)
        if self.aside is not None:
            self._give_back()
            return
        if not self.may_swap:
            return
        self.swaps += 1
        self.aside = {name: deepcopy(vars(self.hub)[name]) for name in ("held", "last", "last_at", "made_at")}
        if self.chance.random() < 0.3:
            self.hub.recreate_hub(self.hub.made_at)
            return
        self.hub.recreate_hub(EPOCH + timedelta(seconds=self.swaps))
        for id in self.hub.held:
            numbers = range(self.chance.choice([0, 5]), self.chance.choice([5, 90]))
            self.hub.publish(id, [event(number, "reading other") for number in numbers])

    def _give_back(self) -> None:
        if self.aside is not None:
            vars(self.hub).update(self.aside)
            self.aside = None

    def _expire(self) -> None:
        if self.aside is None:
            super()._expire()

    def _deliver(self, id: str) -> None:
        log, committed = self.logs[id], self._committed(id)
        if given := log[committed : committed + self.chance.randint(1, 12)]:
            means = Means(self._troubled(), self.transform, self._own, letters=self.policy)
            ingest_batch(batch(given, partition(id)), means)

    def _retry(self) -> None:
        keeper = Keeper(STREAM, self._troubled(), self.transform, self.verified.find_event, self._own, self.policy)
        for chunk in claim_due(keeper):
            self.retried += retry_chunk(chunk, keeper, "a retry").resolved
        self.assert_only_retention_took_events()

    def _come_to_rest(self) -> None:
        self._give_back()
        self.may_swap = False
        super()._come_to_rest()

    def assert_only_retention_took_events(self) -> None:
        lost = [(one.partition_id, one.sequence_number) for one in self.engine.letters() if one.settled_why == GONE]
        lost += [
            (part.range.partition_id, span.last)
            for job in self.record.read_replays(STREAM, 100, None)
            for part in job.partitions
            for span in part.report.gone_ranges
        ]
        assert [place for place in lost if place[1] >= self.expired[place[0]]] == []


@pytest.mark.parametrize("seed", seeds(range(100), 15), ids="seed{}".format)
def test_nothing_is_gone_but_what_retention_took_and_every_task_ends(seed: int) -> None:
    world = OtherHubs(seed, MemoryStore())
    world.run()
    world.assert_only_retention_took_events()
    assert {job.task.status for job in world.record.read_replays(STREAM, 100, None)} <= {"done", "cancelled"}
    assert world.last is not None
    final = world.record.find_replay(world.last)
    assert final is not None
    assert final.counts.events + final.counts.gone == sum(map(len, world.logs.values()))


def test_the_hub_was_away_in_most_worlds() -> None:
    worlds = [OtherHubs(seed, MemoryStore()) for seed in range(5)]
    for world in worlds:
        world.run()
    assert sum(world.swaps > 0 for world in worlds) >= 4

"""Hubs that are recreated or failed over at any moment, with batches in hand, several processes and an operator.

Each event says in its body in which life of the hub it was published. Whatever happens, a stream holds rows of one life
only, and once the last incarnation is open, all its events are accounted for.
"""

import random
import threading
from collections import defaultdict
from contextlib import suppress
from datetime import timedelta

import pytest

from core.errors import HubledgerError, InfrastructureFault
from core.incarnations.hub_check import HubVerification
from core.incarnations.next_incarnation import IncarnationMeans, IncarnationOrder, Incarnations, next_incarnation
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.ingest.stalled_partitions import SilenceCheck
from core.model.events import Event
from core.settle.partition_store import Partitions
from examples.home_security.transform import SensorReading
from tests.fakes.builders import STREAM, FakeClock, batch, event, partition, stamps
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN
from tests.simulation.seeds import seeds

STEPS, PROCESSES, PARTITIONS = 60, 2, ("0", "1")


class Process:
    """A process with a memory and a verification of its own; batches that it could not commit stay in its hands."""

    def __init__(self, world: "World", seed: int) -> None:
        self.store = world.base.remembering(timedelta(seconds=60), world.clock.monotonic)
        verified = HubVerification(world.hub, world.clock.monotonic, threading.RLock())
        means = Ingestion(self.store, PLAIN, stamps(seed, world.clock), GapReading(world.hub), incarnations=verified)
        fresh = Ingestion(
            world.base, PLAIN, stamps(seed + 1, world.clock), GapReading(world.hub), incarnations=verified
        )
        self.means, self.silence = means, SilenceCheck(fresh, timedelta(seconds=60))
        self.in_hand: dict[str, list[Event]] = {}


class World:
    """A hub with a life number, a store, and the processes between them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock, self.life, self.made = FakeClock(), 1, 0
        self.base = MemoryStore(now=self.clock.now)
        self.hub = MemoryHub({id: [] for id in PARTITIONS}, fails=lambda: self.chance.random() < 0.02)
        self.processes = [Process(self, 10 * at) for at in range(PROCESSES)]

    def run(self) -> None:
        for _ in range(STEPS):
            self.clock.advance(self.chance.choice([0.2, 0.2, 2.0, 70.0]))
            self.step()
        self.hub.fails = lambda: False
        self.settle()

    def step(self) -> None:
        act = self.chance.choice([self.publish] * 3 + [self.deliver] * 6 + [self.look, self.recreate, self.open_next])
        if self.chance.random() < 0.05:
            self.processes[self.chance.randrange(PROCESSES)] = self.new_process()
        with suppress(HubledgerError):  # the host tries again, and the operator looks again
            act()

    def new_process(self) -> Process:
        self.made += 10
        return Process(self, 1_000 + self.made)

    def publish(self) -> None:
        id = self.chance.choice(PARTITIONS)
        first = self.hub.last[id] + 1
        given = range(first, first + self.chance.randint(1, 12))
        body = f"reading life-{self.life}"
        self.hub.publish(id, [event(number, body, at=self.clock.now()) for number in given])

    def deliver(self) -> None:
        """Hand over what a process has in its hands, or the next events at its offset, which may not fit the hub."""
        process, id = self.chance.choice(self.processes), self.chance.choice(PARTITIONS)
        if id not in process.in_hand:
            state = self.base.read_partition(partition(id))
            reached = -1 if state.checkpoint is None else state.checkpoint.sequence_number
            log = [self.hub.held[id][number] for number in sorted(self.hub.held[id]) if number > reached - 2]
            if not log:
                return
            process.in_hand[id] = log[self.chance.choice([0, 0, 3]) :][:8] or log[:8]
        ingest_batch(batch(process.in_hand[id], partition(id)), process.means)
        del process.in_hand[id]

    def look(self) -> None:
        list(self.chance.choice(self.processes).silence.run("timer"))

    def recreate(self) -> None:
        """Recreate the hub, which takes a moment, and fill it at once, often beyond the old numbers."""
        self.clock.advance(0.2)
        self.life += 1
        self.hub.recreate_hub(self.clock.now())
        for _ in range(self.chance.choice([0, 2, 12])):
            self.publish()

    def open_next(self) -> None:
        found = self.base.read_incarnation(STREAM)
        order = IncarnationOrder("ada", "recreated", found.number, self.hub.made_at, is_dry_run=False)
        store = Incarnations(self.base.database, Partitions(self.base.database))
        next_incarnation(order, IncarnationMeans(STREAM, store, self.hub, stamps(5, self.clock)))

    def settle(self) -> None:
        """Open the incarnation of the present hub, and check until everything is committed."""
        for process in self.processes:
            process.in_hand.clear()
        try:
            self.open_next()
        except InfrastructureFault:
            raise
        except HubledgerError:
            pass  # the newest incarnation is of this hub
        for _ in range(3):
            self.clock.advance(70)
            self.look()

    def lives(self) -> dict[int, set[str]]:
        """Return the lives of the hub of which each stream holds rows."""
        found = defaultdict(set)
        for row in self.base.rows(SensorReading):
            found[row.stream_id].add(row.row.home_id)  # type: ignore[attr-defined]
        return found


@pytest.mark.parametrize("seed", seeds(range(200), 30), ids="seed{}".format)
def test_no_stream_ever_holds_rows_of_two_lives_of_the_hub(seed: int) -> None:
    world = World(seed)
    world.run()
    assert {stream: lives for stream, lives in world.lives().items() if len(lives) > 1} == {}
    newest = world.base.read_incarnation(STREAM)
    assert newest.hub_created_at == world.hub.made_at
    books = {one.partition_id: (one.checkpoint, one.absent, one.balanced) for one in world.base.read_books()}
    assert books == {id: (last, 0, True) for id, last in world.hub.last.items() if last >= 0}

"""A small world that a seed decides: partitions, owners that take them from each other, and everything that fails.

The host skips batches, the hub's retention cuts what was not read yet, and the hub reader is out of reach at times.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from core.errors import InfrastructureFault
from core.ingest.gaps import Healing
from core.ingest.ingest import Means, ingest_batch
from core.ingest.silence import SilenceCheck
from core.model.commits import BatchCommit
from core.model.events import Event
from core.store.database import Waiting
from tests.fakes.builders import FakeClock, batch, event, partition, stamps
from tests.fakes.faulty_database import Fault, FaultyStore, Killed
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store

OWNERS = 2
STEPS = 60
VERBS = [
    "reading {}",
    "reading {}",
    "double {}",
    "look {}",
    "look {}",
    "home {} 0",
    "home {} 1",
    "quiet",
    "poison",
    "bug",
]
REFUSED = "huge {}"  # by every database


GRACE = timedelta(seconds=60)


def handed_over(log: list[Event], committed: int, skips: float, chance: random.Random) -> list[Event]:
    """A batch as the host hands it over when so many events are committed: redelivered, next, or behind a gap."""
    first = chance.choice([committed, committed, chance.randint(0, committed)])
    if chance.random() < skips:
        first = committed + chance.randint(1, 15)
    given = log[first : first + chance.randint(1, 12)]
    if chance.random() < skips / 5:
        given = [each for each in given if chance.random() < 0.7]
    return given


@dataclass
class Owner:
    """One process: what it remembers is gone when it dies."""

    means: Means
    check: SilenceCheck


class World:
    """Steps through deliveries until every number is committed; `logs` is what must be accounted for.

    `lost` are the numbers that the hub lost before they were committed: only these may be absent.
    """

    def __init__(self, seed: int, store: Store) -> None:
        self.chance = random.Random(seed)
        self.clock = FakeClock()
        logs = {str(id): self._log(id) for id in range(self.chance.randint(1, 3))}
        self._store = store
        self._trouble = self.chance.choice([0.0, 0.1, 0.3, 0.6])  # how much fails in this world
        self._outage = 0  # calls that fail before the database is back
        self._rivals = 0  # an owner that interrupts another is not interrupted itself
        self._skips = self.chance.choice([0.0, 0.1, 0.5])  # how many batches the host loses in this world
        self._cuts = self.chance.choice([0.0, 0.1, 0.3])
        self.lost: dict[str, set[int]] = {id: set() for id in logs}
        self.hub = MemoryHub(logs, fails=lambda: self.chance.random() < self._trouble / 10)
        self.begins = {id: self._cut_before(id, log) for id, log in logs.items()}
        self.logs = {id: log[self.begins[id] :] for id, log in logs.items()}
        self._owners = [self._new_owner() for _ in range(OWNERS)]

    def run(self) -> None:
        """Everything fails for some steps, and then nothing does until all is committed."""
        for _ in range(STEPS):
            self.clock.advance(self.chance.choice([0.0, 1.0, 45.0]))
            self._step(self.chance.choice(list(self.logs)), self.chance.randrange(OWNERS))
        self._trouble = self._skips = self._cuts = 0.0
        for partition_id, log in self.logs.items():
            while self._committed(partition_id) < self.begins[partition_id] + len(log):
                self.clock.advance(45.0)
                self._step(partition_id, self.chance.randrange(OWNERS))

    def _cut_before(self, partition_id: str, log: list[Event]) -> int:
        """How many events retention had cut before anybody looked."""
        cut = self.chance.choice([0, 0, self.chance.randrange(len(log))])
        self.hub.expire_before(partition_id, cut)
        return cut

    def _step(self, partition_id: str, number: int) -> None:
        if self.chance.random() < self._cuts:
            self._cut(partition_id)
        try:
            if self.chance.random() < 0.2:
                list(self._owners[number].check.run("timer"))
            else:
                self._deliver(partition_id, number)
        except InfrastructureFault:
            pass  # the host will come again
        except Killed:
            self._owners[number] = self._new_owner()

    def _cut(self, partition_id: str) -> None:
        """Retention moves on, once it is settled where the partition begins."""
        state = self._store.read_partition(partition(partition_id))
        if state.checkpoint is None and state.anchor is None:
            return
        held = sorted(self.hub.held[partition_id])
        if held:
            cut = self.chance.choice(held)
            self.lost[partition_id].update(one for one in held if self._committed(partition_id) <= one < cut)
            self.hub.expire_before(partition_id, cut)

    def _log(self, id: int) -> list[Event]:
        homes = [f"home-{id}-{number}" for number in range(self.chance.randint(1, 3))]
        refused = self.chance.choice([0.0, 0.05, 0.5, 1.0])  # how many of this partition's events no database takes
        verbs = [
            REFUSED if self.chance.random() < refused else self.chance.choice(VERBS)
            for _ in range(self.chance.randint(1, 60))
        ]
        return [event(number, verb.format(self.chance.choice(homes))) for number, verb in enumerate(verbs)]

    def _new_owner(self) -> Owner:
        waiting = Waiting(self.clock.monotonic, self.clock.sleep, self.chance.random)
        faulty = FaultyStore(self._store, on_commit=self._commits(), on_read=self._reads(), rival=self._interrupt)
        patient = faulty.patient(timedelta(seconds=1), waiting)
        store = patient.remembering(timedelta(seconds=60), self.clock.monotonic)
        own, healing = stamps(self.chance.getrandbits(64), self.clock), Healing(self.hub)
        return Owner(Means(store, PLAIN, own, healing), SilenceCheck(Means(patient, PLAIN, own, healing), GRACE))

    def _deliver(self, partition_id: str, number: int) -> None:
        """The host hands a batch to an owner, from anywhere up to the first event that is not committed, or beyond."""
        log, place = self.logs[partition_id], partition(partition_id)
        committed = self._committed(partition_id) - self.begins[partition_id]
        given = handed_over(log, committed, self._skips, self.chance)
        if given:
            means = self._owners[number].means
            ingest_batch(batch(given, place), Means(means.store, PLAIN, means.clock, means.healing))

    def _committed(self, partition_id: str) -> int:
        checkpoint = self._store.read_partition(partition(partition_id)).checkpoint
        return self.begins[partition_id] if checkpoint is None else checkpoint.sequence_number + 1

    def _interrupt(self, _: Store, commit: BatchCommit) -> None:
        """Another owner, which may hold the partition now, is handed a batch before this commit goes through."""
        if self._rivals == 0:
            self._rivals += 1
            self._step(commit.partition.partition_id, self.chance.randrange(OWNERS))
            self._rivals -= 1

    def _commits(self) -> Iterator[Fault | None]:
        kinds = [Fault.UNANSWERED, Fault.LOST, Fault.RIVAL, Fault.RIVAL, Fault.KILLED, Fault.KILLED_AFTER]
        while True:
            yield self._outage_or(self.chance.choice(kinds))

    def _reads(self) -> Iterator[Fault | None]:
        while True:
            yield self._outage_or(self.chance.choice([None, Fault.NOT_REACHED, Fault.KILLED]))

    def _outage_or(self, fault: Fault | None) -> Fault | None:
        if self._outage:
            self._outage -= 1
            return Fault.NOT_REACHED
        if self.chance.random() < self._trouble / 10:
            self._outage = self.chance.randint(1, 30)
        return fault if self.chance.random() < self._trouble else None

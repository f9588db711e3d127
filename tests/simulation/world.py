"""A small world that a seed decides: partitions, owners that take them from each other, and everything that fails."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from core.commits import BatchCommit
from core.errors import InfrastructureFault
from core.events import Event
from core.ingest import Stamps, ingest_batch
from core.store import AppStore
from core.store.patient import PatientStore, Waiting
from core.store.remembered import RememberingStore
from tests.fakes.builders import FakeClock, batch, event, partition, stamps
from tests.fakes.faulty_store import Fault, FaultyStore, Killed
from tests.fakes.plain_transform import PLAIN

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


@dataclass
class Owner:
    """One process: what it remembers is gone when it dies."""

    store: AppStore
    stamps: Stamps


class World:
    """Steps through deliveries until every log is committed; `logs` is what must be accounted for."""

    def __init__(self, seed: int, store: AppStore) -> None:
        self.chance = random.Random(seed)
        self.clock = FakeClock()
        self.logs = {str(id): self._log(id) for id in range(self.chance.randint(1, 3))}
        self._store = store
        self._trouble = self.chance.choice([0.0, 0.1, 0.3, 0.6])  # how much fails in this world
        self._outage = 0  # calls that fail before the database is back
        self._rivals = 0  # an owner that interrupts another is not interrupted itself
        self._owners = [self._new_owner() for _ in range(OWNERS)]

    def run(self) -> None:
        """Everything fails for some steps, and then nothing does until all is committed."""
        for _ in range(STEPS):
            self.clock.advance(self.chance.choice([0.0, 1.0, 45.0]))
            self._deliver(self.chance.choice(list(self.logs)), self.chance.randrange(OWNERS))
        self._trouble = 0.0
        for partition_id, log in self.logs.items():
            while self._committed(partition_id) < len(log):
                self._deliver(partition_id, self.chance.randrange(OWNERS))

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
        patient = PatientStore(faulty, timedelta(seconds=1), waiting)
        return Owner(
            RememberingStore(patient, timedelta(seconds=60), self.clock.monotonic),
            stamps(self.chance.getrandbits(64), self.clock),
        )

    def _deliver(self, partition_id: str, number: int) -> None:
        """The host hands a batch to an owner, from anywhere up to the first event that is not committed."""
        log, place = self.logs[partition_id], partition(partition_id)
        committed = self._committed(partition_id)
        first = self.chance.choice([committed, committed, self.chance.randint(0, committed)])
        given = log[first : first + self.chance.randint(1, 12)]
        if not given:
            return
        try:
            ingest_batch(batch(given, place), self._owners[number].store, PLAIN, self._owners[number].stamps)
        except InfrastructureFault:
            pass  # the host will hand it over again
        except Killed:
            self._owners[number] = self._new_owner()

    def _committed(self, partition_id: str) -> int:
        checkpoint = self._store.read_partition(partition(partition_id)).checkpoint
        return 0 if checkpoint is None else checkpoint.sequence_number + 1

    def _interrupt(self, _: AppStore, commit: BatchCommit) -> None:
        """Another owner, which may hold the partition now, is handed a batch before this commit goes through."""
        if self._rivals == 0:
            self._rivals += 1
            self._deliver(commit.partition.partition_id, self.chance.randrange(OWNERS))
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

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, IngestReport, ingest_batch
from core.model.commits import PartitionStop
from core.model.events import Event
from core.model.letters import LetterPolicy
from core.model.policies import Fuse
from tests.fakes.builders import FakeClock, batch, event, partition, stamps
from tests.fakes.faulty_database import Fault, FaultyStore
from tests.fakes.kept import assert_equals_one_pass
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import MemoryStore

FUSE = Fuse(share=0.5, floor=10, patience=3)
HOLDING = LetterPolicy(order="hold_key")
QUIET = replace(PLAIN, rows_of=lambda event, references: ())


class World:
    """A hub that holds a log, a store, and the means of an owner."""

    def __init__(self, log: Iterable[Event] = (), ids: Iterable[str] = ("0",), **means: Any) -> None:
        self.store, self.clock, self.log = MemoryStore(), FakeClock(), tuple(log)
        self.hub = MemoryHub(dict.fromkeys(ids, self.log))
        self.means = Ingestion(self.store, PLAIN, stamps(1, self.clock), GapReading(self.hub), **means)

    def take(self, *given: Event, of: str = "0", retries: int = 0, **changed: Any) -> IngestReport:
        return ingest_batch(replace(batch(given, partition(of)), retries=retries), replace(self.means, **changed))

    def faulty(self, *faults: Fault | None, **other: Any) -> FaultyStore:
        return FaultyStore(self.store, on_commit=faults, **other)

    def deliver(self, first: int, last: int, **changed: Any) -> IngestReport:
        return self.take(*(one for one in self.log if first <= one.sequence_number <= last), **changed)

    def ranges(self, id: str = "0") -> list[tuple[int, int, int]]:
        return [(kept.first, kept.last, kept.absent) for kept in self.store.ledger() if kept.partition_id == id]

    def gaps(self) -> list[tuple[int, int, str]]:
        return [(kept.first, kept.last, kept.status) for kept in self.store.gaps()]

    @property
    def stops(self) -> tuple[PartitionStop, ...]:
        return self.store.read_partition(partition()).stops

    @property
    def next_number(self) -> int:
        return self.store.read_partition(partition()).next_number

    def assert_whole(self, upto: int, *absent: int) -> None:
        log = [each for each in self.log[: upto + 1] if each.sequence_number not in absent]
        assert_equals_one_pass(self.store, {"0": log}, absent={"0": set(absent)})
        assert [books.balanced for books in self.store.read_ledgers()] == [True]
        assert [one for one in self.gaps() if one[2] == "open"] == []


@pytest.fixture
def world() -> World:
    return World()


def keyed(first: int, last: int, body: str = "reading a", key: str | None = "k") -> list[Event]:
    return [event(number, body, key=key) for number in range(first, last + 1)]

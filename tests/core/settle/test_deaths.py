import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import Event, EventBatch, PartitionId
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.settle.attempts import ALONE, StoredJournal
from core.settle.settle import EventKilled
from core.store.database import Database
from core.store.script import Named, Outcome, Script
from examples.home_security.transform import SensorReading
from tests.fakes.builders import STREAM, events, reading, stamps
from tests.fakes.faulty_database import OverDatabase
from tests.fakes.store import MemoryStore, Store
from tests.simulation.seeds import seeds


class Died(KeyboardInterrupt):
    """The process died: none of its handlers may act."""


class Process:
    """One process. Its threads take turns by chance, at each call of the store and each event."""

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
        """Let a different thread run. Raises Died once the process is dead."""
        if self._waiting and not self.is_dead:
            own = _taken()
            self._waiting.append(own)
            self._next()
            own.acquire()
        if self.is_dead or self._chance.random() < self._risk:
            self.die()

    def run(self, actors: Mapping[str, Callable[[], None]]) -> bool:
        """Run all actors, one step of one at a time. Return False when the process died."""
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
    lock = threading.Lock()
    lock.acquire()
    return lock


class MortalDatabase(OverDatabase):
    """A database that a process reaches until it dies. It stays open for the next process."""

    def __init__(self, database: Database, process: Process) -> None:
        super().__init__(database)
        self._process = process

    def ask(self, statement: Named, **values: Any) -> list[tuple[Any, ...]]:
        self._process.step()
        return super().ask(statement, **values)

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        self._process.step()
        outcome = super().run(script, rehearse)
        self._process.step()
        return outcome


MOST_DEATHS = 2  # by any number of killers in half an hour: the batch of the first one may leave no mark


@dataclass
class Life:
    """Partitions of one stream, and process after process that ingests them and dies of their killers.

    By chance, a process or its child is killed from outside. Nothing on the machine outlives a process.
    """

    killers: dict[str, frozenset[int]]
    count: int
    chance: random.Random
    sizes: tuple[int, int]
    risk: float = 0.0
    refused: frozenset[int] = frozenset()  # their rows are refused by the database
    parents: frozenset[int] = frozenset()  # killers that also end the process whose child tries them
    unlucky: set[int] = field(default_factory=set)  # innocent events that were alone in hand at a death
    store: MemoryStore = field(default_factory=MemoryStore)
    deaths: int = 0  # of processes, by killers
    innocent: int = 0

    def live(self, most: int) -> None:
        """Start processes until all events are accounted for. Fail after too many deaths by killers."""
        while not self._process():
            assert self.deaths <= most, f"{self.deaths} deaths and still not through"
        assert self.deaths <= most
        self._assert_accounted()

    def _process(self) -> bool:
        process = Process(self.chance, self.risk)
        before = self.deaths
        store = Store(MortalDatabase(self.store.database, process))
        own = stamps(1 + 1_000 * self.innocent + self.deaths)
        journal = StoredJournal(store, own, partial(self._in_child, process))

        def actor(place: str) -> None:
            def transform(event: Event, references: References) -> tuple[SensorReading, ...]:
                process.step()
                if event.sequence_number in self.killers[place]:
                    self.deaths += 1
                    process.die()
                return self._rows(event)

            means = Ingestion(
                store, Transform("test/1", transform), stamps(self.chance.getrandbits(60)), journal=journal
            )
            self._deliver(place, means)

        survived = process.run({place: partial(actor, place) for place in self.killers})
        if not survived and self.deaths == before:
            self.innocent += 1
            marks = self.store.sql(
                "SELECT last_sequence_number FROM batch_attempt"
                " WHERE first_sequence_number = last_sequence_number AND deaths >= ? AND verdict IS NULL", ALONE
            )  # fmt: skip
            self.unlucky |= {number for (number,) in marks}
        return survived

    @contextmanager
    def _in_child(self, process: Process, transform: Transform, look_again: object) -> Iterator[Transform]:
        def rows_of(event: Event, references: References) -> Iterable[Row]:
            number = event.sequence_number
            process.step()
            if number in self.parents:
                self.deaths += 1
                process.die()
            if number in self.killers[event.body.decode()]:
                raise EventKilled(number, "it ended two children")
            return self._rows(event)

        yield replace(transform, rows_of=rows_of)

    def _rows(self, event: Event) -> tuple[SensorReading, ...]:
        return (reading(ppm=2**80 if event.sequence_number in self.refused else 1),)

    def _deliver(self, place: str, means: Ingestion) -> None:
        partition = STREAM.partition(PartitionId(place))
        checkpoint = means.store.read_partition(partition).checkpoint
        first = 0 if checkpoint is None else checkpoint.sequence_number + 1
        while first < self.count:
            last = min(first + self.chance.randint(*self.sizes), self.count) - 1
            ingest_batch(EventBatch(partition, events(first, last, place), "call"), means)
            first = last + 1

    def _assert_accounted(self) -> None:
        for place, killers in self.killers.items():
            letters = [one for one in self.store.letters() if one.partition_id == place]
            crashes = [one for one in letters if one.error_class == "crash"]
            crashed = {one.sequence_number for one in crashes}
            assert killers <= crashed <= killers | self.unlucky
            assert {one.sequence_number for one in letters} == crashed | self.refused
            assert all((one.status, one.error_type) == ("exhausted", "core.errors.ProcessDied") for one in crashes)
            spans = [(one.first, one.last) for one in self.store.ledger() if one.partition_id == place]
            assert [number for first, last in spans for number in range(first, last + 1)] == list(range(self.count))
            written = self.store.sql("SELECT sequence_number FROM sensor_reading WHERE partition_id = ?", place)
            assert sorted(written) == [(one,) for one in range(self.count) if one not in crashed | self.refused]
        assert self.store.sql("SELECT COUNT(*) FROM batch_attempt") == [(0,)]
        assert all(books.balanced for books in self.store.read_ledgers())


@settings(max_examples=min(30, settings().max_examples))
@given(count=st.integers(1, 500), killers=st.sets(st.integers(0, 499), max_size=6))
def test_all_killers_of_a_batch_cost_one_death(count: int, killers: set[int]) -> None:
    own = frozenset(number for number in killers if number < count)
    Life({"0": own}, count, random.Random(0), (500, 500)).live(min(len(own), 1))


@pytest.mark.slow
@settings(max_examples=30)
@example(seed=0, killers={250, 590}, least=10, more=30)
@example(seed=1, killers={599}, least=1, more=200)
@example(seed=18456, killers={70, 73, 572}, least=57, more=63)
@given(
    seed=st.integers(0, 10**9),
    killers=st.sets(st.integers(0, 599), max_size=5),
    least=st.integers(1, 600),
    more=st.integers(0, 600),
)
def test_killers_of_many_batches_cost_two_deaths_at_most(seed: int, killers: set[int], least: int, more: int) -> None:
    sizes = (least, min(least + more, 600))
    Life({"0": frozenset(killers)}, 600, random.Random(seed), sizes).live(MOST_DEATHS)


@pytest.mark.parametrize("seed", seeds(range(6), 1))
def test_eight_partitions_with_killers_cost_two_deaths_at_most(seed: int) -> None:
    chance = random.Random(seed)
    killers = {str(place): frozenset(chance.sample(range(60), 2)) for place in range(8)}
    life = Life({**killers, "8": frozenset()}, 60, chance, (10, 60))
    life.live(MOST_DEATHS)
    assert life.deaths >= 1


@pytest.mark.parametrize("seed", seeds(range(4), 1))
def test_a_killer_that_takes_its_parent_along_costs_a_death_more_than_it_takes_to_try_events_alone(seed: int) -> None:
    chance = random.Random(seed)
    killer = chance.randrange(60)
    life = Life({"0": frozenset({killer})}, 60, chance, (10, 60), parents=frozenset({killer}))
    life.live(ALONE + 1)
    assert life.deaths == ALONE + 1


@pytest.mark.slow
@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**9),
    killers=st.sets(st.integers(0, 299), max_size=2),
    refused=st.sets(st.integers(0, 299), max_size=2),
)
def test_deaths_of_innocents_and_children_make_no_letter(seed: int, killers: set[int], refused: set[int]) -> None:
    own = {"0": frozenset(killers), "1": frozenset(killers)}
    life = Life(own, 300, random.Random(seed), (100, 300), 0.002, frozenset(refused - killers))
    life.live(MOST_DEATHS * 2 * len(killers))

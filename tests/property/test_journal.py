"""core/ingest/journal.py: what kills its process becomes a letter within few deaths, and nothing else does."""

import random
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core.ingest.ingest import Means, ingest_batch
from core.ingest.journal import UNFINISHED, StoredJournal
from core.model.events import Event, EventBatch, PartitionId
from core.model.rows import References
from core.model.transform import Transform
from examples.home_security.transform import SensorReading
from tests.fakes.builders import STREAM, events, reading, stamps
from tests.fakes.memory_store import MemoryStore
from tests.fakes.mortal import Process, Turns, mortal
from tests.simulation.seeds import seeds

NARROWED = 2  # deaths of parts: 500 -> 63 -> 8 -> 1
FIRST = UNFINISHED + NARROWED + UNFINISHED
NEXT = NARROWED + UNFINISHED  # the parts after a letter are no larger than the first parts
UNMARKED = 1  # a batch of the steady state leaves no mark
EVENTS = events(0, 599)


@dataclass
class Life:
    """Partitions of one stream, and process after process that ingests them and dies of their killers."""

    killers: dict[str, frozenset[int]]
    count: int
    chance: random.Random
    sizes: tuple[int, int]
    risk: float = 0.0
    refused: frozenset[int] = frozenset()  # their rows are refused by the database
    store: MemoryStore = field(default_factory=MemoryStore)
    places: list[str] = field(default_factory=list)  # of the killers, death by death
    unmarked: int = 0  # of the deaths
    innocent: int = 0

    @property
    def deaths(self) -> int:
        return len(self.places)

    def live(self, most: int) -> None:
        """Start processes until all events are accounted for; fail after too many deaths of killers."""
        while not self._process():
            assert self.deaths <= most, f"{self.deaths} deaths and still not through"
        self._assert_accounted()

    def _process(self) -> bool:
        process = Process(self.chance, self.risk)
        before = self.deaths
        store = mortal(self.store, process)
        journal = StoredJournal(store, stamps(), Turns(process))

        def actor(place: str) -> None:
            def transform(event: Event, references: References) -> tuple[SensorReading, ...]:
                process.step()
                if event.sequence_number in self.killers[place]:
                    self.places.append(place)
                    found = self.store.sql("SELECT 1 FROM batch_attempt WHERE partition_id = ?", place)
                    self.unmarked += not found
                    process.die()
                ppm = 2**80 if event.sequence_number in self.refused else 1
                return (reading(ppm=ppm),)

            means = Means(store, Transform("test/1", transform), stamps(self.chance.getrandbits(60)), journal=journal)
            self._deliver(place, means)

        survived = process.run({place: partial(actor, place) for place in self.killers})
        self.innocent += not survived and self.deaths == before
        return survived

    def _deliver(self, place: str, means: Means) -> None:
        partition = STREAM.partition(PartitionId(place))
        checkpoint = means.store.read_partition(partition).checkpoint
        first = 0 if checkpoint is None else checkpoint.sequence_number + 1
        while first < self.count:
            last = min(first + self.chance.randint(*self.sizes), self.count) - 1
            ingest_batch(EventBatch(partition, EVENTS[first : last + 1], "call"), means)
            first = last + 1

    def _assert_accounted(self) -> None:
        for place, killers in self.killers.items():
            letters = [one for one in self.store.letters() if one.partition_id == place]
            crashes = [one for one in letters if one.error_class == "crash"]
            assert [one.sequence_number for one in crashes] == sorted(killers)
            assert {one.sequence_number for one in letters} == killers | self.refused
            assert all((one.status, one.error_type) == ("exhausted", "core.errors.ProcessDied") for one in crashes)
            spans = [(one.first, one.last) for one in self.store.ledger() if one.partition_id == place]
            assert [number for first, last in spans for number in range(first, last + 1)] == list(range(self.count))
        assert self.store.sql("SELECT COUNT(*) FROM batch_attempt") == [(0,)]
        assert all(books.balanced for books in self.store.read_ledgers())


@pytest.mark.slow
@settings(max_examples=30)
@given(count=st.integers(1, 500), at=st.floats(0, 1, exclude_max=True))
@example(count=500, at=0.0)
@example(count=500, at=0.999)
def test_one_killer_anywhere_in_a_batch_costs_few_deaths(count: int, at: float) -> None:
    life = Life({"0": frozenset([int(at * count)])}, count, random.Random(0), (500, 500))
    life.live(FIRST)
    assert life.deaths >= UNFINISHED


@settings(max_examples=min(30, settings().max_examples))
@given(count=st.integers(1, 500), killers=st.sets(st.integers(0, 499), max_size=6))
def test_several_killers_of_a_batch_are_found_one_after_the_other(count: int, killers: set[int]) -> None:
    own = frozenset(number for number in killers if number < count)
    Life({"0": own}, count, random.Random(0), (500, 500)).live(FIRST + NEXT * (len(own) - 1) if own else 0)


@pytest.mark.slow
@settings(max_examples=30)
@example(seed=0, killers={250, 590}, least=10, more=30)
@example(seed=1, killers={599}, least=1, more=200)
@given(
    seed=st.integers(0, 10**9),
    killers=st.sets(st.integers(0, 599), max_size=3),
    least=st.integers(1, 600),
    more=st.integers(0, 600),
)
def test_batches_that_come_in_other_sizes_after_each_death_change_little(
    seed: int, killers: set[int], least: int, more: int
) -> None:
    life = Life({"0": frozenset(killers)}, 600, random.Random(seed), (least, min(least + more, 600)))
    life.live((FIRST + UNMARKED) * len(killers))
    assert life.unmarked <= UNMARKED * len(killers)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**9),
    killers=st.sets(st.integers(0, 299), max_size=2),
    refused=st.sets(st.integers(0, 299), max_size=2),
)
def test_innocent_deaths_and_refused_rows_in_between_make_no_letter(
    seed: int, killers: set[int], refused: set[int]
) -> None:
    own = frozenset(killers)
    life = Life({"0": own}, 300, random.Random(seed), (100, 300), 0.002, frozenset(refused - killers))
    life.live(10_000)
    assert life.deaths <= (FIRST + UNMARKED) * (len(own) + life.innocent)


@pytest.mark.parametrize("seed", seeds(range(6), 1))
def test_of_sixteen_partitions_only_the_one_that_kills_gets_a_letter(seed: int) -> None:
    chance = random.Random(seed)
    killer = frozenset([chance.randrange(60)])
    life = Life({str(place): killer if place == seed else frozenset() for place in range(16)}, 60, chance, (20, 60))
    life.live(FIRST + UNMARKED)
    assert life.deaths >= UNFINISHED


@pytest.mark.parametrize("seed", seeds(range(6), 1))
def test_a_death_by_a_killer_elsewhere_may_start_a_search_again_but_makes_it_no_longer(seed: int) -> None:
    chance = random.Random(seed)
    killers = {place: frozenset([chance.randrange(60)]) for place in "01"}
    life = Life({**killers, "2": frozenset()}, 60, chance, (60, 60))
    life.live(len(killers) * FIRST**2)
    assert all(len(list(deaths)) <= FIRST for _, deaths in groupby(life.places)), life.places

"""A world of dead letters that a seed decides: batches, keepers that die and come twice, a person, and faults."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from core.errors import HubUnreachable, InfrastructureFault
from core.ingest.ingest import Means, ingest_batch
from core.letters.moves import Mover, discard, requeue
from core.letters.port import Keeper
from core.letters.retry import claim_due, next_due_at, retry_chunk
from core.model.backoff import Backoff
from core.model.clock import Clock
from core.model.events import Event, Partition, PartitionId
from core.model.letters import LetterChunk, LetterPolicy, LetterPosition
from core.model.rows import References, Row
from core.model.spans import SequenceNumber
from core.model.transform import Transform
from core.store.database import Waiting
from core.transforms.home_security import Home, SensorReading
from tests.fakes.builders import LATEST, STREAM, FakeClock, batch, event, ids, partition
from tests.fakes.faulty_database import Fault, FaultyStore, Killed
from tests.fakes.plain_transform import PLAIN
from tests.fakes.store import Store
from tests.simulation.held_letters import HeldLetters

KEEPERS, STEPS = 2, 70
HOUR = 3_600.0
FOR_EVER = 999  # times that an event kills whoever tries it
VERBS = [
    "reading {home}",
    "look {home}",
    "look {home}",
    "home {home} 0",
    "home {home} 1",
    "quiet",
    "poison",
    "bug",
    "huge {home}",
    "fix {home}",
    "fix {home}",
    "fixhome {home} 0",
    "fixhome {home} 1",
    "kill {times} {id}",
]
PERSON = Mover("somebody", "the world asks")
Report = dict[str, set[LetterPosition]]


@dataclass
class Process:
    """A keeper's process: what it remembers is gone when it dies, and its clock is its own."""

    keeper: Keeper
    chunks: list[LetterChunk] = field(default_factory=list)  # claimed and not retried yet


class LetterWorld:
    """Steps of trouble, and then none until no letter waits. `told` is what the person was told was discarded."""

    def __init__(self, seed: int, store: Store) -> None:
        self.chance = random.Random(seed)
        self.clock = FakeClock()
        self.trouble = self.chance.choice([0.0, 0.05, 0.15, 0.4])
        self.keeps_bodies = self.chance.random() < 0.7
        self.mended = False
        self.deaths: Counter[str] = Counter()
        self.told: set[LetterPosition] = set()
        self.seen: Counter[str] = Counter()
        self.calm = self.trouble == 0.0
        self.logs = {str(id): self._log(id) for id in range(self.chance.randint(1, 3))}
        self.gone = {at for at in range(60) if self.chance.random() < 0.2}  # numbers that left the hub
        self._store = Store(HeldLetters(store.database))
        self._outage = self._nested = 0
        self._skews = [0.0] * KEEPERS
        self._ingesting = self._stamps(lambda: 0.0), self._connect()
        self.processes = [self._start(number) for number in range(KEEPERS)]

    def run(self) -> None:
        """Everything fails for some steps, and then nothing does until all is settled."""
        for _ in range(STEPS):
            self._act()
        self.trouble, self._outage, self.mended = 0.0, 0, True
        self._skews[:] = [0.0] * KEEPERS
        for place in self.logs:
            while self._committed(place) < len(self.logs[place]):
                self._deliver(place)
        self._settle_all()
        if self.chance.random() < 0.5:  # once more by hand
            self._ask(requeue, self._positions())
            self._settle_all()

    def _act(self) -> None:
        self.clock.advance(self.chance.choice([0.0, 1.0, 40.0, 400.0]))
        acts: list[Callable[[], None]] = [self._deliver_some, self._keep, self._keep, self._keep, self._person]
        self.chance.choice(acts)()
        if self.chance.random() < self.trouble / 4:
            self._skews[self.chance.randrange(KEEPERS)] = self.chance.choice([-HOUR, 0.0, HOUR])
        self.mended = self.mended or self.chance.random() < 0.02

    def _settle_all(self) -> None:
        for turn in range(5_000):
            number = turn % KEEPERS
            due = self._store.next_due_at(STREAM, LATEST)
            if due is None:
                return
            self.clock.seconds += max(0.0, (due - self.clock.now()).total_seconds())
            self._round(number, self.processes[number].keeper)
        raise AssertionError("letters never come to rest")

    def _log(self, place: int) -> list[Event]:
        homes = [f"home-{place}-{number}" for number in range(2)]
        bodies = [
            self.chance.choice(VERBS).format(
                home=self.chance.choice(homes), times=self.chance.choice([1, 2, FOR_EVER]), id=f"{place}-{number}"
            )
            for number in range(self.chance.randint(1, 40))
        ]
        return [event(number, body) for number, body in enumerate(bodies)]

    def _deliver_some(self) -> None:
        self._deliver(self.chance.choice(list(self.logs)))

    def _deliver(self, place: str) -> None:
        log, committed = self.logs[place], self._committed(place)
        given = log[self.chance.randint(0, committed) :][: committed + self.chance.randint(1, 9)]
        (stamps, policy), store = self._ingesting
        if not given:
            return
        try:
            means = Means(store, self._transform(kills=False), stamps, letters=policy)
            ingest_batch(batch(given, partition(place)), means)
        except InfrastructureFault:
            self.seen["batch held"] += 1
        except Killed:
            self._ingesting = (stamps, policy), self._connect()

    def _committed(self, place: str) -> int:
        checkpoint = self._store.read_partition(partition(place)).checkpoint
        return 0 if checkpoint is None else checkpoint.sequence_number + 1

    def _keep(self) -> None:
        """A part of what the orchestration does, or what a second one, a purge or a late activity would do."""
        number = self.chance.randrange(KEEPERS)
        process = self.processes[number]
        act = self.chance.choice(["round", "round", "claim", "chunk", "chunk twice", "forget"])
        try:
            if act == "claim":
                process.chunks += claim_due(process.keeper)
            elif act.startswith("chunk") and process.chunks:
                chunk = self.chance.choice(process.chunks)  # it stays: an activity may run again, much later
                self._retry(chunk, process.keeper)
                if act == "chunk twice":
                    self._retry(chunk, self.processes[number - 1].keeper)
            elif act == "forget":
                process.chunks.clear()
            else:
                self._round(number, process.keeper)
        except InfrastructureFault:
            self.seen["keeper held"] += 1
        except Killed:
            self._die(number)

    def _round(self, number: int, keeper: Keeper) -> None:
        try:
            due = next_due_at(keeper)
            if due is not None and due <= keeper.clock.now():
                for chunk in claim_due(keeper):
                    self._retry(LetterChunk.from_json(chunk.to_json()), keeper)
        except InfrastructureFault:
            self.seen["keeper held"] += 1
        except Killed:
            self._die(number)

    def _retry(self, chunk: LetterChunk, keeper: Keeper) -> None:
        report = retry_chunk(chunk, keeper, f"activity-{self.chance.getrandbits(32)}")
        self.seen.update({name: value for name, value in report.to_json().items() if isinstance(value, int)})

    def _die(self, number: int) -> None:
        self.seen["keeper died"] += 1
        self.processes[number] = self._start(number)

    def _person(self) -> None:
        some = [one for one in self._positions() if self.chance.random() < 0.15]
        self._ask(self.chance.choice([discard, requeue, requeue]), some)

    def _ask(self, what: Callable[..., object], some: list[LetterPosition]) -> None:
        keeper = self.processes[0].keeper
        try:
            report = what(some, replace(keeper, store=self._connect()), PERSON)
        except (InfrastructureFault, Killed):
            return
        if what is discard:
            self.told.update(report.moved)  # type: ignore[attr-defined]

    def _positions(self) -> list[LetterPosition]:
        return [
            LetterPosition(PartitionId(place), SequenceNumber(number))
            for place in self.logs
            for number in range(self._committed(place))
        ]

    def _start(self, number: int) -> Process:
        stamps, policy = self._stamps(lambda: self._skews[number])
        transform = self._transform(kills=True)
        return Process(Keeper(STREAM, self._connect(), transform, self._find_event, stamps, policy))

    def _stamps(self, skew: Callable[[], float]) -> tuple[Clock, LetterPolicy]:
        source = iter(ids(self.chance.getrandbits(64)))
        policy = LetterPolicy(Backoff(attempts=self.chance.randint(2, 5)), self.keeps_bodies, chunk=4, fan_out=3)

        def now() -> datetime:
            return self.clock.now() + timedelta(seconds=skew())

        return Clock(now, lambda: next(source), self.chance.random), policy

    def _connect(self) -> Store:
        waiting = Waiting(self.clock.monotonic, self.clock.sleep, self.chance.random)
        faulty = FaultyStore(
            self._store,
            on_commit=self._faults(),
            on_read=(fault if fault is Fault.KILLED else None for fault in self._faults()),
            on_letters=self._faults(),
            rival=lambda *_: self._meanwhile(),
            meanwhile=self._meanwhile,
        )
        patient = faulty.patient(timedelta(seconds=0.2), waiting)
        return patient.remembering(timedelta(seconds=60), self.clock.monotonic)

    def _meanwhile(self) -> None:
        """Somebody else acts between two calls; whom nobody interrupts in turn."""
        if self._nested == 0:
            self._nested += 1
            try:
                self._act()
            finally:
                self._nested -= 1

    def _faults(self) -> Iterator[Fault | None]:
        while True:
            if self._outage:
                self._outage -= 1
                yield Fault.NOT_REACHED
                continue
            if self.chance.random() < self.trouble / 20:
                self._outage = self.chance.randint(1, 12)
            trouble = self.chance.random() < self.trouble
            yield self.chance.choice([*Fault, Fault.RIVAL]) if trouble else None

    def _find_event(self, place: Partition, number: SequenceNumber) -> Event | None:
        if self.chance.random() < self.trouble:
            raise HubUnreachable("the hub does not answer")
        return None if number in self.gone else self.logs[place.partition_id][number]

    def _transform(self, *, kills: bool) -> Transform:
        def rows_of(given: Event, references: References) -> Iterable[Row]:
            verb, *words = given.body.decode().split()
            if verb.startswith("fix"):
                if not self.mended:
                    raise KeyError("a bug that the next deployment mends")
                yield _mended_row(verb, words, given)
            elif verb == "kill":
                if not kills:
                    raise KeyError("set aside by the batch")
                if self.deaths[words[1]] < int(words[0]):
                    self.deaths[words[1]] += 1
                    raise Killed
                yield _mended_row(verb, words, given)
            else:
                yield from PLAIN.rows_of(given, references)

        return Transform("world/1", rows_of, PLAIN.references_of)


def _mended_row(verb: str, words: list[str], given: Event) -> Row:
    if verb == "fixhome":
        return Home(words[0], "Europe/Berlin", words[1] == "1")
    return SensorReading(words[0], "sensor", verb, None, given.sequence_number, given.enqueued_at)

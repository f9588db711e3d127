"""A world under `hold_key` that a seed decides: owners that remember, keepers, a person, replays, deaths and faults."""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from msgspec import convert, to_builtins

from core.errors import HeldLettersFull, InfrastructureFault, PoisonEvent, RequestRefused, TaskOverlap
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.ingest.stalled_partitions import SilenceCheck
from core.letters.retry import Keeper, claim_due, next_due_at, retry_chunk
from core.model.events import Event, PartitionId, SequenceNumber
from core.model.letters import Backoff, LetterChunk, LetterPolicy, LetterPosition
from core.model.ports import Clock
from core.model.rows import References, Row
from core.model.transforms import Transform
from core.replay.task import ReplayKind
from core.store.database import Database
from core.store.script import Script
from core.tasks.run import open_parts, work_on
from examples.home_security.transform import SensorReading
from tests.fakes.builders import STREAM, FakeClock, batch, event, ids, partition
from tests.fakes.faulty_database import Killed
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.memory_store import MemoryStore
from tests.fakes.moving import discard, drive, requeue
from tests.fakes.replaying import order, request_replay
from tests.fakes.store import Store
from tests.fakes.timed_database import TimedDatabase
from tests.simulation.faults import OF_READS, OF_SCRIPTS, Fault, ProcessDatabase
from tests.simulation.key_order import KeyOrderWatch

OWNERS, STEPS, LATE = 2, 50, 6
VERBS = ["reading", "reading", "reading", "quiet", "flaky 1", "flaky 3", "breaks", "poison", "huge", "kill 2"]
CALM = ["reading", "breaks", "breaks", "flaky 1"]  # few letters, but for those that replays open
NEVER = ("poison", "huge")


@dataclass
class Process:
    """An owner and keeper, whose memory is gone when it dies."""

    store: Store
    chunks: list[LetterChunk] = field(default_factory=list)


class OrderWorld:
    """Steps with trouble, then without, until every letter is settled. `plant` puts a bug between store and rules."""

    def __init__(
        self, seed: int, engine: MemoryStore, plant: Callable[[MemoryStore, Database], Database] | None = None
    ) -> None:
        self.chance = random.Random(seed)
        self._engine = engine
        self.clock = FakeClock()
        self.trouble = self.chance.choice([0.0, 0.1, 0.4])
        self.replays = self.chance.random() < 0.5
        self.broken = False  # a deployment breaks events that were written before
        self.tries: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        timed = TimedDatabase(engine.database, self.clock.now)
        planted = plant(engine, timed) if plant else timed
        self.watch = KeyOrderWatch(engine, planted)
        self.record = Store(self.watch)
        self._verbs = CALM if self.replays and self.chance.random() < 0.5 else VERBS
        self.logs = {str(id): self._log(id) for id in range(self.chance.randint(1, 2))}
        self.hub = MemoryHub(self.logs)
        self.policy = LetterPolicy(
            Backoff(attempts=self.chance.randint(2, 4)),
            keep_bodies=self.chance.random() < 0.7,
            chunk=self.chance.choice([1, 4]),
            fan_out=3,
            order="hold_key",
            held_limit=self.chance.choice([2, 6, 10_000]),
        )
        source = iter(ids(self.chance.getrandbits(64)))
        self.own = Clock(self.clock.now, lambda: next(source), self.chance.random)
        self._depth = 0
        self.processes = [self._start() for _ in range(OWNERS)]

    def run(self) -> None:
        for _ in range(STEPS):
            self.clock.advance(self.chance.choice([0.0, 1.0, 45.0]))
            self._step()
        self.trouble, self.broken = 0.0, False
        self._come_to_rest()
        means = Ingestion(self.record, self._transform(kills=False), self.own, GapReading(self.hub), self.policy)
        assert list(SilenceCheck(means, timedelta(minutes=2)).run("timer")) == []

    def _step(self) -> None:
        acts = [self._deliver, self._deliver, self._deliver, self._keep, self._keep, self._person, self._break]
        acts += [self._ask, self._drive, self._drive] if self.replays else []
        acts += [self._ask, self._drive, self._break] if self._verbs is CALM else []
        number = self.chance.randrange(OWNERS)
        try:
            self.chance.choice(acts)(self.processes[number])
        except HeldLettersFull:
            self.seen["full"] += 1
        except InfrastructureFault:
            self.seen["faults"] += 1
        except Killed:
            self.seen["deaths"] += 1
            self.processes[number] = self._start()

    def _come_to_rest(self) -> None:
        for _ in range(2_000):
            process = self.processes[0]
            for place in self.logs:
                with suppress(HeldLettersFull):
                    self._deliver_to(place, process)
            due = next_due_at(self._keeper(process.store))
            if due is None:
                if not self._settle_by_hand(process):
                    return
                continue
            self.clock.seconds += max(0.0, (due - self.clock.now()).total_seconds())
            with suppress(Killed):
                for chunk in claim_due(self._keeper(process.store)):
                    retry_chunk(chunk, self._keeper(process.store), "at rest")
        raise AssertionError("letters never come to rest")

    def _settle_by_hand(self, process: Process) -> bool:
        """Let a person requeue or discard what is exhausted; return False when all is delivered and settled."""
        everything = self._positions()
        settled = all(letter.status in ("resolved", "discarded") for letter in self._engine.letters())
        if settled and all(self._committed(place) == len(log) for place, log in self.logs.items()):
            return False
        act = discard if self.chance.random() < 0.7 else requeue
        some = [one for one in everything if self.chance.random() < 0.7]
        drive(self._keeper(process.store))
        act(some, self._keeper(process.store))
        return True

    def _deliver(self, process: Process) -> None:
        self._deliver_to(self.chance.choice(list(self.logs)), process)

    def _deliver_to(self, place: str, process: Process) -> None:
        log, committed = self.logs[place], self._committed(place)
        start = self.chance.randint(max(0, committed - 3), committed)
        given = log[start : committed + self.chance.randint(1, 5)]
        if given:
            gap_reading = GapReading(self.hub)
            means = Ingestion(process.store, self._transform(kills=False), self.own, gap_reading, self.policy)
            report = ingest_batch(batch(given, partition(place)), means)
            self.seen["held"] += sum(commit.settled.held for commit in report.commits)

    def _keep(self, process: Process) -> None:
        """Claim due letters, and try them at once, later, or a second time."""
        keeper = self._keeper(process.store)
        if self.chance.random() < 0.7:
            process.chunks = [*process.chunks, *claim_due(keeper)][-LATE:]
        if process.chunks:
            chunk = convert(to_builtins(self.chance.choice(process.chunks)), LetterChunk)
            self.seen["resolved"] += retry_chunk(chunk, keeper, f"activity-{self.chance.getrandbits(32)}").resolved

    def _person(self, process: Process) -> None:
        some = [one for one in self._positions() if self.chance.random() < 0.15]
        act = self.chance.choice([discard, requeue])
        drive(self._keeper(process.store))
        self.seen[act.__name__] += len(act(some, self._keeper(process.store)))

    def _break(self, process: Process) -> None:
        self.broken = self.chance.random() < 0.5

    def _ask(self, process: Process) -> None:
        place = self.chance.choice(list(self.logs))
        start = self.chance.randint(0, max(0, self._committed(place) - 1))
        keys = self.chance.choice([(), ("key-0",), ("key-0", "key-2")])
        end = start + self.chance.randint(0, 12)
        asked = order([place], start, end, dry_run=self.chance.random() < 0.2, keys=keys)
        with suppress(RequestRefused, TaskOverlap):
            request_replay(asked, self._replaying(process), 10**9)

    def _drive(self, process: Process) -> None:
        for job_id in self._open_jobs():
            for id in open_parts(job_id, self._replaying(process)):
                until = self.clock.now() + timedelta(seconds=self.chance.choice([0, 9]))
                self.seen["replayed"] += work_on(job_id, id, self._replaying(process), until).looked_at

    def _open_jobs(self) -> list[UUID]:
        jobs = self.record.read_replays(STREAM, 100, None)
        return [job.task.task_id for job in jobs if job.task.status in ("planned", "running")]

    def _replaying(self, process: Process) -> ReplayKind:
        store, piece = self._troubled(), self.chance.randint(1, 5)
        return ReplayKind(STREAM, store, self.hub, self._transform(kills=False), self.own, self.policy, piece)

    def _keeper(self, store: Store) -> Keeper:
        return Keeper(STREAM, store, self._transform(kills=True), self.hub.find_event, self.own, self.policy)

    def _committed(self, place: str) -> int:
        checkpoint = self.record.read_partition(partition(place)).checkpoint
        return 0 if checkpoint is None else checkpoint.sequence_number + 1

    def _positions(self) -> list[LetterPosition]:
        return [
            LetterPosition(PartitionId(place), SequenceNumber(number))
            for place in self.logs
            for number in range(self._committed(place))
        ]

    def _start(self) -> Process:
        return Process(self._troubled().remembering(timedelta(seconds=60), self.clock.monotonic))

    def _troubled(self) -> Store:
        return Store(ProcessDatabase(self.watch, self._fault))

    def _fault(self, script: Script | None) -> Fault | None:
        if self._depth == 0 and self.chance.random() < 0.15:  # others act between any two calls
            self._depth += 1
            self._step()
            self._depth -= 1
        if self.chance.random() >= self.trouble / 4:
            return None
        return self.chance.choice(OF_READS if script is None else OF_SCRIPTS)

    def _log(self, id: int) -> list[Event]:
        keys = [f"key-{number}" for number in range(self.chance.randint(1, 5))] + [None]
        log = []
        for number in range(self.chance.randint(10, 60)):
            key = self.chance.choice(keys)
            log.append(event(number, f"{self.chance.choice(self._verbs)} {id}-{number}", key=key))
            if key is not None:
                self.watch.keys[str(id), number] = key
        return log

    def _transform(self, *, kills: bool) -> Transform:
        return Transform(
            "world/1", lambda given, references: self._rows(given, references, kills), None, (SensorReading,)
        )

    def _rows(self, given: Event, references: References, kills: bool) -> Iterable[Row]:
        verb, *words, name = given.body.decode().split()
        if verb == "quiet":
            return []
        if verb == "poison":
            raise PoisonEvent("the body says poison")
        if verb == "breaks" and self.broken:
            raise KeyError("the deployment of now cannot read it")
        if verb in ("flaky", "kill") and self.tries[name] < int(words[0]):
            self.tries[name] += 1
            if verb == "kill" and kills:
                raise Killed
            raise KeyError("not yet")
        ppm = 2**63 if verb == "huge" else given.sequence_number
        return [SensorReading(name, "sensor", verb, None, ppm, given.enqueued_at)]

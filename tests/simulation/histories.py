"""Small worlds of replays that a seed decides, and histories with gaps and moves by hand that an audit reads."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from uuid import UUID

from core.audit.audit import MOST_NUMBERS, Audit, Reading, audit, recount_rows, window
from core.audit.faults import LedgerFault
from core.errors import InfrastructureFault, RequestRefused, TaskOverlap
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.ledger.explain import Explanation, explain
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import Event, PartitionId, SequenceNumber
from core.model.letters import LetterPosition
from core.replay.task import ReplayKind
from core.store.script import Script
from core.tasks.run import open_parts, work_on
from core.tasks.statuses import TaskMove, TaskVerb
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import STREAM, FakeClock, batch, event, partition, stamps
from tests.fakes.engines import SqliteEngine
from tests.fakes.faulty_database import Killed, TimedDatabase
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.moving import discard, requeue
from tests.fakes.operator_stores import OperatorStores, operator_stores
from tests.fakes.plain_transform import PLAIN
from tests.fakes.replaying import order, request_replay
from tests.fakes.store import Store
from tests.simulation.deployments import TRANSFORMS
from tests.simulation.faults import OF_READS, OF_SCRIPTS, Fault, ProcessDatabase

VERBS = [*["reading {}"] * 2, "double {}", *["look {}"] * 2, "home {} 0", "home {} 1", "quiet", "bug", "poison"]
STEPS, MINUTE = 50, timedelta(minutes=1)
KEYS = [(), (), (), ("a",), ("a", "c"), ("nobody",)]  # of a replay; () means all events
MOVES: list[TaskVerb] = ["pause", "resume", "resume", "cancel"]


class ReplayWorld:
    """Steps through deliveries, retries, replays and acts of operators, and ends with one replay of everything."""

    steps = STEPS

    def __init__(self, seed: int, store: Store, *, by_key: bool = True) -> None:
        self.chance = random.Random(seed)
        self.by_key = by_key
        self.clock = FakeClock()
        self.record = Store(TimedDatabase(store.database, self.clock.now))
        self.logs = {str(id): self._log(id) for id in range(self.chance.randint(1, 3))}
        self.hub = MemoryHub(self.logs, lambda: self.chance.random() < self._trouble / 30)
        self.retention = self.chance.random() < 0.3
        self.expired: dict[str, int] = dict.fromkeys(self.logs, 0)
        self.transform = TRANSFORMS[0]
        self._own = stamps(self.chance.getrandbits(64), self.clock)
        self._trouble = self.chance.choice([0.0, 0.2, 0.5])
        self._depth = 0
        self._jobs: list[UUID] = []

    def run(self) -> None:
        for _ in range(self.steps):
            self.clock.advance(self.chance.choice([0.0, 1.0, 45.0]))
            self._step()
        self._trouble = 0.0
        self.transform = self.chance.choice(TRANSFORMS[1:])
        self._come_to_rest()
        self._end()

    def _come_to_rest(self) -> None:
        """Deliver everything, with no further fault."""
        for id, log in self.logs.items():
            while self._committed(id) < len(log):
                self._deliver(id)

    def _end(self) -> None:
        """Cancel paused jobs, finish running ones, and replay everything with the newest transform."""
        for job_id in self._jobs:
            self._move(job_id, "pause")  # it may have been opened with an earlier version
            self._move(job_id, "cancel" if self.chance.random() < 0.3 else "resume")
            self._finish(job_id)
        before = self._checkpoints()
        job = request_replay(order(), self.means(self.record), 10**9)
        self._finish(job.task.task_id)
        assert self._checkpoints() == before

    def _checkpoints(self) -> list[tuple[int, UUID] | None]:
        found = [self.record.read_partition(partition(id)).checkpoint for id in self.logs]
        return [None if one is None else (one.sequence_number, one.commit_id) for one in found]

    def means(self, store: Any) -> ReplayKind:
        return ReplayKind(STREAM, store, self.hub, self.transform, self._own, piece=self.chance.randint(1, 9))

    def _acts(self) -> list[Callable[[], None]]:
        return [
            lambda: self._deliver(self.chance.choice(list(self.logs))),
            lambda: self._deliver(self.chance.choice(list(self.logs))),
            self._ask, self._drive, self._drive, self._drive, self._retry, self._steer, self._deploy, self._expire,
        ]  # fmt: skip

    def _step(self) -> None:
        act = self.chance.choice(self._acts())
        with suppress(InfrastructureFault, Killed):  # the driver tries again
            act()

    def _ask(self) -> None:
        id = self.chance.choice(list(self.logs))
        end = self._committed(id)
        start = self.chance.randint(0, max(0, end))
        asked = order(
            self.chance.choice([None, [id]]),
            self.chance.choice([None, start]),
            self.chance.choice([None, start + self.chance.randint(0, 20)]),
            dry_run=self.chance.random() < 0.3,
            keys=self.chance.choice(KEYS) if self.by_key else (),
        )
        try:
            self._jobs.append(request_replay(asked, self.means(self._troubled()), 10**9).task.task_id)
        except (RequestRefused, TaskOverlap):
            pass
        finally:
            known = self.record.read_replays(STREAM, 100, None)
            self._jobs = [job.task.task_id for job in known]

    def _drive(self) -> None:
        """Let one of several orchestrations work on a slice of an open job."""
        if self._jobs:
            job_id, means = self.chance.choice(self._jobs), self.means(self._troubled())
            for id in open_parts(job_id, means):
                if self.chance.random() < 0.7:
                    work_on(job_id, id, means, self.clock.now() + timedelta(seconds=self.chance.choice([0, 0, 9])))

    def _finish(self, job_id: UUID) -> None:
        means = self.means(self.record)
        while ids := open_parts(job_id, means):
            for id in ids:
                work_on(job_id, id, means, self.clock.now() + timedelta(seconds=self.chance.choice([0, 9])))

    def _steer(self) -> None:
        if self._jobs:
            self._move(self.chance.choice(self._jobs), self.chance.choice(MOVES))

    def _move(self, job_id: UUID, move: TaskVerb) -> None:
        version = self.transform.version if move == "resume" else None
        self.record.tasks.move(TaskMove(job_id, move, "somebody", "", self.clock.now(), transform_version=version))

    def _deploy(self) -> None:
        self.transform = self.chance.choice(TRANSFORMS)

    def _expire(self) -> None:
        """Let retention remove old events that were read."""
        id = self.chance.choice(list(self.logs))
        if self.retention and self._committed(id):
            self.expired[id] = max(self.expired[id], self.chance.randint(0, self._committed(id) - 1))
            self.hub.expire_before(id, self.expired[id])

    def _deliver(self, id: str) -> None:
        log, committed = self.logs[id], self._committed(id)
        given = log[committed : committed + self.chance.randint(1, 12)]
        if given:
            ingest_batch(batch(given, partition(id)), Ingestion(self._troubled(), self.transform, self._own))

    def _committed(self, id: str) -> int:
        checkpoint = self.record.read_partition(partition(id)).checkpoint
        return 0 if checkpoint is None else checkpoint.sequence_number + 1

    def _retry(self) -> None:
        """Claim due letters as a keeper does, and try them while others act."""
        keeper = Keeper(STREAM, self._troubled(), self.transform, self.hub.find_event, self._own)
        for chunk in claim_due(keeper):
            retry_chunk(chunk, keeper, "a retry")

    def _troubled(self) -> Store:
        return Store(ProcessDatabase(self.record.database, self._fault))

    def _fault(self, script: Script | None) -> Fault | None:
        if self.chance.random() < 0.1 and self._depth == 0:  # others act between any two calls
            self._depth += 1
            self._step()
            self._depth -= 1
        if self.chance.random() >= self._trouble / 4:
            return None
        return self.chance.choice(OF_READS if script is None else OF_SCRIPTS)

    def _log(self, id: int) -> list[Event]:
        homes = [f"home-{id}-{number}" for number in range(self.chance.randint(1, 3))]
        bodies = [f"home {name} {self.chance.randint(0, 1)}" for name in homes]  # before the events that look for them
        bodies += [
            self.chance.choice(VERBS).format(self.chance.choice(homes)) for _ in range(self.chance.randint(1, 60))
        ]
        keys = [self.chance.choice(["a", "b", "c", None]) if self.by_key else None for _ in bodies]
        return [event(number, body, key=key) for number, (body, key) in enumerate(zip(bodies, keys, strict=True))]


NOW = datetime(2026, 6, 1, tzinfo=UTC)
ROW_CLASSES = (Home, SensorReading, HomeAlert)
MORE = 40  # events at the end of each partition, of which the host skips most and retention removes some


@dataclass
class History:
    """A world that has ended and then got gaps, and the stores through which an operator reads it."""

    world: ReplayWorld
    hub: MemoryHub
    engine: SqliteEngine
    desk: OperatorStores

    def copied(self, path: Path) -> Self:
        """Return a copy of the store and of the hub."""
        with closing(sqlite3.connect(self.engine.path)) as connection:
            connection.execute("VACUUM INTO ?", (str(path),))
        hub = MemoryHub({})
        hub.held = {id: {**held} for id, held in self.hub.held.items()}
        hub.last, hub.last_at = {**self.hub.last}, {**self.hub.last_at}
        return replace(self, hub=hub, **_opened(path))

    def audit(self) -> list[LedgerFault]:
        """Return the faults that the audit and the recounts of rows report."""
        done = audit(self.desk.audits, None)
        return [*done.faults, *self._recounted(done)]

    def _recounted(self, done: Audit) -> Iterator[LedgerFault]:
        for one in done.partitions:
            span = window(one.ledger, None, None, MOST_NUMBERS)
            if span is not None:
                yield from recount_rows(one, span, self.desk.audits).faults

    def explain(self, id: str, number: int) -> Explanation:
        found = explain(PartitionId(id), SequenceNumber(number), self.desk.explanations)
        assert found is not None
        return found

    def outcomes(self, id: str) -> list[tuple[int, str]]:
        (last,) = self.engine.sql("SELECT sequence_number FROM event_hub_checkpoint WHERE partition_id = ?", id)
        return [(number, self.explain(id, number).outcome) for number in range(last[0] + 1)]


def _opened(path: Path) -> dict[str, Any]:
    engine = SqliteEngine(path)
    return {"engine": engine, "desk": operator_stores(engine.open().database, STREAM, ROW_CLASSES)}


def history(
    seed: int, path: Path, look: Callable[[OperatorStores], None] = lambda desk: None, *, by_key: bool = False
) -> History:
    """Make a history, with replays by key or without; an operator has a look at it from time to time."""
    opened = _opened(path)
    desk: OperatorStores = opened["desk"]
    world = ReplayWorld(seed, Store(desk.stream.database), by_key=by_key)
    world.run()
    made = History(world, world.hub, **opened)
    for change in (go_on_with_gaps, settle_by_hand, replay_some):
        look(desk)
        change(world)
    return made


def audit_now(desk: OperatorStores) -> None:
    """Audit the ranges in pieces, which must be balanced."""
    assert audit(desk.audits, None, Reading(piece=3)).faults == ()


def go_on_with_gaps(world: ReplayWorld) -> None:
    """Deliver only the last events; the gap is healed, except for the events that retention removed."""
    own = stamps(5, world.clock)
    for id, log in world.logs.items():
        begin = len(log)
        verbs = ["home {} 1", "reading {}", "look {}", "poison", "bug", "quiet", "double {}", "home {} 0"]
        more = [event(begin + at, verbs[at % len(verbs)].format(f"home-{id}-0")) for at in range(MORE)]
        world.hub.publish(id, more)
        world.hub.expire_before(id, begin + 5)
        world.hub.lose(id, begin + 12, begin + 13)
        ingest_batch(batch(more[30:], partition(id)), Ingestion(world.record, PLAIN, own, GapReading(world.hub)))


def settle_by_hand(world: ReplayWorld) -> None:
    """Discard some of the letters that a person can move, and retry others with the newest transform."""
    own = stamps(6, world.clock)
    keeper = Keeper(STREAM, world.record, TRANSFORMS[1], world.hub.find_event, own)
    exhausted = [
        LetterPosition(PartitionId(id), SequenceNumber(len(log) + 27)) for id, log in world.logs.items()
    ]  # one that was fetched back and is poison
    assert len(discard(exhausted, keeper)) == len(exhausted)
    again = [LetterPosition(one.partition_id, SequenceNumber(one.sequence_number + 1)) for one in exhausted]
    assert len(requeue(again, keeper)) == len(again)  # a bug that the newest transform mends
    world.clock.advance(60.0)
    while chunks := claim_due(keeper):
        for chunk in chunks:
            retry_chunk(chunk, keeper, "a retry")


def replay_some(world: ReplayWorld) -> None:
    """Replay some ranges: over gaps, over discarded letters, and over events that the current transform refuses."""
    means = ReplayKind(STREAM, world.record, world.hub, TRANSFORMS[1], stamps(8, world.clock), piece=7)
    for asked in (order(dry_run=True), order()):
        job = request_replay(asked, means, 10**9).task.task_id
        while ids := open_parts(job, means):
            for id in ids:
                work_on(job, id, means, world.clock.now() + timedelta(minutes=1))

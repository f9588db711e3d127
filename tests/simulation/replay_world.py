"""A small world of replays that a seed decides: ingest, retries, operators, doubled drivers, and faults."""

import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

from core.errors import InfrastructureFault, RequestRefused, TaskOverlap
from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import Event
from core.replay.task import ReplayKind
from core.store.script import Script
from core.tasks.run import open_parts, work_on
from core.tasks.statuses import TaskMove, TaskVerb
from tests.fakes.builders import STREAM, FakeClock, batch, event, partition, stamps
from tests.fakes.faulty_database import Killed
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.replaying import order, request_replay
from tests.fakes.store import Store
from tests.fakes.timed_database import TimedDatabase
from tests.simulation.deployments import TRANSFORMS
from tests.simulation.faults import OF_READS, OF_SCRIPTS, Fault, ProcessDatabase

VERBS = [
    "reading {}",
    "reading {}",
    "double {}",
    "look {}",
    "look {}",
    "home {} 0",
    "home {} 1",
    "quiet",
    "bug",
    "poison",
]
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
        self.begins: dict[str, int] = dict.fromkeys(self.logs, 0)  # the first number of each partition's stream
        self.expired: dict[str, int] = dict.fromkeys(self.logs, 0)
        self.transform = TRANSFORMS[0]
        self._own = stamps(self.chance.getrandbits(64), self.clock)
        self._trouble = self.chance.choice([0.0, 0.2, 0.5])
        self._depth = 0
        self._jobs: list[UUID] = []
        self.last: UUID | None = None
        self.retried = 0

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
            while self._committed(id) < self.begins[id] + len(log):
                self._deliver(id)

    def _end(self) -> None:
        """Cancel paused jobs, finish running ones, and replay everything with the newest transform."""
        for job_id in self._jobs:
            self._move(job_id, "pause")  # it may have been opened with an earlier version
            self._move(job_id, "cancel" if self.chance.random() < 0.3 else "resume")
            self._finish(job_id)
        before = self._checkpoints()
        job = request_replay(order(), self.means(self.record), 10**9)
        self.last = job.task.task_id
        self._finish(self.last)
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
            self.retried += retry_chunk(chunk, keeper, "a retry").resolved

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

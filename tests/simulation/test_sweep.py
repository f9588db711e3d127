"""A purge, an erasure, an audit and an aggregation, with a fault at any point. The one world has none of them.

A point is a read or a transaction that is not reached, each of its statements, its commit, and the answer after it. At
each of them the database fails or the process dies. Then the act is called again: the state is that without a fault.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import cache
from itertools import count
from typing import Any, NamedTuple, cast

import pytest

from core.aggregation.spark_engine import JobReport, JobRequest, JobState
from core.aggregation.store import Aggregations
from core.aggregation.tick import Aggregation, aggregate
from core.audit.audit import audit
from core.audit.store import AuditStore
from core.audit.task import AuditAsked, AuditKind, audit_request
from core.erasure.store import Erasures
from core.erasure.task import ErasureKind, ErasureShape
from core.errors import InfrastructureFault
from core.model.events import PartitionId, SequenceNumber
from core.model.letters import LetterPosition
from core.model.policies import DEFAULT_DAYS
from core.purge.purge import purge_request
from core.purge.store import Purges
from core.purge.task import PurgeKind
from core.store.database import OneStream, read_time
from core.store.script import Script
from core.tasks.run import TaskKind, open_task, work_on
from core.tasks.store import Tasks
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.aggregation_engines import HOME_ACTIVITY, SqliteAggregation, finish, stage
from tests.fakes.builders import EPOCH, STREAM, event
from tests.fakes.erasing import KEY
from tests.fakes.faulty_database import Killed
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.moving import discard
from tests.simulation.histories import FIRST, Bench
from tests.simulation.trouble import DEATH_INSIDE, OF_SCRIPTS, STATEMENT_FAILS, Draw, Fault, ProcessDatabase
from tests.simulation.watch import WatchedStore

LEASE = timedelta(minutes=10)  # longer than any claim
VOLATILE = ("_at", "_until", "_id", "_by")  # ends of columns that no two runs share
STEADY = ("stream_id", "partition_id", "home_id", "sensor_id")
OF_A_READ = ("store: not reached", "death: before a statement")
OWN_TO_A_TRY = {"submits of aggregation_run", "aggregation_failure", "history of task", "task_key of task"}
BODIES = ["home a 1", "reading a", "double b", "look a", "quiet", "poison", "bug", "look b", "home b 0", "look b"]
LOG = [event(number, body) for number, body in enumerate(BODIES)]


def points_of(script: Script | None) -> list[Fault]:
    faults = [one for one in OF_SCRIPTS if one.kind in OF_A_READ] if script is None else OF_SCRIPTS
    places = range(len(script.steps)) if script is not None else ()
    inside = (STATEMENT_FAILS, DEATH_INSIDE)
    return [replace(one, place=at) for one in faults for at in (places if one in inside else (0,))]


class NthPoint:
    """Draws one fault, at the nth point."""

    def __init__(self, left: int) -> None:
        self._left, self.struck = left, cast(Fault | None, None)

    def __call__(self, script: Script | None) -> Fault | None:
        points = points_of(script)
        if self.struck is None and self._left < len(points):
            self.struck = points[self._left]
            return self.struck
        self._left -= len(points)
        return None


class Process:
    def __init__(self, bench: Bench, jobs: dict[str, str], draw: Draw = lambda _: None) -> None:
        self.bench, self.database = bench, ProcessDatabase(bench.store.database, draw)
        self.jobs = jobs  # of the engine, which outlives each process
        self.stream = OneStream(self.database, STREAM)

    def work(self, kind: TaskKind) -> None:
        ((stream_id,),) = self.bench.store.sql("SELECT MAX(stream_id) FROM event_stream")
        for task_id, name, _ in kind.tasks.read_open(stream_id):
            if name == kind.name:
                work_on(task_id, None, kind, self.bench.clock.now() + timedelta(hours=1))


class Subject(NamedTuple):
    """The subject of a sweep: `act` may be called again at any time, because a retry follows each fault."""

    prepare: Callable[[Bench], None]
    act: Callable[[Process], object]
    points: int  # at least: a sweep with fewer no longer reaches its subject
    turns: int = 2  # of the act: one for the fault, the others for the retries
    allows: tuple[str, ...] = ("nothing",)  # how the violations begin that it alone may commit


def final_state(subject: Subject, bench: Bench, point: NthPoint) -> tuple[dict[str, list[Any]], Fault | None]:
    """Return the tables after a run with one fault and its retries, without the times and ids that no runs share."""
    jobs: dict[str, str] = {}
    process = Process(bench, jobs, point)
    for _ in range(subject.turns):
        try:
            subject.act(process)
        except InfrastructureFault:
            pass
        except Killed:
            process = Process(bench, jobs)
        bench.clock.advance(LEASE.total_seconds())
    found = bench.store.sql("SELECT * FROM sim_violation")
    violations = [one for one in found if not one[0].startswith(subject.allows)]
    assert not violations, violations
    return {table: sorted(map(repr, bench.store.sql(statement))) for table, statement in statements()}, point.struck


@cache
def statements() -> list[tuple[str, str]]:
    store, found = WatchedStore(), []
    for (table,) in store.sql("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sim_%'"):
        names = [name for (name,) in store.sql(f"SELECT name FROM pragma_table_info('{table}')")]
        kept = [
            f"[{name}]"
            for name in names
            if not {table, f"{name} of {table}"} & OWN_TO_A_TRY and (name in STEADY or not name.endswith(VOLATILE))
        ]
        found += [(table, f"SELECT {', '.join(kept)} FROM {table}")] * bool(kept)
    return found


def old(bench: Bench) -> None:
    """Prepare batches, letters that were discarded, and a purge of all of them."""
    for last in (3, 6, 8, 10):
        bench.ingest(LOG[:last])
    positions = [LetterPosition(PartitionId("0"), SequenceNumber(number)) for number in range(len(LOG))]
    discard(positions, bench.keeper())
    bench.clock.advance(3 * timedelta(days=1).total_seconds())
    days = dict.fromkeys(DEFAULT_DAYS, 1)
    open_task(purge_request(bench.order, days, (PartitionId("0"),), is_dry_run=False), Tasks(bench.store.database))


def purge(process: Process) -> None:
    audits = AuditStore(process.stream, FIRST.row_classes)

    def verify(id: PartitionId, _: object) -> tuple[int, int]:
        return len(audit(audits, id).faults), audit(audits, id).partitions[0].until

    purges = Purges(process.stream)
    process.work(PurgeKind(purges, verify, (), process.bench.own, rows_of_piece=2, letters_of_piece=1))


def to_forget(bench: Bench) -> None:
    """Prepare batches, a replay that took rows away, a dry run, and the erasure of a home."""
    bench.ingest(LOG)
    for is_dry_run in (False, True):
        bench.replay(is_dry_run)
    kind = erasing(bench, OneStream(bench.store.database, STREAM))
    request = kind.request(bench.order, ErasureShape(subjects=["a"], reason="request 4711", dry_run=False))
    open_task(request, kind.tasks, kind.opening(request))


def erasing(bench: Bench, stream: OneStream) -> ErasureKind:
    store = Erasures(stream, FIRST.row_classes)
    return ErasureKind(STREAM, store, KEY, lambda _: (), bench.own, lambda: read_time(stream.database), numbers=3)


def erase(process: Process) -> None:
    process.work(erasing(process.bench, process.stream))


def audited(bench: Bench) -> None:
    bench.ingest(LOG)
    open_task(audit_request(bench.order, AuditAsked(), (PartitionId("0"),)), Tasks(bench.store.database))


class StagingEngine:
    """An engine that finishes each job at once: it stages one window under the run's id."""

    name = "fake"

    def __init__(self, bench: Bench, jobs: dict[str, str]) -> None:
        self._bench, self._jobs = bench, jobs

    def submit(self, request: JobRequest) -> str:
        arguments = dict(zip(request.arguments[::2], request.arguments[1::2], strict=True))
        run_id, staging_id = arguments["--run-id"], f"staging-{len(self._jobs)}"
        tables = SqliteAggregation(cast(Any, self._bench.store))
        stage(tables, staging_id, run_id, [HomeActivity("a", EPOCH, "motion", 3, 1, None, None, None, EPOCH, EPOCH)])
        finish(tables, staging_id, run_id, self._bench.clock.now())
        return self._jobs.setdefault(request.name, f"job of {request.name}")

    def find(self, name: str) -> str | None:
        return self._jobs.get(name)

    def state(self, job_id: str) -> JobState:
        return JobState.SUCCEEDED if job_id in self._jobs.values() else JobState.LOST

    def cancel(self, job_id: str) -> None:
        """Ignore the request: every job has ended."""

    def report(self, job_id: str) -> JobReport:
        return JobReport()


def tick(process: Process) -> None:
    engine, now = StagingEngine(process.bench, process.jobs), process.bench.clock.now
    aggregate(Aggregation(Aggregations(process.database), engine, None, now), HOME_ACTIVITY)


SUBJECTS = {
    "the pieces of a purge": Subject(old, purge, 100, allows=("DELETE of ",)),
    "the pieces of an erasure": Subject(to_forget, erase, 100),
    "the parts of an audit": Subject(
        audited, lambda one: one.work(AuditKind(AuditStore(one.stream, FIRST.row_classes), one.bench.own)), 20
    ),
    "a run of aggregation, from its plan to its commit": Subject(lambda bench: bench.ingest(LOG), tick, 40, 4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_a_fault_at_any_point_leaves_the_state_of_a_run_without_a_fault(name: str) -> None:
    subject, prepared = SUBJECTS[name], Bench(MemoryHub({"0": LOG, "1": ()}))
    subject.prepare(prepared)
    image = prepared.store.image()
    expected, _ = final_state(subject, Bench(prepared.hub, image), NthPoint(10**9))
    for number in count():
        state, fault = final_state(subject, Bench(prepared.hub, image), NthPoint(number))
        if fault is None:
            break
        differs = {table: set(rows) ^ set(expected[table]) for table, rows in state.items() if rows != expected[table]}
        assert not differs, f"point {number}, {fault.kind} (step {fault.place}): {differs}"
    assert number >= subject.points, f"the sweep of {name} has {number} points only"

"""The subjects of the nth-failure sweep: one row each, with its preparation and its act."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, cast

from core.aggregation.spark_engine import JobReport, JobRequest, JobState
from core.aggregation.store import Aggregations
from core.aggregation.tick import Aggregation, aggregate
from core.audit.audit import audit
from core.audit.store import AuditStore
from core.audit.task import AuditAsked, AuditKind, audit_request
from core.erasure.erasure import erasure_request
from core.erasure.store import Erasures
from core.erasure.task import ErasureKind
from core.errors import TaskOverlap
from core.incarnations.next_incarnation import (
    HubFits,
    IncarnationMeans,
    IncarnationOrder,
    Incarnations,
    StateDiffers,
    next_incarnation,
)
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.ingest.stalled_partitions import SilenceCheck
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import Event, PartitionId, SequenceNumber, Span
from core.model.letters import Backoff, LetterPolicy, LetterPosition
from core.model.policies import DEFAULT_DAYS
from core.purge.purge import purge_request
from core.purge.store import Purges
from core.purge.task import PurgeKind
from core.replay.task import ReplayKind
from core.settle.partition_store import Partitions
from core.store.database import OneStream
from core.tasks.run import TaskKind, open_parts, open_task, work_on
from core.tasks.store import Tasks
from core.tasks.task import TaskOrder
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.aggregation_engines import HOME_ACTIVITY, SqliteAggregation, finish, stage
from tests.fakes.builders import EPOCH, STREAM, batch, event, partition
from tests.fakes.erasing import KEY
from tests.fakes.moving import discard, drive
from tests.fakes.replaying import order, request_replay
from tests.fakes.store import Store
from tests.simulation.deployments import TRANSFORMS
from tests.simulation.sweep import Bench, Process, Subject

BODIES = ["home a 1", "reading a", "double b", "look a", "quiet", "poison", "bug", "look b", "home b 0", "look b"]
WITH_REFUSED = [*BODIES[:4], "huge a", "reading b", "huge b"]
FEW_TRIES = LetterPolicy(Backoff(attempts=2), chunk=3)
HOLDING = LetterPolicy(order="hold_key")
FIRST, SECOND = TRANSFORMS[0], TRANSFORMS[1]
GRACE = timedelta(seconds=30)
MOST = 10**6
BLANKED = tuple(f"UPDATE of {table}" for table in ("batch_ledger", "dead_letter_attempt", "retracted_row"))


def _log(bodies: Iterable[str]) -> list[Event]:
    return [event(number, body) for number, body in enumerate(bodies)]


def _means(process: Process) -> Ingestion:
    return Ingestion(process.store, FIRST, process.bench.own, GapReading(process.bench.hub), FEW_TRIES)


def _held(bodies: list[str], gone: Iterable[int] = ()) -> Callable[[Bench], None]:
    """Return a preparation: the hub holds a log without the lost events."""

    def prepare(bench: Bench) -> None:
        bench.hub.publish("0", _log(bodies))
        bench.hub.lose("0", *gone)

    return prepare


def _committed(bodies: list[str], upto: int) -> Callable[[Bench], None]:
    """Return a preparation: the hub holds a log, of which the first events are committed."""

    def prepare(bench: Bench) -> None:
        _held(bodies)(bench)
        ingest_batch(batch(_log(bodies)[:upto], partition()), _means(Process(bench)))

    return prepare


def _ingest(bodies: list[str], first: int = 0) -> Callable[[Process], object]:
    """Return the act of the host: it hands over the events from a number on, repeatedly."""
    return lambda process: ingest_batch(batch(_log(bodies)[first:], partition()), _means(process))


def _look(process: Process) -> None:
    check = SilenceCheck(replace(_means(process), store=Store(process.database)), GRACE)
    for _ in range(2):
        for _ in check.run("timer"):
            pass
        process.bench.clock.advance(2 * GRACE.total_seconds())


def _keep(process: Process) -> None:
    bench = process.bench
    keeper = Keeper(STREAM, process.store, SECOND, bench.hub.find_event, bench.own, FEW_TRIES)
    for chunk in claim_due(keeper):
        retry_chunk(chunk, keeper, "activity")


def _in_two_partitions(bench: Bench) -> None:
    """Prepare letters in two partitions: a redrive of them has a piece in each."""
    _committed(BODIES, len(BODIES))(bench)
    ingest_batch(batch(_log(BODIES), partition("1")), _means(Process(bench)))


def _discard(process: Process) -> None:
    bench = process.bench
    keeper = Keeper(STREAM, process.store, FIRST, bench.hub.find_event, bench.own, FEW_TRIES)
    positions = [
        LetterPosition(PartitionId(id), SequenceNumber(number)) for id in "01" for number in range(len(BODIES))
    ]
    drive(keeper)
    discard(positions, keeper)


def _replays(process: Process) -> ReplayKind:
    bench = process.bench
    return ReplayKind(STREAM, process.store, bench.hub, SECOND, bench.own, FEW_TRIES, piece=4)


def _replay(is_dry_run: bool, bodies: list[str] = BODIES) -> Callable[[Bench], None]:
    """Return a preparation: everything is committed, and a replay of it is requested."""

    def prepare(bench: Bench) -> None:
        _committed(bodies, len(bodies))(bench)
        request_replay(order(dry_run=is_dry_run), _replays(Process(bench)), MOST)

    return prepare


def _request(process: Process) -> None:
    """Request a replay until there is an answer, as a person does."""
    if not process.bench.store.sql("SELECT 1 FROM task"):
        with suppress(TaskOverlap):
            request_replay(order(), _replays(process), MOST)


def _drive(process: Process) -> None:
    means, bench = _replays(process), process.bench
    for job_id in process.store.read_open_tasks(STREAM):
        for id in open_parts(job_id, means):
            work_on(job_id, id, means, bench.clock.now() + timedelta(seconds=10))


def _old(bench: Bench) -> None:
    """Prepare batches, letters that were discarded, and a purge of all of them."""
    for last in (3, 6, 8, 10):
        _ingest(BODIES[:last])(Process(bench))
    _discard(Process(bench))
    bench.clock.advance(3 * timedelta(days=1).total_seconds())
    days, tasks = dict.fromkeys(DEFAULT_DAYS, 1), Tasks(bench.store.database)
    open_task(purge_request(_of_a_person(bench), days, (PartitionId("0"),), is_dry_run=False), tasks)


def _to_forget(bench: Bench) -> None:
    """Prepare batches, a replay that took rows away, a dry run, and the erasure of a home."""
    _committed(BODIES, len(BODIES))(bench)
    for dry_run in (False, True):
        _replay(is_dry_run=dry_run)(bench)
        _drive(Process(bench))
    spans = {PartitionId("0"): Span(SequenceNumber(0), SequenceNumber(len(BODIES) - 1))}
    open_task(erasure_request(_of_a_person(bench), ("a",), spans, is_dry_run=False), Tasks(bench.store.database))


def _audited(bench: Bench) -> None:
    """Prepare a ledger, and an audit of it."""
    _committed(BODIES, len(BODIES))(bench)
    open_task(audit_request(_of_a_person(bench), AuditAsked(), (PartitionId("0"),)), Tasks(bench.store.database))


def _of_a_person(bench: Bench) -> TaskOrder:
    return TaskOrder(bench.own.new_id(), Process(bench).store.open_stream(STREAM), "somebody", "why", bench.clock.now())


def _purge(process: Process) -> None:
    bench, audits = process.bench, AuditStore(OneStream(process.database, STREAM), FIRST.row_classes)
    kind = PurgeKind(
        Purges(OneStream(process.database, STREAM)),
        lambda id, _: (len(audit(audits, id).faults), audit(audits, id).partitions[0].until),
        (),
        bench.own,
        rows_of_piece=2,
        letters_of_piece=1,
    )
    _work_on_all(kind, bench)


def _erase(process: Process) -> None:
    store = Erasures(OneStream(process.database, STREAM), FIRST.row_classes)
    sleep = process.bench.clock.sleep
    _work_on_all(ErasureKind(STREAM, store, KEY, lambda _: (), process.bench.own, sleep, numbers=3), process.bench)


def _audit(process: Process) -> None:
    audits = AuditStore(OneStream(process.database, STREAM), FIRST.row_classes)
    _work_on_all(AuditKind(audits, process.bench.own), process.bench)


def _work_on_all(kind: TaskKind, bench: Bench) -> None:
    ((stream_id,),) = bench.store.sql("SELECT MAX(stream_id) FROM event_stream")
    for task_id, name, _ in kind.tasks.read_open(stream_id):
        if name == kind.name:
            work_on(task_id, None, kind, bench.clock.now() + timedelta(hours=1))


def _in_order(bench: Bench) -> None:
    """Prepare a key whose first event is a letter."""
    means = replace(_means(Process(bench)), letters=HOLDING)
    ingest_batch(batch([event(0, "bug", key="a")], partition()), means)


def _ingest_in_order(process: Process) -> None:
    given = [event(number, "reading a", key=key) for number, key in enumerate(["a", "b", "a", "a"], 1)]
    ingest_batch(batch(given, partition()), replace(_means(process), letters=HOLDING))


def _free(process: Process) -> None:
    bench = process.bench
    keeper = Keeper(STREAM, process.store, FIRST, bench.hub.find_event, bench.own, HOLDING)
    drive(keeper)
    discard([LetterPosition(PartitionId("0"), SequenceNumber(0))], keeper)


def _held_in_order(bench: Bench) -> None:
    _in_order(bench)
    _ingest_in_order(Process(bench))


def _recreated(bench: Bench) -> None:
    """Prepare a stream whose hub was replaced by a different one."""
    _committed(BODIES, 4)(bench)
    store = Process(bench).store
    store.adopt_hub(store.read_incarnation(STREAM), bench.hub.made_at)
    bench.hub.recreate_hub(bench.clock.now())


def _succeed(process: Process) -> None:
    database, bench = process.database, process.bench
    means = IncarnationMeans(STREAM, Incarnations(database, Partitions(database)), bench.hub, bench.own)
    with suppress(StateDiffers, HubFits):
        next_incarnation(IncarnationOrder("somebody", "the hub was recreated", 1, is_dry_run=False), means)


@dataclass(slots=True)
class StagingEngine:
    """An engine that finishes each job at once: it stages one window under the run's id."""

    bench: Bench
    name: str = "fake"

    def submit(self, request: JobRequest) -> str:
        arguments = dict(zip(request.arguments[::2], request.arguments[1::2], strict=True))
        run_id, staging_id = arguments["--run-id"], f"staging-{len(self.bench.jobs)}"
        tables = SqliteAggregation(cast(Any, self.bench.store))
        stage(tables, staging_id, run_id, [HomeActivity("a", EPOCH, "motion", 3, 1, None, None, None, EPOCH, EPOCH)])
        finish(tables, staging_id, run_id, self.bench.clock.now())
        self.bench.jobs[request.name] = f"job of {request.name}"
        return self.bench.jobs[request.name]

    def find(self, name: str) -> str | None:
        return self.bench.jobs.get(name)

    def state(self, job_id: str) -> JobState:
        return JobState.SUCCEEDED if job_id in self.bench.jobs.values() else JobState.LOST

    def cancel(self, job_id: str) -> None:
        """Ignore the request: every job has ended."""

    def report(self, job_id: str) -> JobReport:
        return JobReport()


def _tick(process: Process) -> None:
    bench = process.bench
    aggregate(Aggregation(Aggregations(process.database), StagingEngine(bench), None, bench.clock.now), HOME_ACTIVITY)


SUBJECTS = {
    "the first batch of a partition": Subject(_held(BODIES), _ingest(BODIES), 40),
    "a batch": Subject(_committed(BODIES, 3), _ingest(BODIES), 20),
    "a batch with rows that the database refuses": Subject(
        _held(WITH_REFUSED), _ingest(WITH_REFUSED), 100, counts_commits=False
    ),
    "a gap": Subject(_committed(BODIES, 2), _ingest(BODIES, 6), 40),
    "a gap whose events are gone": Subject(_held(BODIES, gone=(0, 1, 3, 4)), _ingest(BODIES, 7), 40),
    "a gap at the end": Subject(_committed(BODIES, 2), _look, 40, 3, counts_commits=False),
    "a gap at the end whose events are gone": Subject(_held(BODIES, gone=(3, 9)), _look, 40, 3, counts_commits=False),
    "a claim and its retries": Subject(_committed([*BODIES, "huge a"], 11), _keep, 60, 4, counts_commits=False),
    "a batch of which a key waits for a letter": Subject(_in_order, _ingest_in_order, 20),
    "a discard that frees the letters of its key": Subject(_held_in_order, _free, 10),
    "the next incarnation": Subject(_recreated, _succeed, 20),
    "a move of letters": Subject(_in_two_partitions, _discard, 120),
    "the request of a replay": Subject(_committed(BODIES, len(BODIES)), _request, 10),
    "the pieces of a replay": Subject(_replay(is_dry_run=False), _drive, 100),
    "the pieces of a replay with rows that the database refuses": Subject(
        _replay(is_dry_run=False, bodies=WITH_REFUSED), _drive, 100
    ),
    "the pieces of a purge": Subject(_old, _purge, 100, allows=("DELETE of ",)),
    "the pieces of an erasure": Subject(_to_forget, _erase, 100, allows=BLANKED),
    "the parts of an audit": Subject(_audited, _audit, 20),
    "a dry run": Subject(_replay(is_dry_run=True), _drive, 60),
    "a run of aggregation, from its plan to its commit": Subject(_committed(BODIES, len(BODIES)), _tick, 40, 4),
}

"""A stream in memory for the explorer: its hub, its processes, and the checks of the promise."""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from sqlite3 import Connection
from types import SimpleNamespace
from typing import Any, cast
from zlib import crc32

from msgspec import structs

from core.aggregation.spark_engine import JobReport, JobRequest, JobState
from core.aggregation.store import Aggregations
from core.aggregation.tick import Aggregation, aggregate
from core.audit.audit import audit
from core.audit.store import AuditStore
from core.audit.task import AuditKind, AuditShape
from core.erasure.task import ErasureShape
from core.errors import StreamIncarnationChanged
from core.incarnations.next_incarnation import HubFits
from core.ingest.ingest import ingest_batch
from core.ingest.stalled_partitions import SilenceCheck
from core.ledger.explain import Explanations, explain
from core.letters.retry import claim_due, next_due_at, retry_chunk
from core.model.events import Event, Partition, PartitionId, SequenceNumber
from core.model.letters import Backoff, LetterPolicy, LetterPosition
from core.model.policies import DEFAULT_DAYS
from core.model.ports import Extent, Place, utc_text
from core.purge.purge import purge_of
from core.purge.store import Purges
from core.purge.task import PurgeKind, PurgeShape
from core.store.database import OneStream
from core.tasks.run import TaskKind, open_parts, work_on
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.exploration.explorer import NestedDatabase, Outside, Process, Promise
from tests.fakes.aggregation_engines import HOME_ACTIVITY, SqliteAggregation, finish, stage
from tests.fakes.builders import EPOCH, NOON, STREAM, FakeClock, batch, partition, stamps
from tests.fakes.erasing import KEY, events_of
from tests.fakes.memory_hub import MemoryHub
from tests.fakes.replaying import discard, order, request_replay
from tests.fakes.store import Store
from tests.simulation.deployments import TRANSFORMS
from tests.simulation.operators import AppProcess
from tests.simulation.oracle import Forgotten, Truth, check
from tests.simulation.watch import KeyOrderWatch, WatchedStore, steady_tables

FIRST, SECOND = TRANSFORMS[0], TRANSFORMS[1]
DAY = 86_400.0  # seconds
LEASE = 400.0  # seconds: longer than any claim, and than the pause before any retry
BODIES = ("home one-1 1", "bug one-1", "look one-1", "poison", "double one-1", "quiet", "reading one-1", "home two-2 0")
LOG = tuple(events_of(*BODIES))
RECREATED = NOON + timedelta(seconds=LEASE + 10)  # when the hub's next life begins
NEXT_LOG = tuple(
    structs.replace(one, enqueued_at=RECREATED + timedelta(seconds=one.sequence_number))
    for one in events_of(*BODIES[4:8])
)
FEW_TRIES = LetterPolicy(Backoff(attempts=2), chunk=3, fan_out=2)
STOPS = "SELECT reason, detail FROM partition_stop JOIN event_stream USING (stream_id) WHERE closed_at IS NULL"
IN_THE_WAY = (  # exhausted letters that held letters of the same key wait for
    "SELECT DISTINCT o.sequence_number FROM event_hub_dead_letter AS o JOIN event_hub_dead_letter AS h"
    " ON (h.stream_id, h.partition_id, h.held_behind) = (o.stream_id, o.partition_id, o.sequence_number)"
    " WHERE o.status = 'exhausted' AND h.status = 'held'"
)
GONE = (  # the ledger rows and the letters that were there
    "SELECT MAX(l.commit_number) - COUNT(*),"
    " (SELECT c.letters FROM event_hub_checkpoint AS c) - (SELECT COUNT(*) FROM event_hub_dead_letter)"
    " FROM batch_ledger AS l"
)
STAGED = ("home_activity_staged", "staged_slice", "staged_result")  # the tables that a job writes
MOST_TURNS = 40  # until no work is open


class Alone:
    """A process that nobody interrupts. It prepares a configuration, and later brings it to rest."""

    def __init__(self, database: NestedDatabase) -> None:
        self.database, self.clock = database, FakeClock()
        self.clock.advance(database.outside.seconds)
        self.ask, self.run = database.ask, database.run

    def change_outside(
        self, _: str, outside: Outside, act: Callable[[], object] = lambda: None, writes: Iterable[str] = ()
    ) -> None:
        act()
        self.clock.seconds, self.database.outside = outside.seconds, outside

    def read_hub(self, _: str, read: Callable[[int], Any]) -> Any:
        return read(self.database.outside.life)

    def close(self) -> None:
        """Keep the database."""

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.database.outside = self.database.outside._replace(seconds=self.clock.seconds)


class HubInTurns:
    """The lives of a hub, as a process reads them: each read is a turn."""

    def __init__(self, lives: Sequence[MemoryHub], process: Process | Alone) -> None:
        self._lives, self._process = lives, process

    def partitions(self) -> tuple[Partition, ...]:
        return self._read("ask the hub for its partitions", lambda hub: hub.partitions())

    def created_at(self) -> datetime:
        return self._read("ask the hub when it was created", lambda hub: hub.created_at())

    def extent(self, partition: Partition) -> Extent:
        return self._read("ask the hub for its ends", lambda hub: hub.extent(partition))

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        return self._read(f"ask the hub for its first event at {place}", lambda hub: hub.first_at(partition, place))

    def find_event(self, partition: Partition, sequence_number: SequenceNumber) -> Event | None:
        return self._read(
            f"ask the hub for event {sequence_number}", lambda hub: hub.find_event(partition, sequence_number)
        )

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        yield from self._read(
            f"ask the hub for events {first} to {last}",
            lambda hub: list(hub.read_range(partition, first, last, deadline)),
        )

    def _read(self, name: str, read: Callable[[MemoryHub], Any]) -> Any:
        return self._process.read_hub(name, lambda life: read(self._lives[life]))


class StagedTables(SqliteAggregation):
    """The tables of staged results, written inside the savepoints of the search."""

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        for row in rows:
            self.sqlite.sql(f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(row))})", *row)


class StagingEngine:
    """A Spark engine that finishes each job at once: it stages one window. A job that runs twice has two results."""

    name = "fake"

    def __init__(self, world: "World", process: Process | Alone) -> None:
        self._world, self._process = world, process

    def submit(self, request: JobRequest) -> str:
        arguments = dict(zip(request.arguments[::2], request.arguments[1::2], strict=True))
        act = partial(self._stage, request.name, arguments["--run-id"])
        self._process.change_outside(f"{request.name} stages a window", self._world.database.outside, act, STAGED)
        return request.name

    def _stage(self, name: str, run_id: str) -> None:
        tables: Any = StagedTables(cast(Any, self._world.watched))
        staging_id = f"{name}{' again' * tables.count('staged_result')}"
        stage(tables, staging_id, run_id, [HomeActivity("a", EPOCH, "motion", 3, 1, None, None, None, EPOCH, EPOCH)])
        finish(tables, staging_id, run_id, self._process.clock.now())

    def find(self, name: str) -> str | None:
        staged = "SELECT staging_id FROM staged_result WHERE staging_id = ?"
        found = self._process.read_hub(f"ask the engine for {name}", lambda _: self._world.watched.sql(staged, name))
        return name if found else None

    def state(self, _: str) -> JobState:
        return JobState.SUCCEEDED

    def cancel(self, job_id: str) -> None:
        """Ignore the request: every job has ended."""

    def report(self, job_id: str) -> JobReport:
        return JobReport()


class Hands(AppProcess):
    """A process of the exploration. `name` decides its ids."""

    process: Process | Alone

    def __init__(self, world: "World", process: Process | Alone, name: str) -> None:
        direct, hub = Store(process), HubInTurns(world.lives, process)
        direct.erasure_key = KEY
        own = stamps(crc32(name.encode()), process.clock)
        super().__init__(process, direct, hub, own, process.clock, (FIRST, SECOND), world.policy, piece=2, numbers=4)
        self.world = world
        self.audit_store = AuditStore(self.stream, FIRST.row_classes)
        self.audits = AuditKind(self.audit_store, self.clock)
        purges = Purges(self.stream)
        self.purges = PurgeKind(purges, self._verify, (), self.clock, rows_of_piece=2, letters_of_piece=1)

    def deliver(self, events: Sequence[Event], retries: int = 0, group: str = STREAM.consumer_group) -> None:
        ingest_batch(replace(batch(events, partition(group=group)), retries=retries), self.means)

    def retry(self) -> None:
        for chunk in claim_due(self.keeper):
            retry_chunk(chunk, self.keeper, "an activity")

    def work(self, kind: TaskKind) -> None:
        """Drive each open task of a kind to its end, as one orchestration does."""
        for task_id, name, _ in kind.tasks.read_open(self.stream_id):
            while name == kind.name and (parts := open_parts(task_id, kind)):
                for part in parts:
                    work_on(task_id, part, kind, self.clock.now() + timedelta(minutes=1))

    def tick(self) -> None:
        engine, now = StagingEngine(self.world, self.process), self.process.clock.now
        aggregate(Aggregation(Aggregations(self.process), engine, None, now), HOME_ACTIVITY)

    def heal(self) -> None:
        """Look for gaps at the end, as the timer does, when the partition has stood for long enough."""
        list(SilenceCheck(self.fresh, timedelta()).run("timer"))

    def ask_replay(self, dry_run: bool = False) -> None:
        request_replay(order(["0"], dry_run=dry_run), self.replays, 1_000)

    def ask_erasure(self, subject: str) -> None:
        self.open(self.erasures, ErasureShape(subjects=[subject], reason="request 4711", dry_run=False))

    def ask_audit(self) -> None:
        self.open(self.audits, AuditShape())

    def ask_purge(self) -> None:
        days = dict.fromkeys(DEFAULT_DAYS, 1)
        self.open(self.purges, PurgeShape(older_than_days=days, reason="request 4711", dry_run=False))

    def _verify(self, id: PartitionId, _: object) -> tuple[int, int]:
        found = audit(self.audit_store, id)
        return len(found.faults), found.partitions[0].until

    def discard(self, *numbers: int) -> None:
        discard([LetterPosition(PartitionId("0"), SequenceNumber(number)) for number in numbers], self.keeper)


class World:
    """A database, a hub, and the checks of the promise. `subjects` are all that an erasure may name."""

    groups: tuple[str, ...] = (STREAM.consumer_group,)  # at the end, the stream of each gets all events

    def __init__(self, *logs: Sequence[Event], policy: LetterPolicy = FEW_TRIES, subjects: Iterable[str] = ()) -> None:
        self.lives = [MemoryHub({"0": log}) for log in logs]
        for hub in self.lives[1:]:
            hub.made_at = RECREATED
        self.policy, self.subjects = policy, tuple(subjects)
        self.watched = WatchedStore()
        self.database = NestedDatabase(self.watched._connection)
        if policy.order == "hold_key":
            self._watch_order()
        self.alone = Alone(self.database)
        self.hands = Hands(self, self.alone, "the one who prepares")
        self.promise = Promise(self.check_each, self.check_end)

    def _watch_order(self) -> None:
        """Check at each commit that it keeps the order of each partition key."""
        (hub,), unwatched = self.lives, self.database
        plain: Any = SimpleNamespace(ask=unwatched.ask, run=unwatched.run, close=unwatched.close)
        watch = KeyOrderWatch(plain, self.watched.sql, lambda _, id, number: hub.held[id][number].key)
        self.database.run = watch.run  # type: ignore[method-assign]

    def truths(self, is_at_rest: bool) -> list[Truth]:
        found = self.watched.sql("SELECT stream_id, hub_created_at, closed_at, consumer_group FROM event_stream")
        hubs = {utc_text(hub.made_at): hub for hub in self.lives}
        return [
            Truth(
                id,
                "0",
                {int(number): one for number, one in hub.held["0"].items()},
                hub.last["0"] if is_at_rest and not closed and group == STREAM.consumer_group else None,
                set(hub.held["0"]) if self.lives.index(hub) < self.database.outside.life else set(),
                set(),
            )
            for id, made, closed, group in found
            if (hub := hubs.get(made)) is not None
        ]

    def check_each(self, _: Outside) -> None:
        """Check that each number has one outcome, and that rows and totals agree with the outcomes."""
        assert not (found := self.watched.sql("SELECT kind, detail FROM sim_violation")), found
        forgotten = Forgotten(self.watched.sql, self.subjects, [KEY.secret])
        check(self.watched.sql, self.truths(is_at_rest=False), set(), forgotten, self.policy.order == "hold_key")

    def check_end(self, outside: Outside) -> None:
        """Let the app finish its open work. Then check that nothing is lost, and that nothing erased is back."""
        hands = self._after(outside)
        for _ in range(MOST_TURNS):
            self.alone.advance(LEASE)
            if self._rested(hands, outside.life):
                break
        else:
            raise AssertionError("it does not come to rest")
        assert not (found := self.watched.sql("SELECT kind, detail FROM sim_violation")), found
        assert not (stops := self.watched.sql(STOPS)), ("stopped at rest", stops)
        forgotten, truths = Forgotten(self.watched.sql, self.subjects, [KEY.secret]), self.truths(is_at_rest=True)
        check(self.watched.sql, truths, set(), forgotten, self.policy.order == "hold_key")
        if forgotten.ever:
            forgotten.search(self._copy_to, truths, "")

    def _after(self, outside: Outside) -> Hands:
        """Return the process that comes after all others have ended."""
        self.alone.change_outside("", outside)
        return Hands(self, self.alone, "the one who comes after")

    def _copy_to(self, other: Connection) -> None:
        """Copy the rows of all tables: an image has only what is committed."""
        for name, text in self.watched.sql("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"):
            other.execute(text)
            if rows := self.watched.sql(f"SELECT * FROM {name}"):
                other.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)

    def _rested(self, hands: Hands, life: int) -> bool:
        """Deliver, heal, retry and drive once. Return True when no work is open any more."""
        hub = self.lives[life].held["0"]
        kinds = (hands.replays, hands.erasures, hands.redrives)
        turns: list[Callable[[], None]] = [
            partial(hands.deliver, tuple(hub.values()), group=one) for one in self.groups
        ]
        turns += [hands.heal, hands.retry, *(partial(hands.work, kind) for kind in kinds)]
        for turn in turns:
            with suppress(StreamIncarnationChanged):  # a person has to open the next one first
                turn()
        if any(reason == "incarnation" for reason, _ in self.watched.sql(STOPS)):
            with suppress(HubFits):
                hands.succeed()
            return False
        if found := self.watched.sql(IN_THE_WAY):  # a person settles them
            hands.discard(*(number for (number,) in found))
            return False
        open_work = "SELECT 1 FROM task WHERE status IN ('planned', 'running', 'paused')"
        return not self.watched.sql(open_work) and next_due_at(hands.keeper) is None


class PurgedWorld(World):
    """A world in which a purge deletes old ledger rows. An audit at any time must find no fault in the rest."""

    def check_each(self, _: Outside) -> None:
        found = self.watched.sql("SELECT kind, detail FROM sim_violation WHERE kind NOT LIKE 'DELETE of %'")
        assert not found, found
        faults = audit(self.hands.audit_store, None).faults
        assert not faults, faults
        told = self.watched.sql(
            "SELECT report ->> 'faults' FROM task_part JOIN task USING (task_id)"
            " WHERE kind = 'audit' AND report <> '{}'"
        )
        assert set(told) <= {("[]",)}, told
        kept = self.watched.sql(
            "SELECT first_sequence_number, last_sequence_number FROM batch_ledger WHERE kind = 'batch'"
        )
        explanations = Explanations(OneStream(self.alone, STREAM), FIRST.row_classes)
        for number in range(self.hands.direct.read_partition(partition()).next_number):
            told_of = explain(PartitionId("0"), SequenceNumber(number), explanations)
            assert told_of is not None and told_of.outcome not in ("missing", "not_yet", "before_first"), (
                number,
                told_of,
            )
            is_kept = any(first <= number <= last for first, last in kept)
            assert ("Its ledger row was purged" in told_of.sentence) != is_kept, (number, told_of.sentence)

    def check_end(self, outside: Outside) -> None:
        hands = self._after(outside)
        for kind in (hands.purges, hands.audits):
            hands.work(kind)
        self._rested(hands, outside.life)
        self.check_each(outside)
        said: Counter[str] = Counter()
        for task in hands.direct.tasks.read(hands.stream_id, 10, kind="purge"):
            said.update({table: found.rows for table, found in purge_of(task).found.items()})
        assert self.watched.sql(GONE) == [(said["batch_ledger"], said["event_hub_dead_letter"])], said


class OneEndWorld(PurgedWorld):
    """A world whose task must end with the same tables in every schedule. Times, ids and names may differ."""

    end: dict[str, list[str]] | None = None  # of the first schedule, which has no fault

    def check_end(self, outside: Outside) -> None:
        hands = self._after(outside)
        for kind in (hands.purges, hands.erasures, hands.audits):
            hands.work(kind)
        self.check_each(outside)
        found = steady_tables(self.watched)
        self.end = self.end or found
        differs = {name: (self.end[name], rows) for name, rows in found.items() if rows != self.end[name]}
        assert not differs, differs


class AggregatedWorld(OneEndWorld):
    """A world whose aggregation goes on when every claim of a tick has ended."""

    def check_end(self, outside: Outside) -> None:
        hands = self._after(outside)
        for _ in range(3):
            self.alone.advance(600.0)
            hands.tick()
        super().check_end(self.database.outside)

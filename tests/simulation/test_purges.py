"""Whatever happens during a purge, what stays and what the checkpoints say still account for every number.

A world of replays in which old rows are purged in small pieces, by workers that die and are cancelled, among redrives.
A trigger copies each row that goes. Repeat a world with `pytest -k seed7`.
"""

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from core.audit.audit import Reading, audit, recount_rows
from core.errors import TaskOverlap, TooManyTasks
from core.ledger.explain import explain
from core.ledger.store import read_books
from core.letters.listing import LetterChoice, LetterListing
from core.letters.redrive import LetterOrder, RedriveKind
from core.model.events import PartitionId, SequenceNumber, Span
from core.model.letters import OrderedMove
from core.model.policies import DEFAULT_DAYS
from core.purge.purge import purge_of, purge_request
from core.purge.task import PurgeKind
from core.store.database import OneStream
from core.tasks.run import open_task, work_on
from core.tasks.statuses import TaskMove
from core.tasks.task import TaskOrder
from tests.fakes.builders import STREAM
from tests.fakes.engines import SqliteEngine
from tests.fakes.operator_stores import OperatorStores, operator_stores
from tests.fakes.redriving import request_redrive
from tests.fakes.store import Store
from tests.simulation.faults import ProcessDatabase
from tests.simulation.histories import MINUTE, ROW_CLASSES, ReplayWorld
from tests.simulation.seeds import seeds

DAY = 86_400.0
COPIED = ("batch_ledger", "event_hub_dead_letter", "dead_letter_attempt", "retracted_row")
SUMS = """
    SELECT MAX(commit_number), MAX(last_sequence_number) FILTER (WHERE kind = 'batch'),
           (SELECT COUNT(*) FROM gone_event_hub_dead_letter WHERE partition_id = ?1 AND replay_commit_number IS NULL),
           (SELECT COUNT(replay_commit_number) FROM gone_event_hub_dead_letter WHERE partition_id = ?1)
      FROM gone_batch_ledger WHERE partition_id = ?1
"""


class PurgeWorld(ReplayWorld):
    """`met` counts what happened."""

    steps = 140

    def __init__(self, seed: int, engine: SqliteEngine) -> None:
        store = engine.open()
        super().__init__(seed, store)
        self.sql = engine.sql
        self.desk = self._desk(store.database)
        self.met: Counter[str] = Counter()
        for table in COPIED:
            columns = [f"OLD.{name}" for (name,) in self.sql(f"SELECT name FROM pragma_table_info('{table}')")]
            self.sql(f"CREATE TABLE gone_{table} AS SELECT * FROM {table}")
            values = f"INSERT INTO gone_{table} VALUES ({', '.join(columns)})"
            self.sql(f"CREATE TRIGGER copy_{table} AFTER DELETE ON {table} BEGIN {values}; END")

    def _acts(self) -> list[Any]:
        return [
            *super()._acts(),
            lambda: self.clock.advance(self.chance.choice([600.0, DAY, 3 * DAY])),
            *[lambda: self._request(self._desk(self._troubled().database), self.chance.random() < 0.2)] * 2,
            self._redrive,
            self._cancel,
            *[self._work] * 5,
        ]

    @property
    def stream_id(self) -> int:
        return self.desk.purges.stream.find() or 0

    def _desk(self, database: Any) -> OperatorStores:
        return operator_stores(database, STREAM, ROW_CLASSES)

    def _open(self, kind: str) -> list[UUID]:
        return [id for id, name, _ in self.desk.tasks.read_open(self.stream_id) if name == kind]

    def _request(self, desk: OperatorStores, is_dry_run: bool) -> None:
        if not self.stream_id:
            return  # there is no commit yet
        if not self._open("purge"):
            self.clock.advance(2 * DAY)
        days = {**dict.fromkeys(DEFAULT_DAYS, 1), "task": 36_500}
        order = TaskOrder(self._own.new_id(), self.stream_id, "ann", "room", self.clock.now())
        with suppress(TaskOverlap):
            request = purge_request(order, days, desk.purges.read_purge_partitions(), is_dry_run=is_dry_run)
            open_task(request, desk.tasks)

    def _work(self) -> None:
        """Let one of several workers work for a while; others act between any two of its calls."""
        process = self._troubled().database
        try:
            self._go_on("purge", self._purging(self._desk(process)))
        finally:
            self.met["a worker died"] += cast(ProcessDatabase, process).is_dead

    def _purging(self, desk: OperatorStores) -> PurgeKind:
        def verify(id: PartitionId, until: Any) -> tuple[int, int]:
            done = audit(desk.audits, id, Reading(lambda: self.clock.now() >= until, piece=3))
            assert not done.faults, done.faults
            return 0, done.partitions[0].until

        rows, letters = self.chance.randint(1, 4), self.chance.randint(1, 3)
        return PurgeKind(desk.purges, verify, (), self._own, rows_of_piece=rows, letters_of_piece=letters)

    def _cancel(self) -> None:
        for task_id in self._open("purge"):
            cancelled = self.desk.tasks.move(TaskMove(task_id, "cancel", "ann", "stop", self.clock.now()))
            self.met["a purge was cancelled"] += cancelled

    def _redrive(self) -> None:
        """Discard or requeue all letters by a job, or go on with one."""
        kind = self._redriving(self._troubled())
        status = self.chance.choice(["exhausted", "waiting"])
        move: OrderedMove = self.chance.choice(["requeue", "discard", "discard"])
        ((count,),) = self.sql("SELECT COUNT(*) FROM event_hub_dead_letter WHERE status = ?", status)
        with suppress(TaskOverlap, TooManyTasks):
            request_redrive(LetterOrder(move, LetterChoice(status=cast(Any, status)), count), kind, "bob")
        self._go_on("redrive", kind)

    def _redriving(self, store: Store) -> RedriveKind:
        return RedriveKind(STREAM, store, LetterListing(OneStream(store.database, STREAM)), self._own, lambda _: None)

    def _go_on(self, name: str, kind: Any) -> None:
        for task_id in self._open(name):
            work_on(task_id, None, kind, self.clock.now() + MINUTE)

    def _end(self) -> None:
        """End all jobs; then age the store, and purge all that may go."""
        super()._end()
        self._go_on("redrive", self._redriving(self.record))
        for _ in range(3):
            self.clock.advance(2 * DAY)
            self._request(self.desk, is_dry_run=False)
            while self._open("purge"):
                self._go_on("purge", self._purging(self.desk))


def purged(seed: int, path: Path) -> PurgeWorld:
    print(f"seed {seed}")
    world = PurgeWorld(seed, SqliteEngine(path))
    world.run()
    return world


@pytest.mark.parametrize("seed", seeds(range(30), 4), ids="seed{}".format)
def test_a_purged_world_balances_and_every_purged_number_says_so(seed: int, tmp_path: Path) -> None:
    world = purged(seed, tmp_path / "store.db")
    assert_balanced(world)
    assert_explained(world)
    said: Counter[str] = Counter()
    for task in world.desk.tasks.read(world.stream_id, 1_000, kind="purge"):
        if not task.is_dry_run:
            said.update({table: found.rows for table, found in purge_of(task).found.items()})
    for table in COPIED[:2]:
        assert world.sql(f"SELECT COUNT(*) FROM gone_{table}") == [(said[table],)], table
    counted = world.sql(
        "SELECT partition_id, purged_commit, purged_to, purged_letters, purged_replay_letters"
        " FROM event_hub_checkpoint WHERE purged_commit > 0 ORDER BY partition_id"
    )
    gone = world.sql("SELECT DISTINCT partition_id FROM gone_batch_ledger ORDER BY 1")
    assert [(id, *sums) for id, *sums in counted] == [(id, *sums) for (id,) in gone for sums in world.sql(SUMS, id)]


def assert_balanced(world: PurgeWorld) -> None:
    done = audit(world.desk.audits, None)
    assert done.faults == ()
    for one in done.partitions:
        assert recount_rows(one, Span(SequenceNumber(0), one.ledger.checkpoint), world.desk.audits).faults == ()
    assert read_books(world.desk.ledger).balanced


def assert_explained(world: PurgeWorld) -> None:
    gone = {
        (id, number)
        for id, first, last in world.sql(
            "SELECT partition_id, first_sequence_number, last_sequence_number FROM gone_batch_ledger"
            " WHERE kind = 'batch'"
        )
        for number in range(first, last + 1)
    }
    for id, last in world.sql("SELECT partition_id, sequence_number FROM event_hub_checkpoint"):
        for number in range(last + 1):
            found = explain(PartitionId(id), SequenceNumber(number), world.desk.explanations)
            assert found is not None
            assert found.outcome not in ("missing", "not_yet", "before_first"), (id, number)
            said = "Its ledger row was purged" in found.sentence
            assert said == ((id, number) in gone), (id, number, found.sentence)


REPLAYED = (
    "SELECT t.task_id FROM task_part AS p JOIN task AS t ON t.task_id = p.task_id JOIN event_hub_checkpoint AS c"
    " ON c.stream_id = t.stream_id AND c.partition_id = p.part WHERE t.kind = 'replay' AND t.is_dry_run = 0"
    " AND c.purged_commit > 0 AND p.part = task_part.part AND t.task_id = task_part.task_id AND t.requested_at {} ("
    "SELECT l.committed_at FROM batch_ledger AS l WHERE l.stream_id = t.stream_id AND l.partition_id = p.part"
    " ORDER BY l.commit_number LIMIT 1)"
)  # the replays of a purged partition before or after its oldest ledger row


def test_changed_counts_of_a_replay_are_named_unless_a_purge_may_have_taken_its_commits(tmp_path: Path) -> None:
    world = purged(9, tmp_path / "store.db")
    change = "UPDATE task_part SET report = json_set(report, '$.rows_written', 31337) WHERE EXISTS ({})"
    found = "SELECT COUNT(*) FROM task_part WHERE EXISTS ({})"
    assert world.sql(found.format(REPLAYED.format("<="))) != [(0,)] != world.sql(found.format(REPLAYED.format(">")))
    world.sql(change.format(REPLAYED.format("<=")))
    assert audit(world.desk.audits, None).faults == ()
    world.sql(change.format(REPLAYED.format(">")))
    assert audit(world.desk.audits, None).faults != ()


@pytest.mark.slow
def test_the_worlds_meet_deaths_cancels_redrives_and_purged_rows_of_each_table(tmp_path: Path) -> None:
    met: Counter[str] = Counter()
    for seed in range(40, 46):
        world = purged(seed, tmp_path / f"{seed}.db")
        met += world.met
        met.update({table: world.sql(f"SELECT COUNT(*) FROM gone_{table}")[0][0] for table in COPIED})
        moved = world.sql("SELECT COALESCE(SUM(report ->> 'moved'), 0) FROM task_part")[0][0]
        met.update({"letters were redriven": moved})
        met.update({"pieces": world.sql("SELECT SUM(step) FROM task_part WHERE part LIKE 'batch_ledger/%'")[0][0]})
    expected = (*COPIED, "a worker died", "a purge was cancelled", "letters were redriven")
    assert min(met[name] for name in expected) > 0 and met["pieces"] > 20, met

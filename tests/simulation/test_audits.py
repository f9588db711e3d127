"""In every world an audit is balanced at any moment, and each number is explained, whatever a purge has taken.

Old rows are purged in small pieces, by workers that die and are cancelled. A trigger copies each row that goes. Repeat
a world with `pytest -k seed7`.
"""

from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from core.audit.audit import Reading, audit, recount_rows
from core.errors import InfrastructureFault, TaskOverlap
from core.ledger.explain import explain
from core.ledger.store import read_books
from core.letters.listing import LetterChoice
from core.letters.redrive import LetterOrder
from core.model.events import PartitionId, SequenceNumber, Span
from core.model.policies import DEFAULT_DAYS
from core.model.ports import Clock
from core.purge.purge import purge_of, purge_request
from core.purge.task import PurgeKind
from core.store.database import Database
from core.tasks.run import open_task, work_on
from core.tasks.statuses import TaskMove
from core.tasks.task import TaskOrder
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.builders import STREAM
from tests.fakes.faulty_database import Killed
from tests.fakes.operator_stores import OperatorStores
from tests.fakes.redriving import redriving, request_redrive
from tests.fakes.store import MemoryStore
from tests.simulation.operators import REFUSED, Instance
from tests.simulation.seeds import seeds
from tests.simulation.trouble import ProcessDatabase
from tests.simulation.watch import WatchedStore
from tests.simulation.world import DAY, World

COPIED = ("batch_ledger", "event_hub_dead_letter", "dead_letter_attempt", "retracted_row")
SUMS = """
    SELECT MAX(commit_number), MAX(last_sequence_number) FILTER (WHERE kind = 'batch'),
           (SELECT COUNT(*) FROM gone_event_hub_dead_letter WHERE partition_id = ?1 AND replay_commit_number IS NULL),
           (SELECT COUNT(replay_commit_number) FROM gone_event_hub_dead_letter WHERE partition_id = ?1)
      FROM gone_batch_ledger WHERE partition_id = ?1
"""
RANGES = "SELECT partition_id, first_sequence_number, last_sequence_number FROM gone_batch_ledger WHERE kind = 'batch'"


class AuditedWorld(World):
    """A world of one hub, in which an operator audits at any moment."""

    def __init__(self, seed: int, store: MemoryStore) -> None:
        super().__init__(seed, store, store)
        self._lives = 1
        self.desk = self._desk(self.site.database)

    def _desk(self, database: Database) -> OperatorStores:
        return OperatorStores(database, STREAM, (Home, SensorReading, HomeAlert))

    def _all_acts(self) -> list[Any]:
        return [*super()._all_acts(), self._audit, self._audit, lambda: self._as(self._redrive)]

    def _audit(self) -> None:
        assert audit(self.desk.audits, None, Reading(piece=3)).faults == ()

    def _redrive(self, instance: Instance) -> None:
        """Discard or requeue all letters of a status. Operators go on with it."""
        status: Any = self.chance.choice(["exhausted", "waiting"])
        move: Any = self.chance.choice(["requeue", "discard", "discard"])
        ((count,),) = self.sql("SELECT COUNT(*) FROM event_hub_dead_letter WHERE status = ?", status)
        with suppress(*REFUSED):
            request_redrive(LetterOrder(move, LetterChoice(status=status), count), redriving(instance.keeper))
        self.operators.drive(instance)

    def assert_balanced_and_explained(self) -> Counter[str]:
        """Check the books, the rows and each number. Return the outcomes, and how many numbers were purged."""
        done, found = audit(self.desk.audits, None), Counter[str]()
        assert done.faults == ()
        gone = {(id, number) for id, first, last in self.gone() for number in range(first, last + 1)}
        for one in done.partitions:
            id = one.ledger.partition.partition_id
            anchors = self.sql("SELECT sequence_number FROM partition_anchor WHERE partition_id = ?", id)
            span = Span(SequenceNumber(anchors[0][0] if anchors else 0), one.ledger.checkpoint)
            assert recount_rows(one, span, self.desk.audits).faults == ()
            for number in map(SequenceNumber, range(span.first, span.last + 1)):
                told = explain(id, number, self.desk.explanations)
                assert told is not None
                assert told.outcome not in ("missing", "not_yet", "before_first"), (id, number)
                said = "Its ledger row was purged" in told.sentence
                assert said == ((id, number) in gone), (id, number, told.sentence)
                found.update([told.outcome, *["purged"] * said])
        return found

    def gone(self) -> list[tuple[PartitionId, int, int]]:
        return []


class PurgeWorld(AuditedWorld):
    steps = 140

    def __init__(self, seed: int) -> None:
        super().__init__(seed, MemoryStore())
        self.met: Counter[str] = Counter()
        for table in COPIED:
            columns = [f"OLD.{name}" for (name,) in self.sql(f"SELECT name FROM pragma_table_info('{table}')")]
            self.sql(f"CREATE TABLE gone_{table} AS SELECT * FROM {table}")
            values = f"INSERT INTO gone_{table} VALUES ({', '.join(columns)})"
            self.sql(f"CREATE TRIGGER copy_{table} AFTER DELETE ON {table} BEGIN {values}; END")
        self._own = Clock(self.clock.now, self.site.new_id)

    def _all_acts(self) -> list[Any]:
        return [
            *super()._all_acts(),
            lambda: self.clock.advance(self.chance.choice([600.0, DAY, 3 * DAY])),
            *[lambda: self._request(self.chance.random() < 0.2)] * 2,
            self._cancel,
            *[self._work] * 5,
            *[lambda: self._as(self.operators.request)] * 2,
            *[lambda: self._as(self.operators.drive)] * 4,
        ]

    def gone(self) -> list[tuple[PartitionId, int, int]]:
        return self.sql(RANGES)

    def _assert_unviolated(self) -> None:
        """Look for nothing: a purge deletes what no other act may delete."""

    def _search(self) -> None:
        """Search for nothing: the watch would have to note which erasures stood at a commit."""

    def _retries_by_the_hub(self) -> int:
        return 0  # a purge takes attempts

    @property
    def stream_id(self) -> int:
        return self.desk.purges.stream.find() or 0

    def _open(self) -> list[UUID]:
        return [id for id, name, _ in self.desk.tasks.read_open(self.stream_id) if name == "purge"]

    def _request(self, is_dry_run: bool) -> None:
        if not self.stream_id:
            return  # there is no commit yet
        if not self._open():
            self.clock.advance(2 * DAY)
        days = {**dict.fromkeys(DEFAULT_DAYS, 1), "task": 36_500}
        order = TaskOrder(self._own.new_id(), self.stream_id, "ann", "room", self.clock.now())
        with suppress(TaskOverlap):
            found = self.desk.purges.read_purge_partitions()
            open_task(purge_request(order, days, found, is_dry_run=is_dry_run), self.desk.tasks)

    def _work(self) -> None:
        """Let one of several workers work for a while. Others act between any two of its calls."""
        process = ProcessDatabase(self.site.database, self.trouble.of_store)
        with suppress(InfrastructureFault, Killed):
            self._purge(process)
        self.met["a worker died"] += process.is_dead

    def _purge(self, database: Database) -> None:
        desk = self._desk(database)

        def verify(id: PartitionId, until: Any) -> tuple[int, int]:
            done = audit(desk.audits, id, Reading(lambda: self.clock.now() >= until, piece=3))
            assert not done.faults, done.faults
            return 0, done.partitions[0].until

        rows, letters = self.chance.randint(1, 4), self.chance.randint(1, 3)
        kind = PurgeKind(desk.purges, verify, (), self._own, rows_of_piece=rows, letters_of_piece=letters)
        for task_id in self._open():
            work_on(task_id, None, kind, self.clock.now() + timedelta(minutes=1))

    def _cancel(self) -> None:
        for task_id in self._open():
            cancelled = self.desk.tasks.move(TaskMove(task_id, "cancel", "ann", "stop", self.clock.now()))
            self.met["a purge was cancelled"] += cancelled

    def _end_tasks(self) -> bool:
        self._cancel()
        return super()._end_tasks()

    def _end(self) -> None:
        for _ in range(3):
            self.clock.advance(2 * DAY)
            self._request(is_dry_run=False)
            while self._open():
                self._purge(self.site.database)


@pytest.mark.parametrize("seed", seeds(range(20), 3), ids="seed{}".format)
def test_a_world_audits_balanced_at_any_moment_and_explains_every_number(seed: int) -> None:
    world = AuditedWorld(seed, WatchedStore())
    world.run()
    found, books = world.assert_balanced_and_explained(), read_books(world.desk.ledger)
    assert books.balanced
    open_letters = sum(count for status, count in books.letters.counts.items() if status != "resolved")
    ((erased,),) = world.sql(
        "SELECT COUNT(*) FROM event_hub_dead_letter WHERE erased_by IS NOT NULL AND status <> 'resolved'"
        " AND stream_id = (SELECT MAX(stream_id) FROM event_stream)"
    )
    lettered = open_letters - erased
    assert (found["absent"], found["dead_lettered"]) == (sum(one.absent for one in books.partitions), lettered)


@pytest.mark.parametrize("seed", seeds(range(30), 4), ids="seed{}".format)
def test_a_purged_world_balances_and_every_purged_number_says_so(seed: int) -> None:
    world = PurgeWorld(seed)
    world.run()
    assert world.assert_balanced_and_explained()["purged"] > 0
    assert read_books(world.desk.ledger).balanced
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


REPLAYED = (
    "EXISTS (SELECT 1 FROM task AS t JOIN event_hub_checkpoint AS c ON c.stream_id = t.stream_id"
    " WHERE t.task_id = task_part.task_id AND c.partition_id = task_part.part AND t.kind = 'replay'"
    " AND t.is_dry_run = 0 AND c.purged_commit > 0 AND t.requested_at {} (SELECT l.committed_at FROM batch_ledger AS l"
    " WHERE l.stream_id = t.stream_id AND l.partition_id = task_part.part ORDER BY l.commit_number LIMIT 1))"
)  # the replays of a purged partition before or after its oldest ledger row


def test_changed_counts_of_a_replay_are_named_unless_a_purge_may_have_taken_its_commits() -> None:
    world = PurgeWorld(1)
    world.run()
    change = "UPDATE task_part SET report = json_set(report, '$.rows_written', 31337) WHERE "
    for which, is_named in (("<=", False), (">", True)):
        world.sql(change + REPLAYED.format(which))
        assert world.sql("SELECT changes() > 0") == [(1,)]
        assert (audit(world.desk.audits, None).faults != ()) == is_named


@pytest.mark.slow
def test_the_worlds_meet_deaths_cancels_and_purged_rows_of_each_table() -> None:
    met: Counter[str] = Counter()
    for seed in range(40, 46):
        world = PurgeWorld(seed)
        world.run()
        met += world.met
        met.update({table: world.sql(f"SELECT COUNT(*) FROM gone_{table}")[0][0] for table in COPIED})
    assert min(met[name] for name in (*COPIED, "a worker died", "a purge was cancelled")) > 0, met

"""A world of replays in which old rows are purged: small pieces, workers, redrives, aggregation, deaths, and copies.

The copies of the purged rows, and the sums over them, share no code with the product.
"""

import json
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

from core.audit.audit import Reading, audit
from core.errors import TaskOverlap, TooManyTasks
from core.letters.listing import LetterChoice, LetterListing
from core.letters.redrive import LetterOrder, RedriveKind
from core.model.events import PartitionId
from core.model.letters import OrderedMove
from core.model.policies import DEFAULT_DAYS
from core.purge.purge import purge_request
from core.purge.task import PurgeKind
from core.store.database import OneStream
from core.tasks.run import open_task, work_on
from core.tasks.statuses import TaskMove
from core.tasks.task import TaskOrder
from examples.home_security.transform import Home, HomeAlert, SensorReading
from tests.fakes.aggregation_engines import AggregatingStore
from tests.fakes.builders import STREAM, partition
from tests.fakes.engines import SqliteEngine
from tests.fakes.operator_stores import OperatorStores, operator_stores
from tests.fakes.redriving import request_redrive
from tests.fakes.store import Store
from tests.simulation.faults import ProcessDatabase
from tests.simulation.replay_world import ReplayWorld

ROW_CLASSES = (Home, SensorReading, HomeAlert)
JOB = "home_activity"
SLICE = timedelta(seconds=45)
DAY = 86_400.0
IS_OLD = (
    "< (SELECT STRFTIME('%Y-%m-%dT%H:%M:%fZ', requested_at, '-1 day') FROM task"
    " WHERE kind = 'purge' AND status = 'running')"
)
COPIED = {  # each table, and what its copy has as `purged`: 0 for a row that no purge may delete at that moment
    "batch_ledger": "1",
    "event_hub_dead_letter": "1",
    "dead_letter_attempt": "1",
    "retracted_row": "1",
    "staged_event": f"COALESCE(OLD.staged_at {IS_OLD}, FALSE) AND NOT EXISTS"
    " (SELECT 1 FROM task WHERE kind = 'replay' AND status IN ('planned', 'running', 'paused'))",
    "replay_diff": f"(SELECT COUNT(*) FROM task WHERE task_id = OLD.task_id AND ended_at {IS_OLD})",
}
UNCHAINED = ("staged_event", "replay_diff")
SUMS = """
    SELECT MAX(commit_number), MAX(last_sequence_number) FILTER (WHERE kind = 'batch'),
           (SELECT COUNT(*) FROM gone_event_hub_dead_letter
             WHERE partition_id = ?1 AND purged > 0 AND replay_commit_number IS NULL),
           (SELECT COUNT(replay_commit_number) FROM gone_event_hub_dead_letter
             WHERE partition_id = ?1 AND purged > 0)
      FROM gone_batch_ledger WHERE partition_id = ?1 AND purged > 0
"""
READINGS = "SELECT home_id, kind, COUNT(*), SUM(ppm * 1000) FROM sensor_reading GROUP BY home_id, kind"
TOUCHED = """
    SELECT home_id, kind FROM sensor_reading
     WHERE partition_id = ?1 AND commit_number > ?2 AND commit_number <= ?3
     UNION
    SELECT r.row ->> 'home_id', r.row ->> 'kind' FROM retracted_row AS r
     WHERE r.partition_id = ?1 AND r.commit_number > ?2 AND r.commit_number <= ?3
       AND r.table_name = 'sensor_reading'
"""


class PurgeWorld(ReplayWorld):
    """`windows` is what aggregation made of the commits that it has passed; `met` counts what happened."""

    steps = 140

    def __init__(self, seed: int, engine: SqliteEngine) -> None:
        store = engine.open()
        super().__init__(seed, store)
        self.sql = engine.sql
        self.desk = operator_stores(store.database, STREAM, ROW_CLASSES)
        self.windows: dict[tuple[str, str], tuple[int, float]] = {}
        self.met: Counter[str] = Counter()
        self._aggregation = AggregatingStore(store.database)
        self._stage_events = engine.stage
        for table, purged in COPIED.items():
            self._copy_what_goes(table, purged)

    def _copy_what_goes(self, table: str, purged: str) -> None:
        """Copy each row that is deleted."""
        columns = [name for (name,) in self.sql(f"SELECT name FROM pragma_table_info('{table}')")]
        self.sql(f"CREATE TABLE gone_{table} AS SELECT *, 0 AS purged FROM {table}")
        self.sql(
            f"CREATE TRIGGER copy_{table} AFTER DELETE ON {table} BEGIN INSERT INTO gone_{table}"
            f" VALUES ({', '.join(f'OLD.{name}' for name in columns)}, {purged}); END"
        )

    def _acts(self) -> list[Any]:
        own = [
            self._age,
            *[lambda: self._request(self._desk(self._troubled().database), self.chance.random() < 0.2)] * 2,
            self._redrive,
            self._aggregate,
            self._cancel,
            self._stage,
            *[self._work] * 5,
        ]
        return [*super()._acts(), *own]

    @property
    def stream_id(self) -> int:
        return self.desk.purges.stream.find() or 0

    def _age(self) -> None:
        self.clock.advance(self.chance.choice([600.0, DAY, 3 * DAY]))

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
            for task_id in self._open("purge"):
                work_on(task_id, None, self._purging(self._desk(process)), self.clock.now() + SLICE)
        finally:
            self.met["a worker died"] += cast(ProcessDatabase, process).is_dead

    def _purging(self, desk: OperatorStores) -> PurgeKind:
        def verify(id: PartitionId, until: Any) -> tuple[int, int]:
            done = audit(desk.audits, id, Reading(lambda: self.clock.now() >= until, piece=3))
            assert not done.faults, done.faults
            return 0, done.partitions[0].until

        rows, letters = self.chance.randint(1, 4), self.chance.randint(1, 3)
        return PurgeKind(desk.purges, verify, (JOB,), self._own, rows_of_piece=rows, letters_of_piece=letters)

    def _desk(self, database: Any) -> OperatorStores:
        return operator_stores(database, STREAM, ROW_CLASSES)

    def _cancel(self) -> None:
        for task_id in self._open("purge"):
            cancelled = self.desk.tasks.move(TaskMove(task_id, "cancel", "ann", "stop", self.clock.now()))
            self.met["a purge was cancelled"] += cancelled

    def _redrive(self) -> None:
        """Discard or requeue all letters by a job, or go on with one."""
        means = self._redriving(self._troubled())
        status = self.chance.choice(["exhausted", "waiting"])
        move: OrderedMove = self.chance.choice(["requeue", "discard", "discard"])
        ((count,),) = self.sql("SELECT COUNT(*) FROM event_hub_dead_letter WHERE status = ?", status)
        chosen = LetterChoice(status=cast(Any, status))
        with suppress(TaskOverlap, TooManyTasks):
            request_redrive(LetterOrder(move, chosen, count), means, "bob")
        self._go_on_with_redrives(means)

    def _redriving(self, store: Store) -> RedriveKind:
        return RedriveKind(STREAM, store, LetterListing(OneStream(store.database, STREAM)), self._own, lambda _: None)

    def _go_on_with_redrives(self, means: RedriveKind) -> None:
        for task_id in self._open("redrive"):
            work_on(task_id, None, means, self.clock.now() + SLICE)

    def _stage(self) -> None:
        """Stage some events that were read, as a replay from Capture does."""
        id = self.chance.choice(list(self.logs))
        read = self.logs[id][: self._committed(id)]
        some = self.chance.sample(read, min(len(read), self.chance.randint(1, 6)))
        self._stage_events(self.record.read_partition(partition(id)), some)

    def _aggregate(self) -> None:
        """Move the cut of the job, after the windows that the commits between the cuts have touched."""
        standing = self._aggregation.read_standing(JOB)
        reach = self._aggregation.read_reach(standing.cut, self.chance.choice([1, 3, 1_000]))
        if reach is None:
            return
        begun = json.loads(standing.cut)
        now = {(home, kind): (count, total) for home, kind, count, total in self.sql(READINGS)}
        for name, end in json.loads(reach.cut_to).items():
            id, begin = name.partition("/")[2], begun.get(name, 0)
            early = "SELECT 1 FROM gone_batch_ledger WHERE purged > 0 AND partition_id = ? AND commit_number > ?"
            assert not self.sql(early, id, begin), (id, "a commit was purged that aggregation has not passed", begin)
            for home, kind in self.sql(TOUCHED, id, begin, end):
                self.windows.pop((home, kind), None)
                self.windows.update({key: value for key, value in now.items() if key == (home, kind)})
        opened = "INSERT INTO aggregation_cut (job, cut, run_number, levels) VALUES (?, ?, 1, '')"
        self.sql(f"{opened} ON CONFLICT (job) DO UPDATE SET cut = excluded.cut", JOB, reach.cut_to)
        self.met["the cut moved"] += 1

    def _end(self) -> None:
        """End all jobs; then age the store, and purge all that may go."""
        super()._end()
        self._go_on_with_redrives(self._redriving(self.record))
        self._stage()
        for _ in range(3):
            self._until_aggregated()
            self._purge_everything()

    def _until_aggregated(self) -> None:
        while self._aggregation.read_reach(self._aggregation.read_standing(JOB).cut, 1_000) is not None:
            self._aggregate()

    def _purge_everything(self) -> None:
        self._age()
        self.clock.advance(DAY)
        self._request(self.desk, is_dry_run=False)
        while found := self._open("purge"):
            work_on(found[0], None, self._purging(self.desk), self.clock.now() + SLICE)

    def gone(self, table: str) -> int:
        ((count,),) = self.sql(f"SELECT COUNT(*) FROM gone_{table} WHERE purged > 0")
        return int(count)

    def assert_checkpoints_count_the_copies(self) -> None:
        """A checkpoint says how far its partition is purged, and how many letters went."""
        counted = self.sql(
            "SELECT partition_id, purged_commit, purged_to, purged_letters, purged_replay_letters"
            " FROM event_hub_checkpoint WHERE purged_commit > 0 ORDER BY partition_id"
        )
        assert [id for id, *_ in counted] == [
            id for (id,) in self.sql("SELECT DISTINCT partition_id FROM gone_batch_ledger WHERE purged > 0 ORDER BY 1")
        ]
        for id, *sums in counted:
            assert self.sql(SUMS, id) == [tuple(sums)], id

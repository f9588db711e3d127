"""A ledger, an engine that runs jobs in this process and fails on demand, and a recount in plain Python."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from pathlib import Path
from typing import Any

from core.aggregation.lake_tables import Lake
from core.aggregation.runs import AggregationRun, RunLimits, Staged, planned_run
from core.aggregation.spark_engine import JobReport, JobRequest, JobState
from core.aggregation.tick import Aggregation, AggregationReport, aggregate
from core.errors import EngineUnreachable
from core.model.aggregates import Aggregate, aggregate_table
from core.model.rows import Row
from examples.home_security.aggregates.home_activity import HomeActivity
from jobs.aggregate import Execution
from jobs.aggregate import aggregate as run_job
from jobs.rebuild_aggregate import rebuild
from jobs.sqlite_tables import SqliteTables
from tests.fakes.aggregation_engines import HOME_ACTIVITY, AggregatingStore, committed
from tests.fakes.builders import EPOCH, FakeClock, commit, event, letter, partition, settled
from tests.fakes.engines import SqliteEngine
from tests.fakes.rollups import rolled, windows_of

WINDOW = timedelta(minutes=15)
FAR = datetime(2100, 1, 1, tzinfo=UTC)


class Fate(Enum):
    """The fate of a submitted job."""

    WELL = auto()
    UNANSWERED = auto()  # it runs, and the answer to the submit is lost
    REFUSED_AT_THE_DOOR = auto()  # 503: nothing was started
    KILLED_BEFORE = auto()  # before it staged anything
    KILLED_DURING = auto()  # with half of it staged
    KILLED_AFTER = auto()  # with all of it staged, before it said so
    LOST = auto()  # the engine forgets it; it has run, and staged everything
    VANISHED = auto()  # the engine forgets it, and it never ran
    TWICE = auto()  # the engine runs it two times


class Killed(Exception):
    """The job dies here."""


class DyingTables:
    """Tables that kill their job at a chosen moment."""

    def __init__(self, tables: SqliteTables, fate: Fate) -> None:
        self._tables = tables
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tables, name)

    def stage(self, of: Aggregate, windows: Any, staging_id: str, run_id: str) -> None:
        if self._fate is Fate.KILLED_BEFORE:
            raise Killed
        if self._fate is Fate.KILLED_DURING:
            half = max(1, windows.count() // 2)
            self._tables.stage(of, windows.limit(half), staging_id, run_id)
            raise Killed
        self._tables.stage(of, windows, staging_id, run_id)

    def finish(self, result: Any) -> None:
        if self._fate is Fate.KILLED_AFTER:
            raise Killed
        self._tables.finish(result)


@dataclass
class InProcessEngine:
    """A SparkEngine. `fates` holds the fate of each submit to come. Later jobs run well. `meanwhile` happens
    once, between a submit and the reads of its job."""

    spark: Any
    tables: SqliteTables
    fates: list[Fate] = field(default_factory=list)
    jobs: dict[str, JobState] = field(default_factory=dict)
    name: str = "local"
    meanwhile: Callable[[], object] | None = None

    def submit(self, request: JobRequest) -> str:
        fate = self.fates.pop(0) if self.fates else Fate.WELL
        if fate is Fate.REFUSED_AT_THE_DOOR:
            raise EngineUnreachable("503")
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        self.jobs[request.name] = self._run(request, fate)
        if fate is Fate.UNANSWERED:
            raise EngineUnreachable("the answer was lost")
        if fate in (Fate.LOST, Fate.VANISHED):
            del self.jobs[request.name]
        return request.name

    def find(self, name: str) -> str | None:
        return name if name in self.jobs else None

    def state(self, job_id: str) -> JobState:
        return self.jobs.get(job_id, JobState.LOST)

    def cancel(self, job_id: str) -> None:
        self.jobs.pop(job_id, None)

    def report(self, job_id: str) -> JobReport:
        return JobReport()

    def _run(self, request: JobRequest, fate: Fate) -> JobState:
        given = dict(zip(request.arguments[::2], request.arguments[1::2], strict=False))
        place = (given.get("--lake"), given.get("--lake-state", ""))
        order = Execution(given["--run-id"], int(given["--attempt"]), *place)
        tables: Any = DyingTables(self.tables, fate)
        try:
            for _ in range({Fate.TWICE: 2, Fate.VANISHED: 0}.get(fate, 1)):
                run_job(self.spark, tables, order)
        except Killed:
            return JobState.FAILED
        return JobState.SUCCEEDED


class World:
    """One embedded store, with commits in order, and an aggregation over it."""

    def __init__(self, spark: Any, folder: Path, lake: Lake | None = None) -> None:
        self.sqlite = SqliteEngine(folder / "store.db")
        self.store = AggregatingStore(self.sqlite.database())
        self.tables = SqliteTables(spark, str(self.sqlite.path))
        self.engine = InProcessEngine(spark, self.tables)
        self.clock = FakeClock()
        self.own = Aggregation(self.store, self.engine, lake, self.clock.now, RunLimits())

    def commit(self, rows: Iterable[Row], of: str = "0", letters: int = 0) -> int:
        """Commit an event for each row, and then events that became letters. Return the number of the first event."""
        state = self.store.read_partition(partition(of))
        first = state.checkpoint.sequence_number + 1 if state.checkpoint else 0
        placed = {first + at: [row] for at, row in enumerate(rows)}
        failed = [letter(event(first + len(placed) + at)) for at in range(letters)]
        last = first + len(placed) + letters - 1
        self.store.commit_batch(commit(state, first, last, settled(placed, letters=failed)))
        return first

    def correct(self, kind: str, rows: Mapping[int, Row], span: tuple[int, int], of: str = "0") -> int:
        """Commit rows at old positions by hand, in place of the rows there. Return the commit number."""
        sql, place = self.sqlite.sql, "stream_id = 1 AND partition_id = ?"
        sql(f"UPDATE event_hub_checkpoint SET commit_number = commit_number + 1 WHERE {place}", of)
        ((number,),) = sql(f"SELECT commit_number FROM event_hub_checkpoint WHERE {place}", of)
        for at, row in rows.items():
            sql(f"DELETE FROM sensor_reading WHERE {place} AND sequence_number = ?", of, at)
            values = [row.home_id, row.sensor_id, row.kind, row.state, row.ppm, _text(row.observed_at)]  # type: ignore[attr-defined]
            sql("INSERT INTO sensor_reading VALUES (1, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?)", of, at, number, *values)
        sql(
            "INSERT INTO batch_ledger VALUES (1, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, ?, ?, 'test/1', 'by hand', ?,"
            " 0, 0, 0, 0, 0, 0)",
            *(of, number, kind, *span, *[len(rows)] * 3, _text(EPOCH)),
        )
        return int(number)

    def remove(self, numbers: Iterable[int], of: str) -> None:
        """Remove the rows of events as a replay does whose transform gives none."""
        sql, place = self.sqlite.sql, "stream_id = 1 AND partition_id = ? AND sequence_number = ?"
        for at in numbers:
            ((row, written),) = sql(
                "SELECT json_object('home_id', home_id, 'kind', kind, 'state', state, 'ppm', ppm, 'observed_at',"
                f" observed_at), commit_number FROM sensor_reading WHERE {place}",
                *(of, at),
            )
            number = self.correct("replay", {}, (at, at), of)
            values = (of, number, at, written, row)
            sql("INSERT INTO retracted_row VALUES (1, ?, ?, 'sensor_reading', ?, 0, ?, ?)", *values)
            sql(f"DELETE FROM sensor_reading WHERE {place}", of, at)

    def tick(self, patience: timedelta = timedelta(minutes=11), job: str = HOME_ACTIVITY) -> AggregationReport:
        """Tick once, and let time pass."""
        report = aggregate(self.own, job)
        self.clock.advance(patience.total_seconds())
        return report

    def settle(self, limit: int = 40, job: str = HOME_ACTIVITY) -> None:
        """Tick until nothing is new."""
        for _ in range(limit):
            if self.tick(job=job).did == ("has nothing new",):
                return
        raise AssertionError(f"not settled after {limit} ticks: {self.store.read_runs(job, 10**9, 3)}")

    def planned(self, job: str = HOME_ACTIVITY, now: datetime | None = None) -> AggregationRun:
        """Plan and open a run."""
        run = planned_run(job, self.store.read_standing(job), "local", now or self.clock.now())
        assert run is not None
        assert self.store.open_run(run)
        return run

    def executed(self, run: AggregationRun) -> Staged:
        """Execute the job of a run. Return the result that the job staged."""
        assert run_job(self.engine.spark, self.tables, Execution(run.run_id, 1)) is not None
        staged = self.store.read_staged(run.run_id)
        assert staged is not None
        return staged

    def run_once(self, job: str, now: datetime | None = None) -> None:
        """Plan, execute and commit a run at a time."""
        run = self.planned(job, now)
        assert committed(self.store, run, self.executed(run), now or self.clock.now())

    def activity(self, level: type[HomeActivity] = HomeActivity) -> list[HomeActivity]:
        """Return all windows of a level, in order."""
        homes = [home for (home,) in self.sqlite.sql("SELECT DISTINCT home_id FROM home_activity ORDER BY home_id")]
        since = EPOCH - 400 * WINDOW * 96
        return [one for home in homes for one in self.store.read_windows(level, home, since, FAR)]

    def recounted(self, of: type = HomeActivity) -> list[Any]:
        """Return the expected aggregate: the stored rows, added up by plain Python."""
        table = aggregate_table(of)
        return windows_of([kept.row for kept in self.sqlite.rows(table.source)], table)

    def prove(self) -> None:
        """Check that every level of the aggregate is the recount in plain Python."""
        recounted = self.recounted()
        assert self.activity() == recounted
        for level in aggregate_table(HomeActivity).rollups:
            assert self.activity(level.of) == rolled(recounted, level), level.name

    def prove_by_rebuild(self) -> None:
        """Check that the rebuild, a job of several seconds, finds no difference either."""
        self.prove()
        of = aggregate_table(HomeActivity)
        for level in of.levels:
            comparison = rebuild(self.tables, level, job=of.name)
            assert (comparison.differing, comparison.moved, comparison.shown) == (0, 0, [])
            assert comparison.compared == len(self.activity(level.of))


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

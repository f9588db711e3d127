"""A store, an engine that stages by hand and fails on demand, and a clock: the world of a tick."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from core.aggregation.runs import AggregationRun, RunLimits
from core.aggregation.spark_engine import JobReport, JobRequest, JobState
from core.aggregation.tick import Aggregation, aggregate
from core.errors import EngineRefused, EngineUnreachable
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.aggregation_engines import HOME_ACTIVITY, SqliteAggregation, finish, stage
from tests.fakes.builders import EPOCH, FakeClock
from tests.fakes.engines import SqliteEngine

WINDOW = HomeActivity("home-1", EPOCH, "motion", 1, 1, None, None, None, EPOCH, EPOCH)


@dataclass
class FakeEngine:
    """Keeps jobs by name. They end when a test says so.

    Each submit takes the next of `answers`, and raises it if it is an exception. Then its job runs only if the engine
    `accepts` it.
    """

    answers: list[Exception | None] = field(default_factory=list)
    accepts: bool = True
    requests: list[JobRequest] = field(default_factory=list)
    states: dict[str, JobState] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    deaf: bool = False
    refusing: EngineRefused | None = None
    words: JobReport = JobReport()  # noqa: RUF009 - it is frozen
    name: str = "fake"

    def submit(self, request: JobRequest) -> str:
        self.requests.append(request)
        answer = self.answers.pop(0) if self.answers else None
        if answer is None or self.accepts:
            self.states[request.name] = JobState.RUNNING
        if answer is not None:
            raise answer
        return f"id-{request.name}"

    def find(self, name: str) -> str | None:
        self._hear()
        return f"id-{name}" if name in self.states else None

    def state(self, job_id: str) -> JobState:
        self._hear()
        return self.states.get(job_id.removeprefix("id-"), JobState.LOST)

    def cancel(self, job_id: str) -> None:
        self.cancelled.append(job_id)
        self._hear()

    def report(self, job_id: str) -> JobReport:
        self._hear()
        return self.words

    def _hear(self) -> None:
        if self.deaf:
            raise EngineUnreachable("no answer")
        if self.refusing is not None:
            raise self.refusing


class World:
    def __init__(self, folder: Path) -> None:
        self.database = SqliteAggregation(SqliteEngine(folder / "store.db"))
        self.store = self.database.open()
        self.engine = FakeEngine()
        self.clock = FakeClock()
        patience = RunLimits(timedelta(minutes=10), timedelta(hours=2), timedelta(hours=1), attempts=2, submits=5)
        self.own = Aggregation(self.store, self.engine, None, self.clock.now, patience)

    def tick(self, minutes: float = 5) -> tuple[str, ...]:
        did = aggregate(self.own, HOME_ACTIVITY).did
        self.clock.advance(60 * minutes)
        return did

    @property
    def run(self) -> AggregationRun:
        run = self.store.read_standing(HOME_ACTIVITY).last_run
        assert run is not None
        return run

    def finish(self, staging_id: str = "s") -> None:
        stage(self.database, staging_id, self.run.run_id, [WINDOW])
        finish(self.database, staging_id, self.run.run_id, self.clock.now())
        self.engine.states[self.run.job_name] = JobState.SUCCEEDED

    def fail(self) -> None:
        self.engine.states[self.run.job_name] = JobState.FAILED

    def readings(self) -> int:
        return sum(
            one.readings for one in self.store.read_windows(HomeActivity, "home-1", EPOCH, EPOCH + timedelta(days=1))
        )

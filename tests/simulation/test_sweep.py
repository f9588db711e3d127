"""An aggregation with a fault at any point. Neither the simulated world nor the exploration has a Spark engine.

A point is a read or a transaction that is not reached, each of its statements, its commit, and the answer after it. At
each of them the database fails or the process dies. Then the act is called again: the state is that without a fault.
"""

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, cast

import pytest

from core.aggregation.spark_engine import JobReport, JobRequest, JobState
from core.aggregation.store import Aggregations
from core.aggregation.tick import Aggregation, aggregate
from core.errors import InfrastructureFault
from core.store.script import Script
from examples.home_security.aggregates.home_activity import HomeActivity
from tests.fakes.aggregation_engines import HOME_ACTIVITY, SqliteAggregation, finish, stage
from tests.fakes.builders import EPOCH, event
from tests.fakes.faulty_database import Killed
from tests.fakes.memory_hub import MemoryHub
from tests.simulation.histories import Bench
from tests.simulation.trouble import DEATH_INSIDE, OF_SCRIPTS, STATEMENT_FAILS, Fault, ProcessDatabase
from tests.simulation.watch import steady_tables

LEASE = timedelta(minutes=10)  # longer than any claim
OF_A_READ = ("store: not reached", "death: before a statement")
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


def final_state(bench: Bench, point: NthPoint) -> tuple[dict[str, list[str]], Fault | None]:
    """Return the tables after a run with one fault and its retries, without the times and ids that no runs share."""
    jobs: dict[str, str] = {}  # of the engine, which outlives each process
    database = ProcessDatabase(bench.store.database, point)
    for _ in range(4):
        with suppress(InfrastructureFault):
            try:
                tick(bench, database, jobs)
            except Killed:
                database = ProcessDatabase(bench.store.database, lambda _: None)
        bench.clock.advance(LEASE.total_seconds())
    assert not (found := bench.store.sql("SELECT * FROM sim_violation")), found
    return steady_tables(bench.store), point.struck


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


def tick(bench: Bench, database: ProcessDatabase, jobs: dict[str, str]) -> None:
    engine, now = StagingEngine(bench, jobs), bench.clock.now
    aggregate(Aggregation(Aggregations(database), engine, None, now), HOME_ACTIVITY)


@pytest.mark.slow
def test_a_fault_at_any_point_of_an_aggregation_leaves_the_state_of_a_run_without_a_fault() -> None:
    prepared = Bench(MemoryHub({"0": LOG, "1": ()}))
    prepared.ingest(LOG)
    image = prepared.store.image()
    expected, _ = final_state(Bench(prepared.hub, image), NthPoint(10**9))
    for number in count():
        state, fault = final_state(Bench(prepared.hub, image), NthPoint(number))
        if fault is None:
            break
        differs = {table: set(rows) ^ set(expected[table]) for table, rows in state.items() if rows != expected[table]}
        assert not differs, f"point {number}, {fault.kind} (step {fault.place}): {differs}"
    assert number >= 40, f"the sweep has {number} points only"

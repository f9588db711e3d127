"""local/demo/aggregation.py: the Spark process of a running job is killed, with a stand-in for spark-submit."""

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from core.aggregation.spark_engine import JobRequest, JobState
from core.aggregation.tick import PROGRAM
from core.remote.spark.local_engine import LocalEngine, LocalSpark
from local.demo.aggregation import KILLED, SPARK, JobKiller, spark_process, worked
from local.stack.consumers import ticking
from tests import patience
from tests.fakes.rooms import migrate_examples

# Like spark-submit: a process with Spark's main class in its command starts the program. The program ends after it.
SUBMIT = f"""#!/bin/sh
exec {sys.executable} -c '
import os, subprocess, sys
program = next(word for word in sys.argv if word.endswith(".py"))
reading, writing = os.pipe()
sys.exit(subprocess.run([sys.executable, program], stdin=reading).returncode)
' {SPARK} "$@"
"""
WAITS = "import sys; sys.stdin.read()"


def until(wanted: Callable[[], object]) -> None:
    patience.until(wanted, 60)


class Jobs:
    """A store with the run "r" of home_activity, and an engine for its jobs."""

    def __init__(self, folder: Path) -> None:
        self.store, self.folder = folder / "store.db", folder / "spark"
        migrate_examples(self.store)
        self.change(
            "INSERT INTO aggregation_run (run_id, job, run_number, cut_from, cut_to, engine, attempt, submits, status,"
            " planned_at, intent_at, is_snapshot)"
            " VALUES ('r', 'home_activity', 1, '{}', '{}', 'local', 1, 1, 'submitted', 'at', 'at', 0)"
        )
        (folder / "spark-submit").write_text(SUBMIT)
        (folder / "spark-submit").chmod(0o755)
        for program in (PROGRAM, "other.py"):
            (folder / program).write_text(WAITS)
        self.engine = LocalEngine(LocalSpark(str(folder / "spark-submit"), folder, self.folder))
        self.killer = JobKiller(self.store, self.folder, "home_activity")

    def change(self, statement: str) -> None:
        with closing(sqlite3.connect(self.store, isolation_level=None)) as connection:
            connection.execute(statement)

    def submit(self, name: str, program: str = PROGRAM) -> Path:
        """Submit a job that runs until somebody ends it, and wait until its program runs."""
        self.engine.submit(JobRequest(name, program, ()))
        if program == PROGRAM:
            until(lambda: spark_process(self.folder / name))
        return self.folder / name

    def ended(self, name: str) -> JobState:
        until(lambda: self.engine.state(name) is not JobState.RUNNING)
        return self.engine.state(name)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    made = Jobs(tmp_path)
    yield made
    for folder in made.folder.glob("*"):
        made.engine.cancel(folder.name)


def test_the_job_of_the_open_run_is_killed_and_the_engine_gives_a_reason_that_counts(
    jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    pid = spark_process(jobs.submit("agg-r-1"))
    with ticking(0.01, jobs.killer):
        assert jobs.ended("agg-r-1") is JobState.FAILED
    assert jobs.engine.report("agg-r-1").reason == KILLED[0]
    assert capsys.readouterr().out == f"killing Spark, process {pid}, in run 1, attempt 1\n"


def test_a_job_that_computes_is_seen_to_work_and_one_without_processes_is_not(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / PROGRAM).write_text("while True: pass")
    folder = jobs.submit("agg-r-1")
    before = worked(folder)
    until(lambda: worked(folder) > before + 0.05)
    jobs.engine.cancel("agg-r-1")
    assert jobs.ended("agg-r-1") is JobState.FAILED
    assert (worked(folder), worked(tmp_path / "nowhere")) == (0, 0)


def test_once_a_killed_job_is_noted_the_next_attempt_runs_on(jobs: Jobs) -> None:
    jobs.submit("agg-r-1")
    assert not jobs.killer.look()
    assert jobs.ended("agg-r-1") is JobState.FAILED
    reason = jobs.engine.report("agg-r-1").reason
    jobs.change(
        "INSERT INTO aggregation_failure (run_id, submit_number, attempt, failed_at, why, reason)"
        f" VALUES ('r', 1, 1, 'at', 'its job failed', '{reason}')"
    )
    jobs.change("UPDATE aggregation_run SET attempt = 2, submits = 2")
    folder = jobs.submit("agg-r-2")
    assert jobs.killer.look()
    assert spark_process(folder) and jobs.engine.state("agg-r-2") is JobState.RUNNING


@pytest.mark.slow
def test_a_job_of_which_all_processes_were_killed_has_a_reason_that_counts(jobs: Jobs) -> None:
    jobs.submit("agg-r-1")
    jobs.engine.cancel("agg-r-1")
    assert jobs.ended("agg-r-1") is JobState.FAILED
    assert jobs.engine.report("agg-r-1").reason == KILLED[1]


def test_jobs_of_different_runs_and_programs_are_left_alone(jobs: Jobs, tmp_path: Path) -> None:
    others = [jobs.submit("agg-r-2"), jobs.submit("agg-s-1")]
    starting = jobs.submit("agg-r-1", "other.py")
    until(lambda: jobs.engine.find("agg-r-1"))
    assert not jobs.killer.look()
    assert spark_process(starting) is None and spark_process(tmp_path / "nowhere") is None
    jobs.change("UPDATE aggregation_run SET job = 'alerts_by_day', attempt = 2")
    assert not jobs.killer.look()
    assert all(spark_process(folder) for folder in others)
    assert {jobs.engine.state(name) for name in ("agg-r-1", "agg-r-2", "agg-s-1")} == {JobState.RUNNING}

import os
import signal
from pathlib import Path

import pytest

from core.aggregation.spark_engine import JobReport, JobRequest, JobState
from core.errors import EngineRefused
from core.remote.spark.local_engine import LocalEngine, LocalSpark
from tests.patience import until

SCRIPT = """#!/bin/sh
echo "$@"
for last; do :; done
case "$last" in
  long) exec sleep 600;;
  *) exit "$last";;
esac
"""


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def engine(tmp_path: Path, memory: Path) -> LocalEngine:
    script = tmp_path / "spark-submit"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    return LocalEngine(LocalSpark(str(script), tmp_path / "jobs", memory, {"spark.a": "b"}))


def request(ending: str, name: str = "agg-1-1") -> JobRequest:
    return JobRequest(name, "job.py", ("--run-id", "1", ending))


def ended(engine: LocalEngine, job_id: str) -> JobState:
    until(lambda: engine.state(job_id) is not JobState.RUNNING, 20)
    return engine.state(job_id)


def test_a_job_is_spark_submit_of_the_program_and_its_end_is_noted(engine: LocalEngine, memory: Path) -> None:
    assert ended(engine, engine.submit(request("0"))) is JobState.SUCCEEDED
    words = (memory / "agg-1-1" / "out").read_text()
    assert "--name agg-1-1 --master local[2]" in words
    assert "--conf spark.ui.enabled=false" in words
    assert "--conf spark.a=b" in words
    assert words.rstrip().endswith("jobs/job.py --run-id 1 0")
    assert ended(engine, engine.submit(request("3", "agg-1-2"))) is JobState.FAILED


@pytest.mark.slow
def test_a_job_is_found_by_another_engine_as_after_a_restart_of_the_app(engine: LocalEngine, memory: Path) -> None:
    for name in ("agg-1-1", "agg-1-2"):
        job_id = engine.submit(request("long", name))
        again = LocalEngine(engine._spark)
        assert again.find(name) == job_id
        assert again.state(job_id) is JobState.RUNNING
        if name == "agg-1-1":
            again.cancel(job_id)
        else:  # all its processes are killed
            os.killpg(int((memory / job_id / "group").read_text()), signal.SIGKILL)
        assert ended(again, job_id) is JobState.FAILED


def test_a_name_is_submitted_once(engine: LocalEngine, memory: Path) -> None:
    assert engine.submit(request("0")) == engine.submit(request("0")) == "agg-1-1"
    assert len(list(memory.iterdir())) == 1


def test_a_job_is_explained_by_its_exit_code_its_last_errors_and_its_folder(engine: LocalEngine, memory: Path) -> None:
    ended(engine, engine.submit(request("3")))
    folder = memory / "agg-1-1"
    assert engine.report("agg-1-1").log == (folder / "out").read_text().strip()
    (folder / "err").write_text("x" * 20_000 + "\nthe reason\n")
    report = engine.report("agg-1-1")
    assert (report.reason, report.link) == ("spark-submit ended with 3", str(folder))
    assert report.log is not None
    assert (len(report.log), report.log[-11:]) == (8_000 - 1, "\nthe reason")
    (folder / "ended").unlink()
    assert engine.report("agg-1-1").reason == "its processes were killed"
    assert engine.report("agg-2-1") == JobReport()


TRACEBACKS = {
    "ValueError: no month 13": (
        "Traceback (most recent call last):\n  File 'job.py', line 3\nValueError: no month 13\nmore\n"
    ),
    "org.apache.spark.SparkException: Job aborted": (
        "Traceback (most recent call last):\n  File 'job.py', line 3\n"
        "py4j.protocol.Py4JJavaError: An error occurred while calling o1.count.\n: org.apache.spark.SparkException: Job"
        " aborted\n\tat org.apache\nCaused by: java.lang.Error: deep\n"
    ),
    "a.b.AnalysisException: [COLUMN] none": (
        "Traceback (most recent call last):\n  File 'x'\nKeyError: 1\n\nDuring handling of the above exception:\n\n"
        "Traceback (most recent call last):\n  File 'y'\na.b.AnalysisException: [COLUMN] none\n"
    ),
}


@pytest.mark.parametrize("error", TRACEBACKS)
def test_a_failed_job_is_explained_by_the_error_that_ended_it(engine: LocalEngine, memory: Path, error: str) -> None:
    """Spark writes the traceback of a job to its standard output, and its own log to the other one."""
    ended(engine, engine.submit(request("1")))
    (memory / "agg-1-1" / "out").write_text(f"begun\n{TRACEBACKS[error]}")
    (memory / "agg-1-1" / "err").write_text("INFO ShutdownHookManager: Shutdown hook called\n")
    report = engine.report("agg-1-1")
    assert report.reason == f"spark-submit ended with 1: {error}"
    assert str(report.log).startswith("begun")


def test_a_job_that_never_began_is_not_found_and_lost(engine: LocalEngine, memory: Path) -> None:
    assert (engine.find("agg-1-1"), engine.state("agg-1-1")) == (None, JobState.LOST)
    (memory / "agg-1-1").mkdir(parents=True)  # the app died between the folder and the process
    assert engine.submit(request("0")) == "agg-1-1"
    assert (engine.find("agg-1-1"), engine.state("agg-1-1")) == (None, JobState.LOST)
    engine.cancel("agg-1-1")


def test_a_command_that_is_not_there_names_its_setting(tmp_path: Path) -> None:
    engine = LocalEngine(LocalSpark(str(tmp_path / "none"), tmp_path, tmp_path / "memory"))
    with pytest.raises(EngineRefused, match=r"^SPARK_SUBMIT: .*none is missing"):
        engine.submit(request("0"))

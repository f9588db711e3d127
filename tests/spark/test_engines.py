"""Runs on engines: real spark-submit processes, behind services that answer badly, killed, and on a cluster."""

import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.aggregation.runs import AggregationRun
from core.remote.spark.http_engines import LivyEngine, LivyJobs
from core.remote.spark.job_package import ARCHIVE, package_version
from core.remote.spark.local_engine import LocalEngine, LocalSpark
from jobs.package import write_package
from tests import patience
from tests.fakes.aggregation_engines import HOME_ACTIVITY, committed
from tests.fakes.spark_service import PATHS, LivyService, Serving
from tests.spark.here import environment, spark_home, spark_submit
from tests.spark.readings import NOON, gas, switch
from tests.spark.world import World

SECONDS = 120.0  # of an idle machine
ON_A_CLUSTER = (  # and Spark's own defaults: it plans queries adaptively, and generates code
    "spark.cores.max=2",
    "spark.executor.cores=1",
    "spark.executor.memory=512m",
    "spark.ui.enabled=false",
    "spark.sql.shuffle.partitions=2",
    "spark.driver.bindAddress=127.0.0.1",
    "spark.driver.host=127.0.0.1",
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1",
)


@pytest.fixture
def world(spark: Any, tmp_path: Path) -> Iterator[World]:
    made = World(spark, tmp_path)
    made.commit([gas(ppm=5), switch(), switch("home-2", NOON - timedelta(days=7))])
    yield made
    made.store.close()


def until(wanted: Callable[[], Any]) -> Any:
    """Wait for a condition."""
    return patience.until(wanted, SECONDS)


def last_run(world: World) -> AggregationRun:
    return world.store.read_runs(HOME_ACTIVITY, 10**9, 1)[0]


def tick_until_committed(world: World, ended: Callable[[], bool]) -> list[str]:
    """Tick, wait until the engine's jobs have ended, tick again. Return the steps of the ticks."""
    did: list[str] = []
    for _ in range(12):
        did += world.tick().did
        if "committed" in did:
            return did
        until(ended)
    raise AssertionError(did)


def jobs_folder(tmp_path: Path) -> str:
    write_package(tmp_path / "jobs", [])  # this Python has the packages
    return str(tmp_path / "jobs" / package_version())


def test_a_livy_that_is_busy_loses_answers_and_lists_slowly_runs_the_job_once(world: World, tmp_path: Path) -> None:
    def command(program: str, arguments: list[str]) -> list[str]:
        store = ["--store", f"sqlite:{world.sqlite.path}"]  # of the service's own secrets
        return [spark_submit(), "--master", "local[2]", program, *arguments, *store]

    service = LivyService(command, faults=["503", "drop"], hidden=3, dialect="synapse")
    service.environment = environment()
    with Serving(service) as found:
        jobs = LivyJobs(jobs_folder(tmp_path))
        world.own = replace(world.own, engine=LivyEngine(found.address + PATHS["synapse"], lambda: "token", jobs))
        did = tick_until_committed(world, lambda: all(batch.code is not None for batch in service.batches))
    assert did.count("submitted, without an answer") == 2
    assert len(service.batches) == 1
    assert (last_run(world).attempt, last_run(world).submits) == (1, 2)
    world.prove()


@pytest.fixture
def local(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalEngine:
    for name, value in {**environment(), "STORE_CONNECTION": f"sqlite:{world.sqlite.path}"}.items():
        monkeypatch.setenv(name, value)
    engine = LocalEngine(LocalSpark(spark_submit(), Path("jobs"), tmp_path / "memory"))
    world.own = replace(world.own, engine=engine)
    return engine


def test_a_driver_that_is_killed_while_it_stages_leaves_nothing_that_counts(
    world: World, local: LocalEngine, tmp_path: Path
) -> None:
    world.tick()
    job = last_run(world).job_name
    with closing(sqlite3.connect(world.sqlite.path, isolation_level=None)) as holding:
        holding.execute("BEGIN IMMEDIATE")  # nobody stages while this stands
        pid = int((tmp_path / "memory" / job / "group").read_text())
        until(lambda: _python_workers(pid))
        os.killpg(pid, signal.SIGKILL)
        holding.execute("ROLLBACK")
    did = tick_until_committed(world, lambda: last_run(world).engine_job_id is None or _ended(world, local))
    assert last_run(world).attempt == 2
    assert did.count("submitted") == 1
    world.prove()


def _ended(world: World, local: LocalEngine) -> bool:
    return local.state(str(last_run(world).engine_job_id)).value != "running"


def _python_workers(pid: int) -> bool:
    """Return True when the job runs tasks: the daemon that forks Python workers is there."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"quick_daemon" in path.read_bytes() and _session(path.parent) == pid:
                return True
        except OSError:
            continue
    return False


def _session(process: Path) -> int:
    return int((process / "stat").read_text().rpartition(")")[2].split()[3])


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Run a master and two workers of the wheel. Return its address, and the workers."""
    started: list[subprocess.Popen[bytes]] = []
    quiet = {**os.environ, **environment(), "SPARK_CONF_DIR": str(folder), "SPARK_DAEMON_MEMORY": "256m"}
    quiet.pop("PYTHONPATH")  # what the executors need comes with the job

    def start(name: str, *words: str) -> Path:
        log = folder / f"{name}.log"
        with log.open("wb") as out:
            command = [str(spark_home() / "bin" / "spark-class"), *words]
            started.append(subprocess.Popen(command, env=quiet, stdout=out, stderr=out, start_new_session=True))
        return log

    def said(log: Path, pattern: str) -> str:
        return until(lambda: (found := re.search(pattern, log.read_text(errors="replace"))) and found[1])

    try:
        here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = start("master", "org.apache.spark.deploy.master.Master", *here)
        address = said(master, r"Starting Spark master at (spark://\S+)")
        for number in (1, 2):
            options = (*here, "--cores", "1", "--memory", "700m", "--work-dir", str(folder / f"work{number}"))
            log = start(f"worker{number}", "org.apache.spark.deploy.worker.Worker", *options, address)
            said(log, r"(Successfully registered) with master")
        yield address, started[1:]
    finally:
        for process in reversed(started):
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the session of a worker, with its executors."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_cluster_runs_the_job_and_survives_the_death_of_a_worker(world: World, tmp_path: Path) -> None:
    run = world.planned()
    jobs = Path(jobs_folder(tmp_path))
    with cluster(tmp_path) as (address, (_, second)):
        confs = [word for conf in ON_A_CLUSTER for word in ("--conf", conf)]
        job = [str(jobs / "aggregate.py"), "--run-id", run.run_id, "--attempt", "1"]
        words = [spark_submit(), "--master", address, *confs, "--py-files", str(jobs / ARCHIVE), *job]
        own = {"SPARK_CONF_DIR": str(tmp_path), "STORE_CONNECTION": f"sqlite:{world.sqlite.path}"}
        with closing(sqlite3.connect(world.sqlite.path, isolation_level=None)) as holding:
            holding.execute("BEGIN IMMEDIATE")  # the job waits for this where it stages
            with (tmp_path / "job.log").open("wb") as out:
                driver = subprocess.Popen(words, env={**os.environ, **environment(), **own}, stdout=out, stderr=out)
            until(lambda: list((tmp_path / "work1").rglob("stderr")) and list((tmp_path / "work2").rglob("stderr")))
            _kill(second)
            holding.execute("ROLLBACK")
        patience.until(lambda: driver.poll() is not None, SECONDS, lambda: _written(tmp_path))
        assert driver.returncode == 0, (tmp_path / "job.log").read_text()
    staged = world.store.read_staged(run.run_id)
    assert staged is not None
    assert committed(world.store, run, staged, world.clock.now())
    world.prove()


def _written(folder: Path) -> int:
    """Return the length of what the driver and the executors wrote, which grows while they work."""
    logs = [folder / "job.log", *folder.glob("work*/**/std*")]
    return sum(log.stat().st_size for log in logs)

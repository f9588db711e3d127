"""The demo's aggregation: runs on Spark until nothing is new, one job killed, and one replay in the last run."""

import argparse
import http.client
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from core.remote.spark.local import LocalEngine, LocalSpark
from local.aggregates import NoAggregate, aggregate_of_demo, rows_per_event
from local.feed.domains import HOMES, Domain
from local.job_killer import JobKiller, worked
from local.operator import change
from local.processes import Pause, tail
from local.replaying import committed_range, replay
from local.stack import Place

SUBMIT = Path(sys.executable).parent / "spark-submit"
SETTINGS = {
    "SPARK_ENGINE": "local",
    "SPARK_SUBMIT": str(SUBMIT),
    "AGGREGATION_SCHEDULE": "*/10 * * * * *",  # while events still come, so that the demo has increments
    "AGGREGATION_GRACE_SECONDS": "20",  # short, so that the submit of a killed host delays the demo little
}
STEP_EVERY, PROGRESS_EVERY = 1.0, 5.0  # seconds
LOOKS = 240  # without a new step, a word in the log of a job, or work of its processes
WORK = 5.0  # seconds of the processor: less in all these looks is the pulse of a job that hangs
ANSWER = 60.0  # seconds until the host must answer
NO_SPARK = "Spark is missing: install Java, then run make .venv/spark.done"
NO_JAVA = "Java is missing: apt-get install openjdk-17-jre-headless, or set JAVA_HOME"


class NotAggregated(Exception):
    """Aggregation did not finish; the message holds its last step."""


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the option for a demo that aggregates."""
    parser.add_argument(
        "--aggregate",
        action="store_true",
        help="aggregate with Spark in three runs or more, kill a job of one, replay rows that are in the aggregate, "
        "and recount it; implies --keep",
    )


def senders_for(options: argparse.Namespace) -> int:
    """Return the number of senders of a demo.

    A demo that aggregates homes has fewer senders than usual. So each home publishes for more than an hour, and its
    page shows several windows.
    """
    events, domain = options.events, options.transform
    return max(40, events // 400) if options.aggregate and domain is HOMES else int(domain.senders_for(events))


def settings_for(options: argparse.Namespace) -> Mapping[str, str]:
    """Return settings of the host: a run has half of the rows at most, so two runs or more come before the replay."""
    if not options.aggregate:
        return {}
    rows = options.events * rows_per_event(options.transform) / 2
    return {**SETTINGS, "AGGREGATION_ROWS": str(max(1, round(rows)))}


def job_killer(options: argparse.Namespace, place: Place) -> AbstractContextManager[object]:
    """Return the killer of one Spark job, for a demo that aggregates."""
    if not options.aggregate:
        return nullcontext()
    return JobKiller(place.store, place.folder / "spark", aggregate_of_demo(options.transform).name)


def refuse_unable(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse options and machines that cannot aggregate, before anything starts."""
    if not options.aggregate:
        return
    try:
        aggregate_of_demo(options.transform)
    except NoAggregate as none:
        parser.error(f"argument --aggregate: {none}")
    if options.workers:
        parser.error("argument --aggregate: it needs the functions host, whose timer aggregates: leave --workers out")
    if lacking := _lacking():
        parser.error(f"argument --aggregate: {lacking}")


def _lacking() -> str | None:
    if shutil.which("java") is None and not Path(os.environ.get("JAVA_HOME", ""), "bin", "java").exists():
        return NO_JAVA
    return None if SUBMIT.exists() else NO_SPARK


@contextmanager
def jobs_ended(folder: Path) -> Iterator[None]:
    """End the jobs of this folder at the end of the block, because a job outlives the process that submits it."""
    memory = folder / "spark"
    try:
        yield
    finally:
        engine = LocalEngine(LocalSpark(str(SUBMIT), folder, memory))
        for job in memory.glob("*/"):
            engine.cancel(job.name)


def aggregate_and_replay(address: str, place: Place, domain: Domain, pause: Pause) -> None:
    """Aggregate all that is committed, replay events whose rows are in the aggregate, and aggregate the replay too."""
    of = aggregate_of_demo(domain)
    aggregate_all(address, of.name, place.folder, pause)
    chosen = committed_range(place.store, of)
    if chosen is not None:  # otherwise the proof reports that the replay is missing
        replay(address, chosen, pause, lambda line: print(line, flush=True))
        aggregate_all(address, of.name, place.folder, pause)


def aggregate_all(address: str, job: str, folder: Path, pause: Pause) -> None:
    """Have the host take steps until nothing is new; raise NotAggregated when a step fails or takes too long."""
    began = printed_at = time.monotonic()
    looks, last = 0, ("", 0, 0)
    while (standing := _step(address, job)) != "has nothing new":
        now = time.monotonic()
        if "failed" in standing or looks > LOOKS:
            raise NotAggregated(f"aggregation: {standing}; the newest job's last lines:\n{_last_words(folder)}")
        if standing != last[0] or now - printed_at > PROGRESS_EVERY:
            print(f"{now - began:6.1f} s  aggregating: {standing}", flush=True)
            printed_at = now
        looks = 0 if last != (last := (standing, *_moved(folder))) else looks + 1
        pause(STEP_EVERY)


def _step(address: str, job: str) -> str:
    """Return the result of one step and the status of the newest run, or the reason of a missing answer."""
    try:
        status, answer = change(address, "POST", "/api/aggregations", {"job": job}, ANSWER)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return f"no answer: {str(error) or type(error).__name__}"
    if status != 202:
        return f"{status}: {answer}"
    if answer["did"] == ["has nothing new"]:
        return "has nothing new"
    run = answer["run"]
    if run is None:
        return ", ".join(answer["did"])
    return f"run {run['number']}, attempt {run['attempt']}, {run['status']}{_why(run['failure'])}"


def _why(failure: str | None) -> str:
    return f": {failure}" if failure else ""


def _moved(folder: Path) -> tuple[int, int]:
    """Return the length of the logs of all jobs, and the work of their processes in steps of WORK."""
    jobs = [path.parent for path in (folder / "spark").glob("*/err")]
    return sum((job / "err").stat().st_size for job in jobs), int(sum(map(worked, jobs)) / WORK)


def _last_words(folder: Path) -> str:
    errors = sorted((folder / "spark").glob("*/err"), key=lambda path: path.stat().st_mtime)
    return tail(errors[-1]) if errors else "  (no job wrote any)"

"""The demo's aggregation: run Spark until nothing is new, and recount the aggregate."""

import argparse
import http.client
import json
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from core.remote.spark.local import LocalEngine, LocalSpark
from local.activity_recount import recount_activity
from local.feed.domains import HOMES
from local.processes import Pause, tail

SUBMIT = Path(sys.executable).parent / "spark-submit"
SETTINGS = {
    "SPARK_ENGINE": "local",
    "SPARK_SUBMIT": str(SUBMIT),
    "AGGREGATION_SCHEDULE": "*/10 * * * * *",  # while events still come, so that the demo has increments
    "AGGREGATION_GRACE_SECONDS": "20",  # short, so that the submit of a killed host delays the demo little
}
STEP_EVERY, PROGRESS_EVERY = 1.0, 5.0  # seconds
PATIENCE = 240.0  # the limit of seconds for one step of a run
ANSWER = 60.0  # seconds until the host must answer
SERVED_AT = "http://localhost:7071"  # the address of `make serve`
NO_SPARK = "Spark is missing: install Java, then run make .venv/spark.done"
NO_JAVA = "Java is missing: apt-get install openjdk-17-jre-headless, or set JAVA_HOME"


class NotAggregated(Exception):
    """Aggregation did not finish; the message holds its last step."""


def homes_for(events: int) -> int:
    """Return a number of homes so small that each publishes for more than an hour of event time, for its page."""
    return max(40, events // 400)


def refuse_unable(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Refuse options and machines that cannot aggregate, before anything starts."""
    if not options.aggregate:
        return
    if options.workers:
        parser.error("argument --aggregate: it needs the functions host, whose timer aggregates: leave --workers out")
    if options.transform is not HOMES:
        parser.error(f"argument --aggregate: only {HOMES.name} has readings to aggregate")
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


def aggregate_all(address: str, folder: Path, pause: Pause) -> None:
    """Have the host take steps until nothing is new; raise NotAggregated when a step fails or takes too long."""
    began = printed_at = moved_at = time.monotonic()
    last = ""
    while (standing := _step(address)) != "has nothing new":
        now = time.monotonic()
        if "failed" in standing or now - moved_at > PATIENCE:
            raise NotAggregated(f"aggregation: {standing}; the newest job's last lines:\n{_last_words(folder)}")
        if standing != last or now - printed_at > PROGRESS_EVERY:
            print(f"{now - began:6.1f} s  aggregating: {standing}", flush=True)
            printed_at = now
        if standing != last:
            last, moved_at = standing, now
        pause(STEP_EVERY)


def prove_aggregate(store: Path, record: Path, show: Callable[[str], object]) -> tuple[dict[str, object], list[str]]:
    """Return the figures of the aggregate and its differences; show the address of a home's page."""
    recounted = recount_activity(store, record)
    differences, home_id = recounted.differences, recounted.busiest_home
    if home_id is None:
        differences.append("home_activity: it is empty")
    page = None if home_id is None else f"{SERVED_AT}/api/homes/{home_id}"
    if page is not None:
        show(f"a home's page: {page}   once `make serve FOLDER={store.parent}` says that it is ready")
    aggregate = {
        "equals_recount": not differences,
        "windows": len(recounted.found),
        "readings": sum(sums.readings for sums in recounted.found.values()),
        "runs": recounted.runs,
    }
    return {"aggregate": aggregate, "home_page": page}, differences


def _step(address: str) -> str:
    """Return the result of one step and the status of the newest run, or the reason of a missing answer."""
    try:
        status, body = _post(address)
    except (OSError, http.client.HTTPException) as error:
        return f"no answer: {str(error) or type(error).__name__}"
    if status != 202:
        return f"{status}: {body.decode(errors='replace')[:300]}"
    answer: dict[str, Any] = json.loads(body)
    if answer["did"] == ["has nothing new"]:
        return "has nothing new"
    run = answer["run"]
    if run is None:
        return ", ".join(answer["did"])
    return f"run {run['number']}, attempt {run['attempt']}, {run['status']}{_why(run['failure'])}"


def _why(failure: str | None) -> str:
    return f": {failure}" if failure else ""


def _post(address: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=ANSWER)
    headers = {"Content-Type": "application/json", "Idempotency-Key": uuid.uuid4().hex}
    try:
        connection.request("POST", "/api/aggregations", b"{}", headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _last_words(folder: Path) -> str:
    errors = sorted((folder / "spark").glob("*/err"), key=lambda path: path.stat().st_mtime)
    return tail(errors[-1]) if errors else "  (no job wrote any)"

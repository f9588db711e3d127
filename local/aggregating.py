"""The demo's aggregation: Spark beside the run until nothing is new, and the figures of what came of it."""

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
    "AGGREGATION_SCHEDULE": "*/10 * * * * *",  # while events still come, so that there are increments
    "AGGREGATION_GRACE_SECONDS": "20",  # a killed host's submit is not waited for long
}
ASKED_EVERY, TOLD_EVERY = 1.0, 5.0  # seconds
PATIENCE = 240.0  # seconds in which a run must come a step further
ANSWER = 60.0  # seconds that the host may take for one
SERVED_AT = "http://localhost:7071"  # where `make serve` answers
NO_SPARK = "Spark is missing: make .venv/spark.done, where Java is found"
NO_JAVA = "Java is missing: apt-get install openjdk-17-jre-headless, or set JAVA_HOME"


class NotAggregated(Exception):
    """Aggregation came to no end; the message says where it stood."""


def homes_for(events: int) -> int:
    """So few that each is heard for more than an hour of event time: a home's page has something to show."""
    return max(40, events // 400)


def refuse_unable(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Whatever keeps this demo from aggregating is one clear error before anything is started."""
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
    """Jobs outlive whoever submits them; those of this folder are ended when the block is left."""
    memory = folder / "spark"
    try:
        yield
    finally:
        engine = LocalEngine(LocalSpark(str(SUBMIT), folder, memory))
        for job in memory.glob("*/"):
            engine.cancel(job.name)


def aggregate_all(address: str, folder: Path, pause: Pause) -> None:
    """Ask the host for the next step again and again, until nothing is new; NotAggregated when it comes no further."""
    began = told_at = moved_at = time.monotonic()
    last = ""
    while (standing := _step(address)) != "has nothing new":
        now = time.monotonic()
        if "failed" in standing or now - moved_at > PATIENCE:
            raise NotAggregated(f"aggregation: {standing}; the newest job's last lines:\n{_last_words(folder)}")
        if standing != last or now - told_at > TOLD_EVERY:
            print(f"{now - began:6.1f} s  aggregating: {standing}", flush=True)
            told_at = now
        if standing != last:
            last, moved_at = standing, now
        pause(ASKED_EVERY)


def prove_aggregate(store: Path, record: Path, tell: Callable[[str], object]) -> tuple[dict[str, object], list[str]]:
    """The figures of the aggregate and what is wrong with it; says where a home's page can be looked at."""
    recounted = recount_activity(store, record)
    differences, home_id = recounted.differences, recounted.busiest_home
    if home_id is None:
        differences.append("home_activity: it is empty")
    page = None if home_id is None else f"{SERVED_AT}/api/homes/{home_id}"
    if page is not None:
        tell(f"a home's page: {page}   once `make serve FOLDER={store.parent}` says that it is ready")
    aggregate = {
        "equals_recount": not differences,
        "windows": len(recounted.found),
        "readings": sum(sums.readings for sums in recounted.found.values()),
        "runs": recounted.runs,
    }
    return {"aggregate": aggregate, "home_page": page}, differences


def _step(address: str) -> str:
    """What the step did and where the newest run stands, in words; or why there was no answer."""
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
    return tail(errors[-1]) if errors else "  (there was none)"

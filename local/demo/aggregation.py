"""The aggregation of a demo: runs until nothing is new, one killed job, one replay, and the recount of its rows."""

import argparse
import http.client
import os
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from core.aggregation.tick import PROGRAM
from core.model.aggregates import Aggregate
from core.model.rows import References, row_table
from core.remote.spark.local_engine import LocalEngine, LocalSpark
from core.transforms.loading import load_aggregates, load_transform
from local.demo.operator import LOOKS, Addressed, change, done_task
from local.feed.businesses import FLIGHTS, HOMES, Domain
from local.recount.aggregates import Recounted, recount_aggregate
from local.recount.expected import outcome_of
from local.stack.app_totals import reading
from local.stack.consumers import ticking
from local.stack.processes import Pause, tail
from local.stack.stack import Place
from local.trials.outcomes import event_of

# The usual number of rows, of all tables, that the app writes for an event of a feed.
_ROWS_PER_EVENT = {HOMES.name: 0.83, FLIGHTS.name: 1.98}


class NoAggregate(Exception):
    """The room declares no aggregate."""


def aggregate_of_demo(domain: Domain) -> Aggregate:
    """Return the first aggregate by name of a domain's transform. Raises NoAggregate when it has none."""
    declared = load_aggregates(load_transform(domain.transform).row_classes)
    if not declared:
        raise NoAggregate(f"{domain.transform} declares no aggregate")
    return declared[0]


def rows_per_event(domain: Domain) -> float:
    """Return the usual number of rows, of all tables, that the app writes for an event."""
    if domain.sample is None:
        return _ROWS_PER_EVENT[domain.name]
    transform, states, rows = load_transform(domain.transform), References({}), 1
    for line in domain.sample.lines:  # each with the states of the lines before it
        for row in outcome_of(transform, event_of(line, number=line.line), states).rows:
            rows += 1
            if row_table(type(row)).key:
                states.learn(row)
    return rows / len(domain.sample.lines)


SERVED_AT = "http://localhost:7071"  # the address of `make serve`
WANTED = {"runs": 3, "replays": 1, "killed": 1}  # at least
# The engine's reason where its job was killed: Spark alone (128 + SIGKILL), or all of its processes.
KILLED = ("spark-submit ended with 137", "its processes were killed")

_RUNS = "SELECT COUNT(*) FROM aggregation_run WHERE job = :job AND status = 'committed'"
# A replay counts when all its commits are in committed runs, and one of them has replaced rows of the aggregate.
_REPLAYS = """
SELECT COUNT(*) FROM (
    SELECT l.invocation_id
    FROM batch_ledger AS l JOIN aggregation_cut AS c ON c.job = :job
        LEFT JOIN json_each(c.cut) AS j ON j.key = l.stream_id || '/' || l.partition_id
    WHERE l.kind = 'replay'
    GROUP BY l.invocation_id
    HAVING MAX(l.commit_number > COALESCE(j.value, 0)) = 0 AND MAX(EXISTS (
        SELECT 1 FROM retracted_row AS r
        WHERE r.stream_id = l.stream_id AND r.partition_id = l.partition_id AND r.commit_number = l.commit_number
            AND r.table_name = :source
    ))
)
"""
# A killed job counts when a later attempt of its run was committed.
_KILLED = """
SELECT COUNT(*) FROM aggregation_failure AS f JOIN aggregation_run AS r ON r.run_id = f.run_id
WHERE r.job = :job AND r.status = 'committed' AND r.attempt > f.attempt AND f.reason IN (:killed_alone, :killed_all)
"""
_MISSING = {
    "runs": "{found} runs are committed, but the demo must have at least {wanted}; more EVENTS make more runs",
    "replays": "no committed run has a replay of rows that it adds up",
    "killed": "no run was committed by a later attempt after its job was killed",
}


def prove_aggregate(domain: Domain, store: Path, show: Callable[[str], object]) -> tuple[dict[str, object], list[str]]:
    """Return the figures of the aggregate and all differences. Show the address of a home's page."""
    of = aggregate_of_demo(domain)
    recounted = recount_aggregate(of, store)
    differences = recounted.differences
    if not recounted.found:
        differences.append(f"{of.name}: it is empty")
    counts = count_work(store, of)
    figures: dict[str, object] = {
        "aggregate": {"name": of.name, "equals_recount": not differences, "rows": recounted.rows},
        "aggregation": {**counts, "windows": len(recounted.found)},
    }
    if domain is HOMES:
        page = None
        if (home_id := busiest_home(recounted)) is not None:
            page = f"{SERVED_AT}/api/homes/{home_id}"
            show(f"a home's page: {page}   once `make serve FOLDER={store.parent}` says that it is ready")
        figures["home_page"] = page
    return figures, [*differences, *missing(counts)]


def count_work(store: Path, of: Aggregate) -> dict[str, int]:
    """Count the committed runs of an aggregate, the replays in them, and the killed jobs that a later attempt redid."""
    source = row_table(of.source).name
    values = {"job": of.name, "source": source, "killed_alone": KILLED[0], "killed_all": KILLED[1]}
    queries = {"runs": _RUNS, "replays": _REPLAYS, "killed": _KILLED}
    with reading(store) as connection:
        return {name: int(connection.execute(query, values).fetchone()[0]) for name, query in queries.items()}


def missing(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each count that is too small: such a demo proves less than it must."""
    for name, wanted in WANTED.items():
        if counts[name] < wanted:
            yield f"aggregation: {_MISSING[name].format(found=counts[name], wanted=wanted)}"


def busiest_home(recounted: Recounted) -> str | None:
    """Return the home with the most readings in the aggregate, or None when nothing was aggregated."""
    readings: Counter[str] = Counter()
    for (home_id, *_), (count, *_) in recounted.found.items():
        readings[home_id] += count
    return max(readings, key=lambda home_id: (readings[home_id], home_id), default=None)


LOOK_AT_JOBS_EVERY = 0.2  # seconds
TICK = os.sysconf("SC_CLK_TCK")  # of the times in /proc
SPARK, LAUNCHER = "org.apache.spark.deploy.SparkSubmit", "org.apache.spark.launcher.Main"
_FAILED = "SELECT COUNT(*) FROM aggregation_failure WHERE reason IN (?, ?)"
_SUBMITTED = "SELECT run_id, run_number, attempt FROM aggregation_run WHERE job = ? AND status = 'submitted'"


class JobKiller:
    """Kills the jobs of an aggregate, each once, until the app has recorded a killed one.

    `jobs` is the folder with a folder for each job.
    """

    def __init__(self, store: Path, jobs: Path, aggregate: str) -> None:
        self._store = store
        self._jobs = jobs
        self._aggregate = aggregate
        self._struck: set[str] = set()

    def __call__(self) -> None:
        """Look, unless the store is locked, or the process has just ended."""
        with suppress(sqlite3.Error, OSError):
            self.look()

    def look(self) -> bool:
        """Kill the job that runs, and return True once the app has recorded a killed one."""
        with reading(self._store) as connection:
            if connection.execute(_FAILED, KILLED).fetchone()[0]:
                return True
            submitted = connection.execute(_SUBMITTED, (self._aggregate,)).fetchall()
        for run_id, number, attempt in submitted:
            name = f"agg-{run_id}-{attempt}"
            pid = None if name in self._struck else spark_process(self._jobs / name)
            if pid is not None:
                self._struck.add(name)
                print(f"killing Spark, process {pid}, in run {number}, attempt {attempt}", flush=True)
                os.kill(pid, signal.SIGKILL)
        return False


def spark_process(folder: Path) -> int | None:
    """Return the id of a job's Spark process while the job's program runs, or None before and after."""
    group = _group(folder)
    processes = dict(_members(group)) if group else {}
    if not any(Path(words[1]).name == PROGRAM for words in processes.values() if len(words) > 1):
        return None
    return next((pid for pid, words in processes.items() if SPARK in words and LAUNCHER not in words), None)


def worked(folder: Path) -> float:
    """Return the seconds of the processor that the processes of a job have used, or 0 when it has none."""
    group = _group(folder)
    return sum(sum(map(int, fields[11:15])) / TICK for _, fields in _stats(group)) if group else 0.0


def _group(folder: Path) -> int | None:
    """Return the process group of a job, or None before it is started."""
    try:
        return int((folder / "group").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _members(group: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the processes of a process group, with the words of their commands."""
    for entry, _ in _stats(group):
        with suppress(OSError):  # it has just ended
            yield int(entry.name), (entry / "cmdline").read_text().split("\0")


def _stats(group: int) -> Iterator[tuple[Path, list[str]]]:
    """Yield the folders of the processes of a process group, with the fields after their names in `stat`."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):  # it has just ended
            fields = (entry / "stat").read_text().rpartition(") ")[2].split()
            if int(fields[2]) == group:
                yield entry, fields


# The partition of the newest incarnation with the most rows in committed runs, from its first event to the last one of
# these runs. A range from the first event on gives each event the states of its time, so the rows are the same.
_RANGE = """
SELECT l.partition_id, MIN(l.first_sequence_number), MAX(l.last_sequence_number), (
    SELECT COUNT(*) FROM {source} AS r
    WHERE r.stream_id = l.stream_id AND r.partition_id = l.partition_id AND r.commit_number <= j.value
) AS committed_rows
FROM aggregation_cut AS c JOIN json_each(c.cut) AS j
    JOIN batch_ledger AS l ON l.stream_id || '/' || l.partition_id = j.key AND l.commit_number <= j.value
WHERE c.job = ? AND l.kind = 'batch' AND l.stream_id = (SELECT MAX(stream_id) FROM event_stream)
GROUP BY l.partition_id ORDER BY committed_rows DESC, l.partition_id LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Range:
    """The events of a partition from the first to the last number, which have `rows` in committed runs."""

    partition_id: str
    first: int
    last: int
    rows: int


def committed_range(store: Path, of: Aggregate) -> Range | None:
    """Return the range that a demo replays for an aggregate, or None when no committed run has a row of it."""
    with reading(store) as connection:
        found = connection.execute(_RANGE.format(source=row_table(of.source).name), (of.name,)).fetchone()
    return None if found is None or not found[3] else Range(*found)


def replay(host: Addressed, chosen: Range, pause: Pause, show: Callable[[str], object]) -> None:
    """Replay a range for good, and wait until it is done. Raises NotDone when it ends in a different way."""
    numbers = f"numbers {chosen.first} to {chosen.last} of partition {chosen.partition_id}"
    show(f"replaying {numbers}, with {chosen.rows:,} rows in committed runs")
    order = {
        "partitions": [chosen.partition_id],
        "from": {"sequence_number": str(chosen.first)},
        "to": {"sequence_number": str(chosen.last)},
        "dry_run": False,
        "reason": "the demo replays rows that are in the aggregate",
    }
    counts = done_task(host, "replay", order, pause)["counts"]
    show(f"replayed {counts['events']:,} events: {counts['rows_retracted']:,} rows were replaced")


SUBMIT = Path(sys.executable).parent / "spark-submit"
SETTINGS = {
    "SPARK_ENGINE": "local",
    "SPARK_SUBMIT": str(SUBMIT),
    "AGGREGATION_SCHEDULE": "*/10 * * * * *",  # while events still come, so that the demo has increments
    "AGGREGATION_GRACE_SECONDS": "20",  # short, so that the submit of a killed host delays the demo little
}
STEP_EVERY, PROGRESS_EVERY = 1.0, 5.0  # seconds
WORK = 5.0  # seconds of the processor: less in all these looks is the pulse of a job that hangs
ANSWER = 60.0  # seconds until the host must answer
NO_SPARK = "Spark is missing: install Java, then run make .venv/spark.done"
NO_JAVA = "Java is missing: apt-get install openjdk-17-jre-headless, or set JAVA_HOME"


class NotAggregated(Exception):
    """Aggregation did not finish. The message holds its last step."""


def add_option(parser: argparse.ArgumentParser) -> None:
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
    killer = JobKiller(place.store, place.folder / "spark", aggregate_of_demo(options.transform).name)
    return ticking(LOOK_AT_JOBS_EVERY, killer)


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
    if shutil.which("java") is None and not Path(os.environ.get("JAVA_HOME", ""), "bin", "java").exists():
        parser.error(f"argument --aggregate: {NO_JAVA}")
    if not SUBMIT.exists():
        parser.error(f"argument --aggregate: {NO_SPARK}")


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


def aggregate_and_replay(host: Addressed, place: Place, domain: Domain, pause: Pause) -> None:
    """Aggregate all that is committed, replay events whose rows are in the aggregate, and aggregate the replay too."""
    of = aggregate_of_demo(domain)
    aggregate_all(host.address, of.name, place.folder, pause)
    chosen = committed_range(place.store, of)
    if chosen is not None:  # otherwise the proof reports that the replay is missing
        replay(host, chosen, pause, lambda line: print(line, flush=True))
        aggregate_all(host.address, of.name, place.folder, pause)


def aggregate_all(address: str, job: str, folder: Path, pause: Pause) -> None:
    """Have the host take steps until nothing is new. Raises NotAggregated when a step fails or takes too long."""
    began = printed_at = time.monotonic()
    looks, last = 0, ("", 0, 0)
    while (standing := _step(address, job)) != "has nothing new":
        now = time.monotonic()
        if "failed" in standing or looks > LOOKS:
            errors = sorted((folder / "spark").glob("*/err"), key=lambda path: path.stat().st_mtime)
            words = tail(errors[-1]) if errors else "  (no job wrote any)"
            raise NotAggregated(f"aggregation: {standing}; the newest job's last lines:\n{words}")
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
    why = f": {run['failure']}" if run["failure"] else ""
    return f"run {run['number']}, attempt {run['attempt']}, {run['status']}{why}"


def _moved(folder: Path) -> tuple[int, int]:
    """Return the length of the logs of all jobs, and the work of their processes in steps of WORK."""
    jobs = [path.parent for path in (folder / "spark").glob("*/err")]
    return sum((job / "err").stat().st_size for job in jobs), int(sum(map(worked, jobs)) / WORK)

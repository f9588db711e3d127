"""Aggregation on Spark: the job's time for 5,000,000 readings, against a bare read, and the cost of an increment.

The part runs where `make test` found Java and installed pyspark. Elsewhere it says so and measures nothing.
"""

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from bench.figures import Figure, paired
from bench.samples import ROOMS

HOME_ACTIVITY = "home_activity"
READINGS = int(os.environ.get("BENCH_READINGS", "5000000"))
HOMES, KINDS, PARTITIONS = 20_000, 5, 16
NEW, HISTORIES = 100_000, (1, 4, 16)  # readings of an increment, and the sizes of the history in multiples of it
ROUNDS = 3
STREAM = (
    "INSERT OR IGNORE INTO event_stream (stream_id, event_hub, consumer_group, incarnation, anchored_at)"
    " VALUES (1, 'bench/telemetry', 'hubledger', 1, 'at')"
)
_LEDGER = (
    "INSERT INTO batch_ledger VALUES"
    " (?, ?, ?, 'batch', ?, ?, ?, 0, 0, 0, 0, ?, ?, 't', 'i', '2026-02-02T00:00:00Z', 0, 0, 0, 0, 0, 0)"
)
_CHECKPOINT = (
    "INSERT OR REPLACE INTO event_hub_checkpoint"
    " (stream_id, partition_id, sequence_number, offset_token, enqueued_at, commit_number, commit_id, updated_at,"
    " first_sequence_number, commits, written, filtered, dead_lettered, held, absent, letters)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, 0)"
)
_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "3g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}


def open_spark() -> Any:
    """Open a session, or return None and print a line where Java or pyspark is absent."""
    if find_spec("pyspark") is None or not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        print("spark: skipped, it needs Java (apt-get install openjdk-17-jre-headless) and jobs/requirements.txt")
        return None
    os.environ |= {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path.cwd()), os.environ.get("PYTHONPATH", "")])
    return _session()


def measure() -> Iterator[Figure]:
    """Measure the start of the session, and then rates and ratios without it."""
    started = perf_counter()
    spark = open_spark()
    if spark is None:
        return
    spark.range(10).count()
    yield Figure("spark, session and first query", perf_counter() - started, "s", "", None)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        yield from _from_parquet(spark, Path(folder).resolve())
        yield from _increments(spark, Path(folder).resolve())
    spark.stop()


def _session() -> Any:
    from pyspark.sql import SparkSession

    from jobs.session import SETTINGS

    builder = SparkSession.builder.master("local[2]").appName("bench")
    for name, value in {**_CONF, **SETTINGS}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _from_parquet(spark: Any, folder: Path) -> Iterator[Figure]:
    """Measure the job's transform from Parquet to a written result, and against a bare read of the same rows."""
    from pyspark.sql import functions as F

    from core.transforms.loading import find_aggregate
    from jobs.transforms import partial_sums, schema_of, source_columns

    of = find_aggregate(HOME_ACTIVITY)

    _readings(spark).write.parquet(str(folder / "readings"))
    read = spark.read.schema(schema_of(source_columns(of))).parquet(str(folder / "readings"))
    written = _times(lambda at: partial_sums(of, read).write.parquet(str(folder / f"result-{at}")))
    rate, windows = READINGS / written, spark.read.parquet(str(folder / "result-0")).count()
    note = f"{READINGS:,} readings to {windows:,} windows, Parquet to Parquet"
    yield Figure("spark, readings aggregated a second on 2 cores", rate, "/s", ">= 250000", rate >= 250_000, note)
    every_column = [F.max(name) for name in read.columns]
    summed, whole = paired(
        lambda _: partial_sums(of, read).write.format("noop").mode("overwrite").save(),
        lambda _: read.agg(*every_column).collect(),
        2 * ROUNDS + 1,
    )
    ratio = summed / whole
    note = f"{READINGS / whole:,.0f} readings/s only read, in every column"
    yield Figure("spark, aggregation against a bare read of the rows", ratio, "x", "<= 2", ratio <= 2, note)


def _readings(spark: Any) -> Any:
    """Return a reading of each sensor of each home every minute: many windows with few readings each."""
    from pyspark.sql import functions as F

    kinds = F.array(*map(F.lit, ("motion", "door", "window", "glass_break", "carbon_monoxide")))
    at = F.col("id")
    kind = kinds[(at % KINDS).cast("int")]
    minute = (at / (HOMES * KINDS)).cast("bigint")
    is_gas = kind == "carbon_monoxide"
    return spark.range(0, READINGS, 1, PARTITIONS).select(
        F.format_string("H%06d", (at / KINDS).cast("bigint") % HOMES).alias("home_id"),
        kind.alias("kind"),
        F.when(~is_gas, F.when(at % 3 == 0, "active").otherwise("idle")).alias("state"),
        F.when(is_gas, at % 90).alias("ppm"),
        F.timestamp_seconds(1_770_000_000 + minute * 60 + at % 60).alias("observed_at"),
    )


def _increments(spark: Any, folder: Path) -> Iterator[Figure]:
    """Measure a run of the job over the same number of new readings, with ever more history."""
    costs = {times: _increment(spark, folder / f"history-{times}.db", times) for times in HISTORIES}
    first = costs[HISTORIES[0]]
    for times, cost in costs.items():
        note = f"{NEW:,} new readings, {NEW * times:,} before them; read from SQLite and staged there"
        ratio = cost / first
        met = ratio <= 1.5 if times > 1 else None
        yield Figure(
            f"spark, an increment with {times}x of history", cost, "s", "" if met is None else "<= 1.5 x", met, note
        )


def _increment(spark: Any, path: Path, times: int) -> float:
    from core.store.sqlite.schema import migrate_sqlite

    migrate_sqlite(path, ROOMS)
    _fill(path, 0, NEW * times)
    costs = [timed_run(spark, path)]
    for end in range(times + 1, times + 1 + ROUNDS):
        _fill(path, NEW * (end - 1), NEW * end)
        costs.append(timed_run(spark, path))
    return median(costs[1:])


def timed_run(spark: Any, path: Path) -> float:
    """Aggregate the commits that no run has yet. Return the seconds of the job and of the run's commit."""
    from core.aggregation.runs import planned_run
    from core.aggregation.store import Aggregations
    from core.aggregation.tick import commit_run
    from core.store.sqlite.database import SqliteDatabase
    from jobs.aggregate import Execution, aggregate
    from jobs.sqlite_tables import SqliteTables

    with closing(Aggregations(SqliteDatabase(path))) as store:
        run = planned_run(HOME_ACTIVITY, store.read_standing(HOME_ACTIVITY), "local", datetime.now(UTC))
        if run is None or not store.open_run(run):
            raise RuntimeError("nothing to aggregate")
        started = perf_counter()
        aggregate(spark, SqliteTables(spark, str(path)), Execution(run.run_id, 1))
        staged = store.read_staged(run.run_id)
        until = datetime.now(UTC) + timedelta(hours=1)
        if staged is None or commit_run(store, run, staged, lambda: datetime.now(UTC), until) != "committed":
            raise RuntimeError("the run was not committed")
        return perf_counter() - started


def _fill(path: Path, first: int, last: int) -> None:
    """Store readings, in turn over 16 partitions, with the ledger and the checkpoints that cover them."""
    each = NEW // PARTITIONS // 50  # readings of a commit: an increment is fifty commits of each partition
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute(STREAM)
        for partition in range(PARTITIONS):
            begin, end = first // PARTITIONS, last // PARTITIONS
            values = ((1, str(partition), at, 0, at // each + 1, *_row(partition, at)) for at in range(begin, end))
            connection.executemany("INSERT INTO sensor_reading VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            ranges = (
                (1, str(partition), at // each + 1, at, at + each - 1, *[each] * 3) for at in range(begin, end, each)
            )
            connection.executemany(_LEDGER, ranges)
            place = (1, str(partition), end - 1, "0", "at", end // each, "id", "at")
            connection.execute(_CHECKPOINT, place)
        connection.execute("COMMIT")


def _row(partition: int, at: int) -> tuple[Any, ...]:
    number = at * PARTITIONS + partition
    moment = datetime.fromtimestamp(1_770_000_000 + number // 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return f"H{number % HOMES:06}", f"S{number % 7}", "motion", "active", None, moment


def _times(work: Callable[[int], object]) -> float:
    """Return the median seconds of a few rounds, after one round as a warm-up."""
    costs = []
    for at in range(ROUNDS + 1):
        started = perf_counter()
        work(at)
        costs.append(perf_counter() - started)
    return median(costs[1:])

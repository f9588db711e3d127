"""The job of a run: add up the readings that lie between its cuts, and stage the result. The function commits it.

It may be killed anywhere and run any number of times, at the same time too: each execution stages under an id of its
own, and what is not finished counts for nothing.
"""

import argparse
import json
import os
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession

from jobs import lake
from jobs.ranges import LedgerRange, replay_slices, replays, slices_of, spans_between
from jobs.session import open_session
from jobs.tables import OPEN, Result, Run, Tables, open_tables
from jobs.transforms import corrected, partial_sums, parts, snapshot, windows_of

JOB = "home_activity"


@dataclass(frozen=True, slots=True)
class Order:
    """Which attempt of which run; where the lake is, if there is one; whether all that stands goes there too."""

    run_id: str
    attempt: int
    lake: str | None = None
    is_snapshot: bool = False


def aggregate(spark: SparkSession, tables: Tables, order: Order) -> Result | None:
    """Stage the result of a run; None, and nothing was done, when it is closed or at another attempt."""
    run = tables.read_run(order.run_id)
    if run is None or run.status not in OPEN or run.attempt != order.attempt:
        return None
    staging_id = f"{order.run_id}-{order.attempt}-{uuid.uuid4().hex}"
    windows = result_of(tables, run)
    lake_path = None
    if order.lake is not None:
        windows = windows.persist()
        whole = snapshot(tables.activity(), windows) if order.is_snapshot else windows
        lake_path = lake.write_run(whole, order.lake, f"{JOB}/run={order.run_id}/{staging_id}")
    tables.stage(windows, staging_id, order.run_id)
    result = Result(staging_id, order.run_id, order.attempt, lake_path, order.is_snapshot, datetime.now(UTC))
    tables.finish(result)
    windows.unpersist()
    return result


def result_of(tables: Tables, run: Run) -> DataFrame:
    """The windows of a run: parts to add, and whole ones where a replay took rows away."""
    spans = spans_between(run.cut_from, run.cut_to)
    ledger = tables.read_ledger(spans)
    sums = partial_sums(tables.readings(slices_of(spans, ledger)))
    if not replays(ledger):
        return parts(sums)
    return corrected(sums, _touched(tables, ledger), all_readings(tables, run.cut_to))


def all_readings(tables: Tables, cut: str) -> DataFrame:
    """Every reading up to a cut."""
    spans = spans_between("{}", cut)
    return tables.readings(slices_of(spans, tables.read_ledger(spans)))


def _touched(tables: Tables, ledger: Sequence[LedgerRange]) -> DataFrame:
    """The windows of the rows that replays wrote and of those that they took away."""
    written = windows_of(tables.readings(replay_slices(ledger)))
    return written.union(windows_of(tables.retracted(replays(ledger)))).distinct()


def main(arguments: list[str] | None = None) -> int:
    """0 when the result is staged, or nothing was to be done; the engine sees any error as a failed job."""
    parser = argparse.ArgumentParser(prog="aggregate_home_activity", description=__doc__)
    parser.add_argument("--run-id", required=True)
    parser.add_argument("--attempt", required=True, type=int)
    parser.add_argument("--store", help="default: the setting STORE_CONNECTION")
    parser.add_argument("--lake", help="a folder, or an address; default: the result goes to SQL only")
    parser.add_argument("--snapshot", action="store_true", help="write everything to the lake, not this run alone")
    given = parser.parse_args(arguments)
    started = perf_counter()
    spark = open_session(f"agg-{given.run_id}-{given.attempt}")
    opened = perf_counter()
    tables = open_tables(spark, given.store or os.environ["STORE_CONNECTION"])
    result = aggregate(spark, tables, Order(given.run_id, given.attempt, given.lake, given.snapshot))
    figures = {
        "run_id": given.run_id,
        "attempt": given.attempt,
        "staging_id": None if result is None else result.staging_id,
        "session_seconds": round(opened - started, 3),
        "job_seconds": round(perf_counter() - opened, 3),
    }
    print(json.dumps(figures), flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

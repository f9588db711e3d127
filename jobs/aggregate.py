"""The job of a run of any aggregate: add up the rows between its cuts, and stage the result, which the app commits.

The job may be killed at any point and run any number of times, even at the same time: each execution stages under its
own id, and an unfinished result is ignored.
"""

import argparse
import json
import os
import sys
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from core.transforms.aggregates import find_aggregate
from jobs import lake
from jobs.facts import rows_read, slice_facts
from jobs.retraction import delta_of, windows_after
from jobs.session import close_session, open_session
from jobs.tables import OPEN, Result, Tables, open_tables
from jobs.transforms import sliced, snapshot


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of the job: its run, its attempt, and its lake; `is_snapshot` puts the whole aggregate there."""

    run_id: str
    attempt: int
    lake: str | None = None
    is_snapshot: bool = False


def aggregate(spark: SparkSession, tables: Tables, execution: Execution) -> Result | None:
    """Stage the result of a run; do nothing and return None when the run is closed or at a different attempt."""
    run = tables.read_run(execution.run_id)
    if run is None or run.status not in OPEN or run.attempt != execution.attempt:
        return None
    of = find_aggregate(run.job)
    staging_id = f"{run.run_id}-{run.attempt}-{uuid.uuid4().hex}"
    windows = sliced(of, windows_after(tables, of, delta_of(tables, of, run), run)).persist()
    facts, rows = slice_facts(of, windows, tables.row_hash), rows_read(of, windows)
    lake_path = None
    if execution.lake is not None:
        whole = windows.drop("slice")
        if execution.is_snapshot:
            left = windows.where(F.col("slice") >= run.committed_slices).drop("slice")
            whole = snapshot(of, tables.windows(of), left)
        lake_path = lake.write_run(whole, execution.lake, f"{of.name}/run={run.run_id}/{staging_id}")
    tables.stage(of, windows, staging_id, run.run_id)
    staged = Result(
        staging_id, run.run_id, run.attempt, tuple(facts), rows, lake_path, execution.is_snapshot, datetime.now(UTC)
    )
    tables.finish(staged)
    windows.unpersist()
    return staged


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when the result is staged or no work was left; the engine sees any error as a failed job."""
    parser = argparse.ArgumentParser(prog="aggregate", description=__doc__)
    parser.add_argument("--run-id", required=True)
    parser.add_argument("--attempt", required=True, type=int)
    parser.add_argument("--store", help="default: the setting STORE_CONNECTION")
    parser.add_argument("--lake", help="a folder or an address; default: the result goes to SQL only")
    parser.add_argument(
        "--snapshot", action="store_true", help="write the whole aggregate to the lake, not only this run"
    )
    given = parser.parse_args(arguments)
    started = perf_counter()
    spark = open_session(f"agg-{given.run_id}-{given.attempt}")
    opened = perf_counter()
    tables = open_tables(spark, given.store or os.environ["STORE_CONNECTION"])
    result = aggregate(spark, tables, Execution(given.run_id, given.attempt, given.lake, given.snapshot))
    figures = {
        "run_id": given.run_id,
        "attempt": given.attempt,
        "staging_id": None if result is None else result.staging_id,
        "session_seconds": round(opened - started, 3),
        "job_seconds": round(perf_counter() - opened, 3),
    }
    print(json.dumps(figures), flush=True)
    close_session(spark)
    return 0


if __name__ == "__main__":
    sys.exit(main())

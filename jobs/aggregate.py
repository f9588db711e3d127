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

from core.model.aggregates import Aggregate
from core.transforms.aggregates import find_aggregate
from jobs import lake
from jobs.facts import rows_read, slice_facts
from jobs.quality import quality_of
from jobs.retraction import Delta, delta_of, windows_after
from jobs.session import close_session, open_session
from jobs.tables import OPEN, Result, Run, Tables, open_tables
from jobs.transforms import rolled, sliced, snapshot, stored_at


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of the job: its run, its attempt, its lake, and the version of the code; `is_snapshot` puts the
    whole aggregate into the lake."""

    run_id: str
    attempt: int
    lake: str | None = None
    is_snapshot: bool = False
    code: str | None = None


def aggregate(spark: SparkSession, tables: Tables, execution: Execution) -> Result | None:
    """Stage the result of a run; do nothing and return None when the run is closed or at a different attempt."""
    run = tables.read_run(execution.run_id)
    if run is None or run.status not in OPEN or run.attempt != execution.attempt:
        return None
    of = find_aggregate(run.job)
    delta = delta_of(tables, of, run)
    delta.added.persist()
    staged = _staged(tables, execution, run, delta)
    delta.added.unpersist()
    return staged


def _staged(tables: Tables, execution: Execution, run: Run, delta: Delta) -> Result:
    """Stage the windows of all levels; all are computed before the first one is written."""
    of, staging_id = find_aggregate(run.job), f"{run.run_id}-{run.attempt}-{uuid.uuid4().hex}"
    results = [(level, windows_after(tables, level, _at_level(delta, level, of), run)) for level in of.levels]
    computed = [(level, sliced(level, windows).persist()) for level, windows in results]
    levels = [(level, stored_at(level, windows, run.planned_at)) for level, windows in computed]
    quality = quality_of(tables, of, delta.added, delta.commits, execution.code)
    facts = [fact for level, windows in levels for fact in slice_facts(level, windows, tables.row_hash)]
    rows = rows_read(of, computed[0][1])
    lake_path = None
    if execution.lake is not None:
        windows = levels[0][1]
        whole = windows.drop("slice")
        if execution.is_snapshot:
            left = windows.where(F.col("slice") >= run.committed_slices).drop("slice")
            whole = snapshot(of, tables.windows(of), left)
        lake_path = lake.write_run(whole, execution.lake, f"{of.name}/run={run.run_id}/{staging_id}")
    for level, windows in levels:
        tables.stage(level, windows, staging_id, run.run_id)
    place, names = (staging_id, run.run_id, run.attempt), tuple(level.name for level in of.levels)
    kind = (lake_path, execution.is_snapshot, datetime.now(UTC))
    staged = Result(*place, tuple(facts), rows, *kind, names, quality)
    tables.finish(staged)
    for _, windows in computed:
        windows.unpersist()
    return staged


def _at_level(delta: Delta, level: Aggregate, finest: Aggregate) -> Delta:
    """Return the delta of a level: it is added up from the finest windows, so rows are read once."""
    if level is finest:
        return delta
    return Delta(rolled(level, delta.added), None if delta.removed is None else rolled(level, delta.removed))


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
    parser.add_argument("--code", help="the version of the app's and the jobs' modules; it is stored with the run")
    given = parser.parse_args(arguments)
    started = perf_counter()
    spark = open_session(f"agg-{given.run_id}-{given.attempt}")
    opened = perf_counter()
    tables = open_tables(spark, given.store or os.environ["STORE_CONNECTION"])
    result = aggregate(spark, tables, Execution(given.run_id, given.attempt, given.lake, given.snapshot, given.code))
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

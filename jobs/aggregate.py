"""The job of a run of any aggregate: add up the rows between its cuts, and stage the result, which the app commits.

The job may be killed at any point and run any number of times, even at the same time: each execution stages under its
own id, and an unfinished result is ignored.
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
from pyspark.sql import functions as F

from core.model.aggregates import Aggregate
from core.transforms.aggregates import find_aggregate
from jobs import lake
from jobs.facts import rows_read, slice_facts
from jobs.quality import Commits, counted_columns, quality_of
from jobs.ranges import LedgerRange, replay_slices, replays, slices_of, spans_between
from jobs.session import close_session, open_session
from jobs.tables import OPEN, Result, Run, Tables, open_tables
from jobs.transforms import corrected, partial_sums, parts, sliced, snapshot, windows_of


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
    staging_id = f"{run.run_id}-{run.attempt}-{uuid.uuid4().hex}"
    commits, ledger = commits_of(tables, run)
    sums = partial_sums(of, tables.rows(of, commits.slices), counted_columns(of)).persist()
    windows = sliced(of, result_of(tables, of, run, ledger, sums)).persist()
    quality = quality_of(tables, of, sums, commits, execution.code)
    facts, rows = slice_facts(of, windows, tables.row_hash), rows_read(of, windows)
    lake_path = None
    if execution.lake is not None:
        whole = windows.drop("slice")
        if execution.is_snapshot:
            left = windows.where(F.col("slice") >= run.committed_slices).drop("slice")
            whole = snapshot(of, tables.windows(of), left)
        lake_path = lake.write_run(whole, execution.lake, f"{of.name}/run={run.run_id}/{staging_id}")
    tables.stage(of, windows, staging_id, run.run_id)
    now, is_snapshot = datetime.now(UTC), execution.is_snapshot
    staged = Result(staging_id, run.run_id, run.attempt, tuple(facts), rows, lake_path, is_snapshot, now, quality)
    tables.finish(staged)
    windows.unpersist()
    sums.unpersist()
    return staged


def commits_of(tables: Tables, run: Run) -> tuple[Commits, list[LedgerRange]]:
    """Return the commits of a run, and their ledger."""
    spans = spans_between(run.cut_from, run.cut_to)
    ledger = tables.read_ledger(spans)
    return Commits(spans, slices_of(spans, ledger), tables.read_written(spans)), ledger


def result_of(tables: Tables, of: Aggregate, run: Run, ledger: Sequence[LedgerRange], sums: DataFrame) -> DataFrame:
    """Return the windows of a run: parts to add, and whole windows where a replay removed rows. `sums` are the windows
    of the rows that its commits wrote."""
    if not replays(ledger):
        return parts(of, sums)
    return corrected(of, sums, _touched(tables, of, ledger), all_rows(tables, of, run.cut_to))


def all_rows(tables: Tables, of: Aggregate, cut: str) -> DataFrame:
    """Return all rows up to a cut."""
    spans = spans_between("{}", cut)
    return tables.rows(of, slices_of(spans, tables.read_ledger(spans)))


def _touched(tables: Tables, of: Aggregate, ledger: Sequence[LedgerRange]) -> DataFrame:
    """Return the windows of the rows that replays wrote or removed."""
    written = windows_of(of, tables.rows(of, replay_slices(ledger)))
    return written.union(windows_of(of, tables.retracted(of, replays(ledger)))).distinct()


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

"""The job of a run of any aggregate: add up the rows between its cuts, and stage the result, which the app commits.

The job may be killed at any point and run any number of times, even at the same time: each execution stages under its
own id, and an unfinished result is ignored.
"""

import json
import sys
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession

from core.aggregation.lake_tables import is_rows_job
from core.model.release import DEFAULT_TRANSFORM
from core.transforms.loading import find_aggregate, import_transform
from jobs.history import open_history, repaired
from jobs.lake import write_gold
from jobs.lake_files import OpenLake, open_lake
from jobs.lake_rows import finish_rows
from jobs.quality import quality_of
from jobs.retraction import delta_of, windows_after
from jobs.session import close_session, open_session, open_tables, parser_of
from jobs.tables import OPEN, Result, Run, Tables
from jobs.transforms import as_stored, at_level, rows_read, slice_facts, sliced, stored_at


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution of the job: its run, its attempt, its lake, the path of the state of its tables there, and the
    transform of the rows."""

    run_id: str
    attempt: int
    lake: str | None = None
    lake_state: str = ""
    transform: str = DEFAULT_TRANSFORM


def aggregate(spark: SparkSession, tables: Tables, execution: Execution) -> Result | None:
    """Stage the result of a run. Do nothing and return None when the run is closed or at a different attempt."""
    run = tables.read_run(execution.run_id)
    if run is None or run.status not in OPEN or run.attempt != execution.attempt:
        return None
    staging_id = f"{run.run_id}-{run.attempt}-{uuid.uuid4().hex}"
    place = execution.lake
    lake = None if place is None else open_lake(spark, place, execution.lake_state, staging_id)
    if is_rows_job(run.job):
        return finish_rows(tables, run, lake, execution.transform)
    of = find_aggregate(run.job)
    if run.kind != "increment":
        windows = repaired(tables, of, open_history(tables, run.rows_from, lake), run)
        return _staged(tables, lake, (run, staging_id), windows, None)
    delta = delta_of(tables, of, run)
    delta.added.persist()
    windows = windows_after(tables, of, delta, run)
    quality = quality_of(tables, of, delta.added, delta.commits, execution.transform)
    staged = _staged(tables, lake, (run, staging_id), windows, quality)
    delta.added.unpersist()
    return staged


def _staged(
    tables: Tables, lake: OpenLake | None, of_run: tuple[Run, str], windows: DataFrame, quality: str | None
) -> Result:
    """Stage the windows of all levels. All are computed before the first one is written."""
    run, staging_id = of_run
    of = find_aggregate(run.job)
    computed = [(level, sliced(level, at_level(windows, level)).persist()) for level in of.levels]
    levels = [(level, stored_at(level, found, run.planned_at)) for level, found in computed]
    facts = slice_facts(levels, tables.row_hash)
    fits = not any(one.overflow for one in facts)
    written = write_gold(tables, run, lake, levels) if lake is not None and fits else None
    for level, stored in levels if fits else ():
        tables.stage(level, as_stored(level, stored), staging_id, run.run_id)
    lake_path, is_whole = (None, False) if written is None else (written.path, written.is_whole)
    place, names = (staging_id, run.run_id, run.attempt), tuple(level.name for level in of.levels)
    kind = (lake_path, is_whole, datetime.now(UTC))
    staged = Result(*place, tuple(facts), rows_read(of, computed[0][1]), *kind, names, quality)
    tables.finish(staged)
    for _, found in computed:
        found.unpersist()
    return staged


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when the result is staged or no work was left. The engine sees any error as a failed job."""
    parser = parser_of("aggregate", __doc__)
    parser.add_argument("--run-id", required=True)
    parser.add_argument("--attempt", required=True, type=int)
    parser.add_argument("--lake", help="a folder or an address; default: the result goes to SQL only")
    parser.add_argument(
        "--lake-state", default="", help="the path of the state of the lake's tables, which the app wrote"
    )
    given = parser.parse_args(arguments)
    import_transform(given.transform)
    started = perf_counter()
    spark = open_session(f"agg-{given.run_id}-{given.attempt}")
    opened = perf_counter()
    tables = open_tables(spark, given.store)
    place = (given.lake, given.lake_state, given.transform)
    result = aggregate(spark, tables, Execution(given.run_id, given.attempt, *place))
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

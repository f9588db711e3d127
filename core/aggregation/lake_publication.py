"""The publication of runs in the lake's tables, and the state of the tables that a job gets.

A table names the last run in it by its application transaction. So a commit that is repeated is skipped, and one that
is raced is refused. A run of an aggregate is closed in SQL first. A later run writes whole what the lake lacks. A run
of rows has no result in SQL: it is marked, committed in the lake, and closed, so that it is never given up in between.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import msgspec

from core.aggregation.lake_tables import (
    EMPTY,
    MANIFEST,
    REMAKE,
    Lake,
    Mark,
    Remake,
    StandingTable,
    TableChange,
    TableState,
    fits,
    gold_table,
    is_rows_job,
    removed_of,
    rows_job,
    table_of,
)
from core.aggregation.runs import HELD, AggregationRun, Staged
from core.aggregation.store import Aggregations
from core.errors import LakeDamaged, LakeUnreachable, StagingRefused
from core.model.aggregates import SLICES
from core.model.shapes import reader_of
from core.transforms.loading import find_aggregate

TRIES = 5  # of a commit that others race


def tables_of(job: str) -> tuple[str, ...]:
    """Return the tables of a job, in the order of their commits."""
    if is_rows_job(job):
        return (removed_of(job), table_of(job))
    return tuple(gold_table(level.name) for level in find_aggregate(job).levels)


def hand_over(store: Aggregations, lake: Lake, run: AggregationRun) -> tuple[str, ...]:
    """Write the state of the tables for a job, with the rows that it reads. Return the arguments that name it."""
    jobs = (run.job, rows_job(run.job)) if run.rows_from == "lake" else (run.job,)
    return hand_over_tables(store, lake, jobs, f"{run.job_name}-{run.submits}")


def hand_over_tables(store: Aggregations, lake: Lake, jobs: Sequence[str], name: str) -> tuple[str, ...]:
    """Write the state of the tables of some jobs for a reader. Return the arguments that name it."""
    path = f"{tables_of(jobs[0])[0]}/{name}/state.json"
    states = {table: state for job in jobs for table, state in states_of(store, lake, job).items()}
    lake.write_text(path, msgspec.json.encode(states).decode())
    return ("--lake", lake.location, "--lake-state", path)


def states_of(store: Aggregations, lake: Lake, job: str) -> dict[str, TableState]:
    """Return the tables of a job, each at the cut of the last run in it. A damaged table of an aggregate is left out,
    so that its job writes the others."""
    found = {}
    for table in tables_of(job):
        try:
            standing = lake.read_table(table, job)
        except LakeDamaged:
            if is_rows_job(job):
                raise
        else:
            state = _state(standing, _last_run(store, standing, job))
            remake = find_remake(store, lake, table, job, standing)
            found[table] = state if remake is None else replace(state, cut=None, remake=remake)
    return found


def find_remake(store: Aggregations, lake: Lake, table: str, job: str, standing: StandingTable) -> Remake | None:
    """Return the order to make a table anew, if no run has done so."""
    text = lake.read_text(f"{table}/{REMAKE}")
    if text is None:
        return None
    order = reader_of(Remake).decode(text)
    is_done = standing.run > order.after or (is_rows_job(job) and store.read_committed_runs(job, order.after))
    return None if is_done else order


def publish(store: Aggregations, lake: Lake, job: str) -> Mapping[str, str | None]:
    """Commit the files of closed runs into their tables. Return the tables that a later tick or run has to write, each
    with its fault, if it has one. A damaged table keeps no other one back, and a lake that does not answer does."""
    stale: dict[str, str | None] = {}
    for table in tables_of(job):
        try:
            lake.check_log(table)
            if is_rows_job(job):  # its runs are closed after their commit
                is_published = not store.read_committed_runs(job, lake.read_table(table, job).run)
            else:
                is_published = _publish_table(store, lake, job, table)
            if not is_published:
                stale[table] = None
        except LakeDamaged as damage:
            stale[table] = str(damage)
        except LakeUnreachable as fault:
            return stale | dict.fromkeys(tables_of(job), str(fault))
    return stale


def commit_rows(
    store: Aggregations, lake: Lake | None, run: AggregationRun, staged: Staged, closed_at: datetime
) -> str:
    """Commit a run of rows: mark it, commit its tables, and close it. Returns the result in words.

    Raises StagingRefused when its files no longer fit its tables: the next attempt writes them again.
    """
    if lake is None:
        raise StagingRefused(f"staging {staged.staging_id} is refused: LAKE is no longer set")
    if not run.committed_slices and not store.mark_lake(run):
        return HELD
    tables = tables_of(run.job)
    changes = _table_changes(lake, f"{tables[0]}/{staged.staging_id}") or {}
    for table in tables:
        if not _committed(store, lake, table, run, changes.get(table)):
            raise staged.refusal(f"its files no longer fit {table}")
    marked = replace(run, committed_slices=SLICES)
    return "committed" if store.close_run(marked, staged, closed_at) else HELD


def _publish_table(store: Aggregations, lake: Lake, job: str, table: str) -> bool:
    last = _last_run(store, lake.read_table(table, job), job)  # before the runs, because a published run is closed
    committed = store.read_committed_runs(job, last.number if last else 0)
    whole = max((at for at, run in enumerate(committed) if run.is_snapshot), default=0)
    for run in committed[whole:]:  # a run that writes a whole table needs none of those before it
        place, here = run.lake_path or "", f"{lake.location}/"
        changes = _table_changes(lake, place.removeprefix(here)) if place.startswith(here) else None
        if changes is None or not _committed(store, lake, table, run, changes.get(table)):
            return False
    return True


def _committed(store: Aggregations, lake: Lake, table: str, run: AggregationRun, change: TableChange | None) -> bool:
    """Return True when the table has the run, or a later one."""
    mark = Mark(run.job, run.number, {"run_id": run.run_id, "cut": run.cut_to})
    for _ in range(TRIES):
        standing = lake.read_table(table, run.job)
        last = _last_run(store, standing, run.job)
        if last is not None and last.number >= run.number:
            return True
        if change is None or lake.lacks(table, change.added):
            return False
        if not (change.is_whole or (_state(standing, last).cut == run.cut_from and fits(standing, change))):
            return False
        if lake.commit(table, standing, change, mark):
            return True
    return False


def _last_run(store: Aggregations, standing: StandingTable, job: str) -> AggregationRun | None:
    """Return the last run in a table, or None: the store does not know the run, for example after a restore."""
    found = store.read_runs(job, standing.run + 1, 1)
    return found[0] if found and found[0].number == standing.run else None


def _state(standing: StandingTable, last: AggregationRun | None) -> TableState:
    """Return the state of a table, which is at the cut of the last run in it."""
    if standing.version < 0:
        return EMPTY
    return TableState(None if last is None else last.cut_to, standing.columns, standing.files)


def _table_changes(lake: Lake, folder: str) -> dict[str, TableChange] | None:
    """Return the changes of an execution, or None when its manifest is not in the lake, or not as a job wrote it."""
    text = lake.read_text(f"{folder}/{MANIFEST}")
    try:
        return None if text is None else reader_of(dict[str, TableChange]).decode(text)
    except msgspec.DecodeError:
        return None

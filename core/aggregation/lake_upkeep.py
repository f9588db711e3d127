"""Erase subjects in the lake, make a damaged table anew, and keep tables small: few files, and a short log.

Nothing is remembered between two calls: each looks at the runs and does what is still missing.

A job may have been told which files a table has. So the tables of a job with an open run are left to the next time. A
run that is planned in the meantime wins, because each commit is for exactly one version of its table.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from uuid import UUID

import msgspec

from core.aggregation.lake_publication import tables_of
from core.aggregation.lake_tables import MEND, OF_FILES, OF_REMAKE, REMAKE, Lake, Remake, is_rows_job, lake_rows
from core.aggregation.orders import Pipelines
from core.aggregation.runs import AggregationRun, Days, Order, Standing, fitting
from core.aggregation.store import APP, Aggregations
from core.aggregation.tick import Aggregation
from core.errors import AggregationConflict, ErasureWaits, LakeDamaged
from core.model.aggregates import Aggregate
from core.model.events import PartitionId
from core.model.rows import row_table
from core.store.columns import fields_of, instant_text, types_of, whole_number
from core.transforms.loading import find_aggregate

RUNS = 1_000  # of a job that are looked at for a repair


@dataclass(frozen=True, slots=True)
class ErasedRows:
    """Subjects that a task has erased in SQL.

    `until` has the last erased number of each partition of each stream. `days` has the first and the last day of the
    erased rows for each aggregate, and of those that replays had taken away. A job that began after `since` has read
    none of them. `by` and `at` tell who asked, and when."""

    task_id: UUID
    by: str
    at: datetime
    subjects: Sequence[str]
    until: Mapping[tuple[int, PartitionId], int]
    days: Mapping[str, tuple[date, date]]
    since: datetime


def erase_rows(erased: ErasedRows, own: Aggregation, pipelines: Pipelines) -> tuple[str, ...]:
    """Delete the rows of subjects from the lake, and return what was done, in words.

    The windows of their days are computed again, and those of every day on which an aggregate has windows of theirs.
    Raises ErasureWaits while a run is open or missing that has to end first, and LakeUnreachable."""
    standings = _read_standings(erased, own.jobs, own.store)
    remade = sorted(one for each in standings for one in each.stale if one.endswith(OF_REMAKE))
    if remade:  # from files that may have the rows
        raise ErasureWaits(f"tables of the lake are made anew: {', '.join(remade)}")
    notes = _delete_rows(erased, own.lake, own.jobs)
    wanted = {job: days for job in own.jobs if (days := _days_of(job, erased, own.store)) is not None}
    missing = [job for job, days in wanted.items() if not _is_repaired(job, days, erased, own)]
    for job in missing:
        standing, why = own.store.read_standing(job), f"erasure {erased.task_id}"
        if standing.order is None and standing.open_run is None:  # else the next call looks again
            order = Order(job, "repair", erased.by, why, erased.at, days=Days(*wanted[job]))
            with suppress(AggregationConflict):  # another order was first, or the state has moved on
                pipelines.place(order, standing)
    if missing:
        named = ", ".join(f"{job}{_held(own.store.read_standing(job))}" for job in missing)
        raise ErasureWaits(f"the windows of its days are computed again: {named}")
    repaired = [
        f"{job}: the windows of {run.days} were computed again"
        for job in own.jobs
        for run in _repairs(job, erased, own)
    ]
    return (*notes, *repaired)


def erase_windows(
    erased: ErasedRows, aggregates: Sequence[Aggregate], store: Aggregations, lake: Lake | None
) -> tuple[str, ...]:
    """Delete the windows of subjects where no engine can compute windows again, and their rows from the lake. Return
    what was done, and a note for each aggregate with windows that stay. Raises as `erase_rows` does."""
    jobs = (*(of.name for of in aggregates), *(rows.job for rows in lake_rows(aggregates)))
    _read_standings(erased, jobs, store, ": set SPARK_ENGINE, or discard the run")
    notes = _delete_rows(erased, lake, jobs)
    for of in aggregates:
        days, has_windows = _days_of(of.name, erased, store), fitting(store.read_standing(of.name).cut) == "repair"
        count = store.remove_subjects(of, erased.subjects)
        notes += [f"{of.name}: {count} windows were deleted"] if count else []
        if days is not None and has_windows:
            kept = "files in a lake" if of.subject else "windows"
            until = "a repair of these days, which needs SPARK_ENGINE"
            notes.append(f"{of.name}: {kept} of {Days(*days)} may count the subjects until {until}")
    return tuple(notes)


def _days_of(job: str, erased: ErasedRows, store: Aggregations) -> tuple[date, date] | None:
    """Return the first and the last day of an aggregate that may count the subjects. None: no window does."""
    if is_rows_job(job):
        return None
    found = [each for each in (erased.days.get(job), store.find_days(find_aggregate(job), erased.subjects)) if each]
    return (min(one for one, _ in found), max(one for _, one in found)) if found else None


def _read_standings(erased: ErasedRows, jobs: Sequence[str], store: Aggregations, way: str = "") -> list[Standing]:
    """Return the standings of jobs. Raises ErasureWaits for an open run whose job may have read rows of subjects."""
    found = {job: store.read_standing(job) for job in jobs}
    for job, standing in found.items():
        run = standing.open_run
        if run is not None and run.planned_at <= erased.since:
            raise ErasureWaits(f"run {run.run_id} of {job} began before it{_held(standing)}{way}")
    return list(found.values())


def _held(standing: Standing) -> str:
    """Return why a job does not go on, if a person has paused it."""
    return "" if standing.pause is None else f" (paused by {standing.pause.who}: resume it)"


def _delete_rows(erased: ErasedRows, lake: Lake | None, jobs: Sequence[str]) -> list[str]:
    """Delete the rows of subjects from the tables of the lake, also from those that no job keeps any more, and return
    what was deleted, in words."""
    notes: list[str] = []
    if lake is None:
        return notes
    for rows in lake_rows(find_aggregate(job) for job in jobs if not is_rows_job(job)):
        if row_table(rows.source).subject:
            tables, condition = (rows.table, rows.removed), condition_of(rows.source, erased)
            counts = {table: lake.delete(table, condition) for table in tables}
            found = (f"lake: {count} rows were deleted from {table}" for table, count in counts.items() if count)
            notes.append("; ".join(found))
    return [note for note in notes if note]


def condition_of(row_class: type, erased: ErasedRows) -> str:
    """Return the condition, in the SQL of delta-rs, of the rows of subjects up to the last number of each partition."""
    name = row_table(row_class).subject
    is_text = str in types_of(dict(fields_of(row_class))[name])
    numbers = (whole_number(one) for one in erased.subjects)
    known = map(_quoted, erased.subjects) if is_text else (str(one) for one in numbers if one is not None)
    values = ", ".join(known)
    places = " OR ".join(
        f"(stream_id = {stream_id} AND partition_id = {_quoted(id)} AND sequence_number <= {last})"
        for (stream_id, id), last in sorted(erased.until.items())
    )
    return f'"{name}" IN ({values or "NULL"}) AND ({places or "1 = 0"})'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _is_repaired(job: str, days: tuple[date, date], erased: ErasedRows, own: Aggregation) -> bool:
    """Return True when a repair of these days, planned after the erasure, is committed, or nothing is to repair."""
    if fitting(own.store.read_standing(job).cut) != "repair":
        return True  # the aggregate has no windows yet
    since, until = days
    return any(
        (run.days.since is None or run.days.since <= since) and (run.days.until is None or run.days.until >= until)
        for run in _repairs(job, erased, own)
    )


def _repairs(job: str, erased: ErasedRows, own: Aggregation) -> list[AggregationRun]:
    """Return the committed repairs of a job that were planned after the erasure."""
    runs = own.store.read_runs(job, own.store.read_standing(job).number + 1, RUNS)
    return [one for one in runs if (one.kind, one.status) == ("repair", "committed") and one.planned_at > erased.since]


def maintain_job(own: Aggregation, job: str) -> str:
    """Maintain the tables of a job, and return the result in words. Raises InfrastructureFault.

    LakeDamaged for a table with files that are gone or changed, which is stale until a later call finds them all."""
    if own.lake is None:
        return "there is no lake"
    standing = own.store.read_standing(job)
    if standing.open_run is not None:
        return "a run is open"
    did, stale = [], {table: at for table, at in standing.stale.items() if not table.endswith(OF_FILES)}
    since = dict(stale)
    for table in tables_of(job):
        found = own.lake.read_table(table, job)  # refuses a table that is not ours
        if own.lake.lacks(table, found.files):
            name = f"{table}{OF_FILES}"
            since[name] = standing.stale.get(name, instant_text(own.now()))
            did.append(f"{table}: files are gone or changed{MEND}")
            continue
        facts = own.lake.maintain(table)
        did.append(f"{table}: " + (", ".join(f"{number} {name}" for name, number in facts.items()) or "is not there"))
    if since != standing.stale:
        own.store.note_stale(job, since)
    if since != stale:
        raise LakeDamaged("; ".join(did))
    return "; ".join(did)


def remake_table(
    own: Aggregation, pipelines: Pipelines, table: str, accepts_loss: bool, by: tuple[str, datetime]
) -> str:
    """Order a damaged table anew, and return what follows in words. `by` tells who orders it, and when.

    The order lies in the table's folder, and the next run of its job gets it with the state of the table. It names the
    files that the log has, where the log is readable: the job takes from them the rows that SQL no longer holds. Their
    values are left out, because nothing removes an order. A damaged log is removed. With `accepts_loss`, rows of which
    neither SQL nor a readable file is left are left out.
    AggregationConflict for a table that no job writes, and LakeUnreachable.
    """
    jobs = {one: job for job in own.jobs for one in tables_of(job)}
    if own.lake is None or table not in jobs:
        known = f"the table is one of {', '.join(jobs)}" if own.lake and jobs else "there is no lake"
        raise AggregationConflict(f"{table} is no table of the lake: {known}")
    (who, at), job = by, jobs[table]
    standing = own.store.read_standing(job)
    try:
        own.lake.check_log(table)
        found = own.lake.read_table(table, job)
        files = tuple(replace(one, least={}, most={}) for one in found.files) if found.version >= 0 else None
    except LakeDamaged:
        own.lake.remove_log(table)
        files = None
    order = Remake(standing.number, files, accepts_loss)
    own.lake.write_text(f"{table}/{REMAKE}/{REMAKE}.txt", msgspec.json.encode(order).decode())
    stale = {name: since for name, since in standing.stale.items() if name != f"{table}{OF_FILES}"}
    own.store.note_stale(job, stale | {f"{table}{OF_REMAKE}": instant_text(at)})
    if standing.pause is not None and standing.pause.who == APP and is_rows_job(job):
        pipelines.resume(Order(job, "resume", who, f"{table} is made anew", at))
    return f"{table}: the next run of {job} makes it anew"

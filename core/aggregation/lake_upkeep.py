"""Keep the tables of the lake small, with few files and a short log, and make a damaged table anew.

A job may have been told which files a table has. So the tables of a job with an open run are left to the next time. A
run that is planned in the meantime wins, because each commit is for exactly one version of its table.
"""

from dataclasses import replace
from datetime import datetime

import msgspec

from core.aggregation.lake_publication import tables_of
from core.aggregation.lake_tables import MEND, OF_FILES, OF_REMAKE, REMAKE, Remake, is_rows_job
from core.aggregation.orders import Pipelines
from core.aggregation.runs import Order
from core.aggregation.store import APP
from core.aggregation.tick import Aggregation
from core.errors import AggregationConflict, LakeDamaged
from core.store.columns import instant_text


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
        own.lake.check_log(table)  # a checkpoint would hide its damage for good
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
    files that the log has, where the log is readable: the job takes from them the rows that SQL no longer holds. The
    least and greatest values of these files are left out, because an order is never deleted. A damaged log is removed.
    With `accepts_loss`, rows that neither SQL nor a readable file has are lost.
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

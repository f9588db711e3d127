"""Make a damaged table of the lake anew: a person orders it, and the next run of its job writes the table whole.

The order lies in the table's folder, and the job of the run gets it with the state of the table. It names the files
that the log has, where the log is readable: the job takes from them the rows that SQL no longer holds.
"""

from datetime import datetime

import msgspec

from core.aggregation.lake_publication import tables_of
from core.aggregation.lake_tables import OF_FILES, OF_REMAKE, REMAKE, Remake, is_rows_job
from core.aggregation.orders import Pipelines
from core.aggregation.runs import Order
from core.aggregation.store import APP
from core.aggregation.tick import Aggregation
from core.errors import AggregationConflict, LakeDamaged
from core.store.columns import instant_text


def remake_table(
    own: Aggregation, pipelines: Pipelines, table: str, accepts_loss: bool, by: tuple[str, datetime]
) -> str:
    """Order a table anew, and return what follows in words. `by` tells who orders it, and when.

    A damaged log is removed. With `accepts_loss`, rows of which neither SQL nor a readable file is left are left out.
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
        files = found.files if found.version >= 0 else None
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

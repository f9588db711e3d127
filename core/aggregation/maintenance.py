"""The maintenance of the lake's tables: fewer files, no unused ones, and a log that stays short.

A job may have been told which files a table has. So the tables of a job with an open run are left to the next time; a
run that is planned in the meantime wins, because each commit is for exactly one version of its table.
"""

from core.aggregation.publish import tables_of
from core.aggregation.tick import Aggregation


def maintain_job(own: Aggregation, job: str) -> str:
    """Maintain the tables of a job; return the result in words. Raises InfrastructureFault."""
    if own.lake is None:
        return "there is no lake"
    if own.store.read_standing(job).open_run is not None:
        return "a run is open"
    did = []
    for table in tables_of(job):
        own.lake.read_table(table, job)  # refuses a table that is not ours
        facts = own.lake.maintain(table)
        did.append(f"{table}: " + (", ".join(f"{number} {name}" for name, number in facts.items()) or "is not there"))
    return "; ".join(did)

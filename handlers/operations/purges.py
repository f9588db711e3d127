"""A purge as a task: make it of a request, and show it."""

from collections.abc import Mapping

from core.api.problems import invalid
from core.model.policies import DEFAULT_DAYS
from core.purge.purge import BY_PARTITION, BY_STREAM, Found, purge_of, purge_request
from core.purge.task import DEADLINE, PurgeKind
from core.tasks.task import Task, TaskOrder, TaskRequest, of_every_kind
from handlers.app import App
from handlers.operations.audit_findings import verified
from handlers.operations.purge_shapes import PurgeAnswer, PurgedTableAnswer, PurgeShape


def request(own: App, order: TaskOrder, body: PurgeShape) -> TaskRequest:
    """Return the task of a purge; raise a problem for a table that no purge knows."""
    asked = body.older_than_days or {}
    unknown = sorted(set(asked) - set(DEFAULT_DAYS))
    if unknown:
        raise invalid("older_than_days", f"there is no table {unknown[0]}: name some of {', '.join(DEFAULT_DAYS)}")
    return purge_task(own, order, asked, is_dry_run=body.dry_run)


def kind(own: App) -> PurgeKind:
    """Return the purges of the stream."""
    jobs = own.jobs if own.settings.spark.engine != "none" else ()
    return PurgeKind(own.purges, verified(own), jobs, own.clock)


def shown(task: Task) -> PurgeAnswer:
    """Show a purge."""
    purge = purge_of(task)
    found, done = purge.found, sum(one.closed_at is not None for one in task.parts)
    return PurgeAnswer(
        **of_every_kind(task, done, task.total, task.requested_at + DEADLINE),
        older_than_days=dict(purge.days),
        rows=sum(one.rows for one in found.values()),
        tables=[_table(name, found[name]) for name in (*BY_PARTITION, *BY_STREAM) if name in found],
    )


def purge_task(own: App, order: TaskOrder, days: Mapping[str, int], *, is_dry_run: bool = False) -> TaskRequest:
    """Return the task of a purge with these days of some tables, and those of the settings."""
    of_tables = {**own.settings.purging.days, **days}
    return purge_request(order, of_tables, own.purges.read_purge_partitions(), is_dry_run=is_dry_run)


def _table(name: str, found: Found) -> PurgedTableAnswer:
    return PurgedTableAnswer(
        table=name,
        rows=found.rows,
        bytes=found.bytes,
        oldest=found.oldest,
        newest=found.newest,
        notes=[*found.notes],
    )

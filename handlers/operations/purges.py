"""Request a purge, and show it."""

from collections.abc import Mapping

from core.api.operation import Answer, Call, Nothing, operation
from core.api.problems import NOT_FOUND, TASK_OVERLAP, invalid, not_found
from core.ledger.retention.purge import BY_PARTITION, BY_STREAM, Found, purge_of, purge_request
from core.ledger.retention.work import DEADLINE, PurgeKind
from core.model.retention import DEFAULT_DAYS
from core.tasks.run import open_task
from core.tasks.task import Task, TaskOrder
from handlers.app import CLOCK, App, app
from handlers.operations.audit_findings import verified
from handlers.operations.purge_shapes import PurgeAnswer, PurgedTableAnswer, PurgeShape
from handlers.operations.task_shapes import begun, of_every_kind, opening


@operation("Request a purge of old rows; a dry run by default", "tasks", {202: PurgeAnswer}, (NOT_FOUND, TASK_OVERLAP))
def request_purge(call: Call[Nothing, Nothing, PurgeShape]) -> Answer:
    """Open a task; its orchestration works on it. One purge of the stream is open at a time."""
    own, asked = app(), call.body.older_than_days or {}
    unknown = sorted(set(asked) - set(DEFAULT_DAYS))
    if unknown:
        raise invalid("older_than_days", f"there is no table {unknown[0]}: name some of {', '.join(DEFAULT_DAYS)}")
    stream_id = own.find_stream()
    if stream_id is None:
        raise not_found("purges", "there is no commit yet, so nothing can be purged")
    order = TaskOrder(CLOCK.new_id(), stream_id, call.who, call.body.reason, call.at)
    with opening():
        return begun(shown(open_purge(own, order, asked, is_dry_run=call.body.dry_run)))


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


def open_purge(own: App, order: TaskOrder, days: Mapping[str, int], *, is_dry_run: bool = False) -> Task:
    """Open a purge with these days of some tables, and those of the settings. Raises TaskOverlap while one is open."""
    of_tables = {**own.settings.purging.days, **days}
    request = purge_request(order, of_tables, own.purges.read_purge_partitions(), is_dry_run=is_dry_run)
    return open_task(request, own.tasks)


def _table(name: str, found: Found) -> PurgedTableAnswer:
    return PurgedTableAnswer(
        table=name,
        rows=found.rows,
        bytes=found.bytes,
        oldest=found.oldest,
        newest=found.newest,
        notes=[*found.notes],
    )

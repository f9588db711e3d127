"""A purge as a task: its request and answer, the task that it makes, and how it is shown."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

import msgspec

from core.api.problems import invalid
from core.model.policies import DEFAULT_DAYS, MOST_DAYS
from core.model.shapes import Answered, Reason, written
from core.purge.purge import BY_PARTITION, BY_STREAM, purge_of, purge_request
from core.purge.store import Purges
from core.purge.task import DEADLINE, PurgeKind
from core.tasks.task import Task, TaskAnswer, TaskOrder, TaskRequest, of_every_kind
from handlers.app import App
from handlers.operations.audits import verified
from handlers.operations.task_shapes import TaskShape

Days = Annotated[int, msgspec.Meta(ge=0, le=MOST_DAYS)]
_NAMED = msgspec.Meta(extra_json_schema={"propertyNames": {"enum": list(DEFAULT_DAYS)}})


class PurgeShape(TaskShape, tag="purge"):
    """A request for a purge. A table that `older_than_days` leaves out has the days of the settings. Only a request
    with `dry_run` = false deletes anything."""

    reason: Reason
    older_than_days: Annotated[dict[str, Days], _NAMED] | None = None
    dry_run: bool = True


class PurgedTableAnswer(Answered):
    """The rows of a table that a purge deleted, or that a dry run counted, and an estimate of their bytes. Letters
    count with their attempts. `notes` say what keeps old rows."""

    table: str
    rows: int
    bytes: int
    oldest: datetime | None
    newest: datetime | None
    notes: list[str]


class PurgeAnswer(TaskAnswer, tag_field="kind", tag="purge"):
    """A purge so far: `done` of `total` parts, one for each table, or for each table of a partition."""

    older_than_days: dict[str, int]
    rows: int
    tables: list[PurgedTableAnswer]


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
    return PurgeKind(Purges(own.stream), verified(own), jobs, own.clock)


def shown(task: Task) -> PurgeAnswer:
    """Show a purge."""
    purge = purge_of(task)
    found, done = purge.found, sum(one.closed_at is not None for one in task.parts)
    return PurgeAnswer(
        **of_every_kind(task, done, task.total, task.requested_at + DEADLINE),
        older_than_days=dict(purge.days),
        rows=sum(one.rows for one in found.values()),
        tables=[
            written(PurgedTableAnswer, found[name], table=name, notes=[*found[name].notes])
            for name in (*BY_PARTITION, *BY_STREAM)
            if name in found
        ],
    )


def purge_task(own: App, order: TaskOrder, days: Mapping[str, int], *, is_dry_run: bool = False) -> TaskRequest:
    """Return the task of a purge with these days of some tables, and those of the settings."""
    of_tables = {**own.settings.purging.days, **days}
    return purge_request(order, of_tables, Purges(own.stream).read_purge_partitions(), is_dry_run=is_dry_run)

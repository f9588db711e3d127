"""The difference that the dry run of a replay shows."""

import json
from typing import Any, Literal

from core.api.operation import Call, Number, key_of, operation, page_of
from core.api.problems import NOT_FOUND
from core.model.events import PartitionId, SequenceNumber
from core.model.shapes import PAGE, Answered, Cursor, Limit, Nothing, PartitionText, Shape, converted
from core.replay.pieces import replay_of
from handlers.app import app
from handlers.operations.tasks import TaskPath, found_task, replay_store


class DiffQuery(Shape):
    """A page of events that would change, by partition and number."""

    limit: Limit = PAGE
    cursor: Cursor | None = None


class RowAnswer(Answered):
    """A row of a table."""

    table: str
    row: dict[str, Any]


class ChangedRowAnswer(Answered):
    """A row that changes, with each changed column before and after."""

    table: str
    row: dict[str, Any]
    columns: dict[str, list[Any]]


class EventDiffAnswer(Answered):
    """The rows of an event that a replay would change."""

    partition_id: str
    sequence_number: str
    outcome: Literal["written", "filtered", "dead_lettered", "held"]
    error: str | None
    added: list[RowAnswer]
    removed: list[RowAnswer]
    changed: list[ChangedRowAnswer]


class DiffAnswer(Answered, omit_defaults=True):
    """A page of events that would change. Each partition shows its first thousand. The job counts all. Only the diff of
    a replay by key has `keys`: the partition keys that were requested."""

    events: list[EventDiffAnswer]
    next: str | None
    keys: list[str] | None = None


@operation("The changes that a dry run shows, event by event", "tasks", problems=(NOT_FOUND,))
def show_replay_diff(call: Call[TaskPath, DiffQuery, Nothing]) -> DiffAnswer:
    """Show a page of the diff of a dry run so far."""
    job, query = replay_of(found_task(app(), call.path.task_id, "replay")), call.query
    job_id = job.task.task_id
    after = None
    if query.cursor is not None:
        partition_id, number = key_of(str(job_id), query.cursor, tuple[PartitionText, Number])
        after = (PartitionId(partition_id), SequenceNumber(number))
    found = replay_store(app()).read_replay_diffs(job_id, after, query.limit + 1)
    page, following = page_of(found, query.limit, str(job_id), lambda one: (one.partition_id, one.sequence_number))
    events = [
        {
            "partition_id": one.partition_id,
            "sequence_number": str(one.sequence_number),
            "error": None,
            **json.loads(one.diff),
        }
        for one in page
    ]
    changes = converted(events, list[EventDiffAnswer])
    return DiffAnswer(events=changes, next=following, keys=list(job.asked.keys) or None)

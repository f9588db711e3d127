"""A purge as a job: its request, its tasks, and the figures of each table. One is open at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from core.model.events import PartitionId

PurgeStatus = Literal["open", "done", "cancelled", "failed"]
PurgedTable = Literal[
    "event_hub_checkpoint",  # nothing goes from it: an audit moves its verified commit before the ledger is purged
    "batch_ledger",
    "event_hub_dead_letter",
    "retracted_row",
    "staged_event",
    "replay_diff",
    "redrive_piece",
    "audit_job",
    "purge_job",
    "aggregation_failure",
]

BY_PARTITION: tuple[PurgedTable, ...] = (
    "event_hub_checkpoint", "batch_ledger", "retracted_row", "event_hub_dead_letter",
)  # fmt: skip
BY_STREAM: tuple[PurgedTable, ...] = (
    "staged_event", "replay_diff", "redrive_piece", "audit_job", "purge_job", "aggregation_failure",
)  # fmt: skip
MOST_NOTES = 100


@dataclass(frozen=True, slots=True)
class PurgeRequest:
    """The request of a purge, with the days of each table; a dry run only counts."""

    purge_id: UUID
    requested_by: str
    reason: str
    requested_at: datetime
    days: Mapping[str, int]
    is_dry_run: bool = True

    def before(self, table: str) -> datetime:
        """Return the time before which the rows of a table are old."""
        governing = "batch_ledger" if table == "retracted_row" else table
        return self.requested_at - timedelta(days=self.days[governing])


@dataclass(frozen=True, slots=True)
class Task:
    """One table, of one partition, or of the stream."""

    table: PurgedTable
    partition_id: PartitionId | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The figures of a table: the rows that were purged, or that a dry run counted, with an estimate of their bytes.
    `notes` say what keeps old rows."""

    rows: int = 0
    bytes: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    notes: tuple[str, ...] = ()

    def plus(self, other: "Found") -> "Found":
        """Return these figures and others of the same table."""
        ends = [at for at in (self.oldest, self.newest, other.oldest, other.newest) if at is not None]
        notes = dict.fromkeys((*self.notes, *other.notes))
        return Found(
            self.rows + other.rows,
            self.bytes + other.bytes,
            min(ends, default=None),
            max(ends, default=None),
            tuple(notes)[:MOST_NOTES],
        )


NOTHING_FOUND = Found()


@dataclass(frozen=True, slots=True)
class PurgeJob:
    """A job so far. `tasks` are those that are left, and None until it has begun. `fault` is the last fault of an open
    job, or why the job ended. `step` counts its changes."""

    request: PurgeRequest
    status: PurgeStatus = "open"
    step: int = 0
    tasks: tuple[Task, ...] | None = None
    found: Mapping[str, Found] = field(default_factory=dict)
    fault: str | None = None
    updated_at: datetime | None = None
    ended_at: datetime | None = None

    def after(self, found: Found, left: tuple[Task, ...]) -> "PurgeJob":
        """Return the job after a piece of its first task, with the tasks that are left."""
        table = (self.tasks or ())[0].table
        figures = {**self.found, table: self.found.get(table, NOTHING_FOUND).plus(found)}
        return replace(self, tasks=left, found=figures, fault=None)


def tasks_of(partitions: tuple[PartitionId, ...]) -> tuple[Task, ...]:
    """Return all tasks in order: an audit comes first, and a letter goes after the ledger rows of its number."""
    of_partitions = (Task(table, id) for id in partitions for table in BY_PARTITION)
    return (*of_partitions, *(Task(table) for table in BY_STREAM))

"""Decide what a purge deletes: the tables, the rows that one transaction deletes, and the figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from typing import Literal, cast

from core.ledger.totals import Purged
from core.model.events import PartitionId, SequenceNumber
from core.tasks.task import PartRequest, Task, TaskOrder, TaskRequest, report_of, report_text

PurgedTable = Literal[
    "event_hub_checkpoint",  # nothing goes from it: its part is the audit before the ledger is purged
    "batch_ledger",
    "event_hub_dead_letter",
    "retracted_row",
    "staged_event",
    "replay_diff",
    "task_part",
    "task",
    "aggregation_failure",
]

BY_PARTITION: tuple[PurgedTable, ...] = (
    "event_hub_checkpoint", "batch_ledger", "retracted_row", "event_hub_dead_letter",
)  # fmt: skip
BY_STREAM: tuple[PurgedTable, ...] = (
    "staged_event", "replay_diff", "task_part", "task", "aggregation_failure",
)  # fmt: skip
MOST_NOTES = 100

GOVERNED = {"retracted_row": "batch_ledger", "task_part": "task"}  # rows that go with those of another table


@dataclass(frozen=True, slots=True)
class PurgeTarget:
    """The rows that one part of a purge covers: those of a table, in one partition or in the whole stream."""

    table: PurgedTable
    partition_id: PartitionId | None = None

    @property
    def name(self) -> str:
        """The name of the part."""
        return self.table if self.partition_id is None else f"{self.table}/{self.partition_id}"


def target_of(name: str) -> PurgeTarget:
    """Return the target that the name of a part stands for."""
    table, _, id = name.partition("/")
    return PurgeTarget(cast(PurgedTable, table), PartitionId(id) if id else None)


@dataclass(frozen=True, slots=True)
class Found:
    """The figures of a table: the rows that were purged, or that a dry run counted, with an estimate of their bytes.
    `notes` say what keeps old rows. `is_left` means that nothing more of the partition is purged. An audit read its
    ledger up to commit `audited_to`."""

    rows: int = 0
    bytes: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    notes: tuple[str, ...] = ()
    is_left: bool = False
    audited_to: int = 0

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
            self.is_left or other.is_left,
            max(self.audited_to, other.audited_to),
        )


NOTHING_FOUND = Found()


@dataclass(frozen=True, slots=True)
class Purge:
    """A purge as it is now: its task, and the days that each table keeps. A dry run only counts."""

    task: Task
    days: Mapping[str, int]

    def before(self, table: str) -> datetime:
        """Return the time before which the rows of a table are old."""
        return self.task.requested_at - timedelta(days=self.days[GOVERNED.get(table, table)])

    def found_in(self, id: PartitionId) -> Found:
        """Return the figures of all tables of a partition together."""
        of_it = [one.report for one in self.task.parts if target_of(one.name).partition_id == id]
        return reduce(Found.plus, [report_of(one, Found) for one in of_it])

    @property
    def found(self) -> Mapping[str, Found]:
        """The figures of each table that has been looked at."""
        figures: dict[str, Found] = {}
        for part in self.task.parts:
            if part.step:
                table = target_of(part.name).table
                figures[table] = figures.get(table, NOTHING_FOUND).plus(report_of(part.report, Found))
        return figures


def purge_of(task: Task) -> Purge:
    """Return the purge of a task."""
    return Purge(task, report_of(task.asked, dict[str, int]))


def purge_request(
    order: TaskOrder, days: Mapping[str, int], partitions: tuple[PartitionId, ...], *, is_dry_run: bool = True
) -> TaskRequest:
    """Return the task of a purge of these partitions.

    An audit of each partition comes first, and a letter goes after the ledger rows of its number.
    """
    targets = [PurgeTarget(table, id) for id in partitions for table in BY_PARTITION]
    targets += [PurgeTarget(table) for table in BY_STREAM]
    parts = tuple(PartRequest(one.name, report=report_text(NOTHING_FOUND)) for one in targets)
    return TaskRequest(order, "purge", "", report_text(days), parts, is_dry_run=is_dry_run)


@dataclass(frozen=True, slots=True)
class SettledLetter:
    """A settled letter without its event: the time of its end, the replay that made it, and what goes with it."""

    sequence_number: SequenceNumber
    settled_at: datetime
    replay_commit_number: int | None
    attempts: int
    body_bytes: int


@dataclass(frozen=True, slots=True)
class PurgeReach:
    """The limits of a purge of one partition's ledger.

    It is `purged` so far, and `newest_batch` is the commit of its newest batch. The oldest open replay begins at commit
    `replay_from`, and was requested at `replay_at`.
    """

    purged: Purged
    newest_batch: int
    replay_from: int | None
    replay_at: datetime | None
    audit_is_open: bool


@dataclass(frozen=True, slots=True)
class RowPiece:
    """The next old rows of a table that no total counts: their number, at most `most`. `part_of` is their task.

    After the last piece, the table has no old row.
    """

    target: PurgeTarget
    before: datetime
    most: int
    part_of: str | None = None
    rows: int = 0
    is_last: bool = True

"""An audit as a task: a part for each partition and one for the stream. One audit is open at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.model.events import PartitionId, SequenceNumber
from core.model.ports import Clock
from core.store.database import Database
from core.store.script import Script
from core.tasks.run import ONE_PIECE, Done, Kind
from core.tasks.store import Ending, Tasks, advance_steps
from core.tasks.task import Advance, PartRequest, Task, TaskOrder, TaskPart, TaskRequest, report_of, report_text

DEADLINE = timedelta(hours=2)  # an open audit keeps purges out
READING = timedelta(minutes=5)  # of one partition
STREAM = "stream"  # the part for what belongs to no single partition


@dataclass(frozen=True, slots=True)
class AuditAsked:
    """The request of an audit: one partition, or all, and a recount of its `rows` from `first` to `last`."""

    partition_id: PartitionId | None = None
    rows: bool = False
    first: SequenceNumber | None = None
    last: SequenceNumber | None = None


@dataclass(frozen=True, slots=True)
class AuditKind(Kind):
    """The audits of one stream. `audit_partition` works until a time. Both functions return their findings as JSON."""

    database: Database
    audit_partition: Callable[[AuditAsked, PartitionId, datetime], str]
    audit_stream: Callable[[], str]
    clock: Clock

    name = "audit"
    deadline = DEADLINE

    @property
    def tasks(self) -> Tasks:
        return Tasks(self.database)

    def advance(self, task: Task, part: TaskPart, until: datetime) -> Done:
        """Audit a partition, or the stream at the end."""
        asked = report_of(task.asked, AuditAsked)
        if part.name == STREAM:
            found = self.audit_stream()
        else:
            found = self.audit_partition(asked, PartitionId(part.name), self.clock.now() + READING)
        ending = Ending(task.task_id, "audit", self.clock.now())
        ahead = Advance(part.name, part.step, part.position, found, is_last=True)
        self.database.run(Script(f"audit {task.task_id}", tuple(advance_steps(ending, ahead))))
        return ONE_PIECE


def audit_request(order: TaskOrder, asked: AuditAsked, partitions: tuple[PartitionId, ...]) -> TaskRequest:
    """Return the task of an audit of these partitions.

    The transaction that opens it locks the stream, as each piece of a purge does, so no piece is under way then.
    """
    parts = tuple(PartRequest(name) for name in (*partitions, STREAM))
    return TaskRequest(order, "audit", "", report_text(asked), parts, len(partitions))

"""An audit as a task: a part for each partition and one for the stream. One audit is open at a time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from core.audit.audit import (
    MOST_NUMBERS,
    ONLY_ANCHORED,
    AuditedPartition,
    Reading,
    RowRecount,
    audit,
    recount_rows,
    stream_faults,
    window,
)
from core.audit.faults import FIRST, FaultKind, LedgerFault
from core.audit.store import AuditStore
from core.errors import RequestRefused
from core.model.events import PartitionId, SequenceNumber
from core.model.ports import Clock
from core.model.shapes import Answered, NumberText, PartitionText, number_of, shape_of, written
from core.tasks.run import ONE_PIECE, Done, TaskKind
from core.tasks.store import Tasks
from core.tasks.task import (
    Advance,
    PartRequest,
    Task,
    TaskAnswer,
    TaskOrder,
    TaskPart,
    TaskRequest,
    TaskShape,
    report_of,
    report_text,
)

DEADLINE = timedelta(hours=2)  # an open audit keeps purges out
READING = timedelta(minutes=5)  # of one partition
STREAM = "stream"  # the part for what belongs to no single partition


class AuditShape(TaskShape, tag="audit"):
    """A request for an audit as a task: one partition, or all. `rows` also recounts the rows: the numbers from `first`
    to `last` of one partition, or the newest numbers of each."""

    partition_id: PartitionText | None = None
    rows: bool = False
    first: NumberText | None = None
    last: NumberText | None = None


_Fault: Any = shape_of(LedgerFault, kind=FaultKind)


class FaultAnswer(_Fault):
    """A fault of the ledger, and the numbers that it concerns."""


class RowRecountAnswer(Answered):
    """The recount of the rows from `first` to `last`. Each row is compared with the commit that it names, and each
    commit that lies wholly among these numbers with its rows. `complete` is true if these are all numbers of
    the partition."""

    first: str
    last: str
    rows: int
    complete: bool


class AuditedAnswer(Answered):
    """A partition up to commit `until`. If it is not `complete`, the time was over before the newest commit, and
    nothing but these ranges was compared. `rows` is null unless it was requested and exists."""

    partition_id: str
    first: str
    last: str
    checkpoint: str
    commits: int
    accounted: int
    dead_lettered: int
    letters: int
    until: str
    complete: bool
    balanced: bool
    rows: RowRecountAnswer | None


class AuditJobAnswer(TaskAnswer, tag_field="kind", tag="audit"):
    """An audit that runs as a task, with its findings so far: `done` of `total` partitions."""

    balanced: bool
    complete: bool
    accounted: int
    faults: list[FaultAnswer]
    partitions: list[AuditedAnswer]


class Finding(msgspec.Struct, frozen=True):
    """The finding of one partition, or of the stream. It is stored as it is shown."""

    faults: list[FaultAnswer]
    partition: AuditedAnswer | None = None


@dataclass(frozen=True, slots=True)
class AuditAsked:
    """The request of an audit: one partition, or all, and a recount of its `rows` from `first` to `last`."""

    partition_id: PartitionId | None = None
    rows: bool = False
    first: SequenceNumber | None = None
    last: SequenceNumber | None = None


@dataclass(frozen=True, slots=True)
class AuditKind(TaskKind):
    """The audits of one stream."""

    store: AuditStore
    clock: Clock

    name = "audit"
    asked = AuditShape
    answer = AuditJobAnswer
    deadline = DEADLINE

    @property
    def tasks(self) -> Tasks:
        return Tasks(self.store.stream.database)

    def request(self, order: TaskOrder, asked: AuditShape) -> TaskRequest:
        """Return the task of an audit of one partition, or of all that more than an anchor names."""
        first, last = _ends(asked)
        id = None if asked.partition_id is None else PartitionId(asked.partition_id)
        traces = self.store.find_traces()
        chosen = tuple(one for one, tables in traces.items() if id in (None, one) and tables != ONLY_ANCHORED)
        if not chosen:
            why = "there is no commit" if id is None else f"partition {id} has no commit"
            raise RequestRefused("partition_id", why, "not-found")
        return audit_request(order, AuditAsked(id, asked.rows, first, last), chosen)

    def advance(self, task: Task, part: TaskPart, until: datetime) -> Done:
        """Audit a partition, or the stream at the end."""
        found = self.find_in_stream() if part.name == STREAM else self.find_in_partition(task, PartitionId(part.name))
        ahead = Advance(part.name, part.step, part.position, report_text(found), is_last=True)
        self.tasks.advance(self.ending(task), ahead)
        return ONE_PIECE

    def find_in_stream(self) -> Finding:
        """Audit the stream."""
        return Finding([written(FaultAnswer, one) for one in stream_faults(self.store)])

    def find_in_partition(self, task: Task, id: PartitionId) -> Finding:
        """Audit a partition, with its rows if the task recounts them."""
        asked, until = report_of(task.asked, AuditAsked), self.clock.now() + READING
        done = audit(self.store, id, Reading(lambda: self.clock.now() >= until))
        if not done.partitions:
            text = "the partition had rows when this audit began, but no table names it now"
            return Finding([written(FaultAnswer, LedgerFault(id, "partition", FIRST, FIRST, text))])
        (one,) = done.partitions
        span = window(one.ledger, asked.first, asked.last, MOST_NUMBERS) if asked.rows else None
        rows = None if span is None else recount_rows(one, span, self.store)
        faults = (*one.faults, *(rows.faults if rows else ()))
        return Finding([written(FaultAnswer, fault) for fault in faults], partition_answer(one, rows))

    def report(self, task: Task, *, is_listed: bool) -> dict[str, Any]:
        """Return the findings so far."""
        done = [one for one in task.parts if one.closed_at is not None]
        found = [report_of(one.report, Finding) for one in done]
        faults = [fault for one in found for fault in one.faults]
        partitions = [one.partition for one in found if one.partition is not None]
        return {
            "done": sum(one.name != STREAM for one in done),
            "balanced": not faults,
            "complete": task.status == "done" and all(one.complete for one in partitions),
            "accounted": sum(one.accounted for one in partitions),
            "faults": faults,
            "partitions": partitions,
        }


def audit_request(order: TaskOrder, asked: AuditAsked, partitions: tuple[PartitionId, ...]) -> TaskRequest:
    """Return the task of an audit of these partitions.

    The transaction that opens it locks the stream, as each piece of a purge does, so no piece is under way then.
    """
    parts = tuple(PartRequest(name) for name in (*partitions, STREAM))
    return TaskRequest(order, "audit", "", report_text(asked), parts, len(partitions))


def partition_answer(one: AuditedPartition, rows: RowRecount | None = None) -> AuditedAnswer:
    """Return an audited partition, with the recount of its rows."""
    ledger, recount = one.ledger, None
    if rows is not None:
        is_whole = rows.span.ends == (ledger.first, ledger.checkpoint)
        first, last = map(str, rows.span.ends)
        recount = RowRecountAnswer(first=first, last=last, rows=rows.rows, complete=is_whole)
    return written(
        AuditedAnswer,
        ledger,
        partition_id=ledger.partition.partition_id,
        accounted=ledger.accounted,
        until=str(one.until),
        complete=one.complete,
        balanced=not one.faults and not (rows and rows.faults),
        rows=recount,
    )


def _ends(asked: AuditShape) -> tuple[SequenceNumber | None, SequenceNumber | None]:
    """Read the ends of a recount."""
    first = None if asked.first is None else number_of(asked.first, "first")
    last = None if asked.last is None else number_of(asked.last, "last")
    named = "first" if first is not None else "last"
    if (first, last) != (None, None) and asked.partition_id is None:
        raise RequestRefused("partition_id", "first and last are numbers of one partition: set partition_id")
    if (first, last) != (None, None) and not asked.rows:
        raise RequestRefused(named, "set rows, to recount the rows")
    if first is not None and last is not None:
        if last < first:
            raise RequestRefused("last", f"{last} is before first, which is {first}")
        if last - first >= MOST_NUMBERS:
            why = f"{last - first + 1} numbers are too many: the limit of one recount is {MOST_NUMBERS}"
            raise RequestRefused("last", why)
    return first, last

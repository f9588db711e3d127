"""Audit the ledger: the ranges at once, and with their rows as a task."""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from core.api.operation import Call, number_of, operation
from core.api.problems import BUSY, NOT_FOUND, Problem, invalid, not_found
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
from core.audit.task import DEADLINE, STREAM, AuditAsked, AuditKind, audit_request
from core.model.events import PartitionId, SequenceNumber
from core.model.shapes import Answered, Nothing, NumberText, PartitionText, Shape, shape_of, written
from core.purge.task import Verify
from core.tasks.task import Task, TaskAnswer, TaskOrder, TaskRequest, of_every_kind, report_of, report_text
from handlers.app import CLOCK, App, app
from handlers.operations.task_shapes import TaskShape


class AuditQuery(Shape):
    """One partition, or all."""

    partition_id: PartitionText | None = None


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


class AuditAnswer(Answered):
    """The audit of the ranges. If it is not `complete`, the time was over: request an audit as a task."""

    at: datetime
    balanced: bool
    complete: bool
    accounted: int
    faults: list[FaultAnswer]
    partitions: list[AuditedAnswer]


class AuditJobAnswer(TaskAnswer, tag_field="kind", tag="audit"):
    """An audit that runs as a task, with its findings so far: `done` of `total` partitions."""

    balanced: bool
    complete: bool
    accounted: int
    faults: list[FaultAnswer]
    partitions: list[AuditedAnswer]


class Finding(msgspec.Struct, frozen=True):
    """The finding of one partition, or of the stream, in the form in which a job stores it."""

    faults: list[FaultAnswer]
    partition: AuditedAnswer | None = None


AuditPartition = Callable[[AuditAsked, PartitionId, datetime], str]
AuditStream = Callable[[], str]


def audit_store(own: App) -> AuditStore:
    """Return the store of the stream's audits."""
    return AuditStore(own.stream, own.transform.row_classes)


def audit_means(own: App) -> tuple[AuditPartition, AuditStream]:
    """Return two functions: one audits a partition until a time, the other the stream."""

    def of_partition(asked: AuditAsked, id: PartitionId, until: datetime) -> str:
        return report_text(_of_partition(own, asked, id, Reading(lambda: own.clock.now() >= until)))

    def of_stream() -> str:
        return report_text(Finding([fault_answer(one) for one in stream_faults(audit_store(own))]))

    return of_partition, of_stream


def verified(own: App) -> Verify:
    """Return the function with which a purge audits a partition until a time."""

    def verify(id: PartitionId, until: datetime) -> tuple[int, int]:
        done = audit(audit_store(own), id, Reading(lambda: own.clock.now() >= until))
        return len(done.faults), done.partitions[0].until if done.partitions else 0

    return verify


def audited_partitions(own: App, chosen: PartitionId | None) -> tuple[PartitionId, ...]:
    """Return the chosen partition, or all, that any table but that of the anchors names."""
    traces = audit_store(own).find_traces()
    return tuple(id for id, tables in traces.items() if chosen in (None, id) and tables != ONLY_ANCHORED)


def _of_partition(own: App, asked: AuditAsked, id: PartitionId, reading: Reading) -> Finding:
    done = audit(audit_store(own), id, reading)
    if not done.partitions:
        text = "the partition had rows when this audit began, but no table names it now"
        return Finding([fault_answer(LedgerFault(id, "partition", FIRST, FIRST, text))])
    (one,) = done.partitions
    span = window(one.ledger, asked.first, asked.last, MOST_NUMBERS) if asked.rows else None
    rows = None if span is None else recount_rows(one, span, audit_store(own))
    faults = (*one.faults, *(rows.faults if rows else ()))
    return Finding([fault_answer(fault) for fault in faults], partition_answer(one, rows))


def shown(task: Task) -> AuditJobAnswer:
    """Show an audit with its findings so far."""
    done = [one for one in task.parts if one.closed_at is not None]
    found = [report_of(one.report, Finding) for one in done]
    faults = [fault for one in found for fault in one.faults]
    partitions = [one.partition for one in found if one.partition is not None]
    return AuditJobAnswer(
        **of_every_kind(task, sum(one.name != STREAM for one in done), task.total, task.requested_at + DEADLINE),
        balanced=not faults,
        complete=task.status == "done" and all(one.complete for one in partitions),
        accounted=sum(one.accounted for one in partitions),
        faults=faults,
        partitions=partitions,
    )


def partition_answer(one: AuditedPartition, rows: RowRecount | None = None) -> AuditedAnswer:
    """Return an audited partition, with the recount of its rows."""
    ledger = one.ledger
    return AuditedAnswer(
        partition_id=ledger.partition.partition_id,
        first=str(ledger.first),
        last=str(ledger.last),
        checkpoint=str(ledger.checkpoint),
        commits=ledger.commits,
        accounted=ledger.accounted,
        dead_lettered=ledger.dead_lettered,
        letters=ledger.letters,
        until=str(one.until),
        complete=one.complete,
        balanced=not one.faults and not (rows and rows.faults),
        rows=None if rows is None else _row_recount(one, rows),
    )


def _row_recount(one: AuditedPartition, done: RowRecount) -> RowRecountAnswer:
    first, last = done.span.ends
    is_whole = (first, last) == (one.ledger.first, one.ledger.checkpoint)
    return RowRecountAnswer(first=str(first), last=str(last), rows=done.rows, complete=is_whole)


def fault_answer(fault: LedgerFault) -> FaultAnswer:
    """Return a fault."""
    return written(FaultAnswer, fault)


AT_MOST = timedelta(seconds=20)  # of one request

_auditing = threading.Lock()


@operation(
    "The ranges tile the log and match the letters",
    "ledger",
    problems=(NOT_FOUND, BUSY),
)
def audit_ledger(call: Call[Nothing, AuditQuery, Nothing]) -> AuditAnswer:
    """Audit the ledger until the time of a request is over, once at a time in a process. Nothing is written."""
    if not _auditing.acquire(blocking=False):
        raise Problem(
            BUSY, "an audit is running: send the request again when it is done", headers={"Retry-After": "10"}
        )
    try:
        id = None if call.query.partition_id is None else PartitionId(call.query.partition_id)
        until = CLOCK.now() + AT_MOST
        done = audit(audit_store(app()), id, Reading(lambda: CLOCK.now() >= until))
    finally:
        _auditing.release()
    if id is not None and not done.partitions:
        raise not_found("partition_id", f"partition {id} has no commit")
    return AuditAnswer(
        at=call.at,
        balanced=done.balanced,
        complete=done.complete,
        accounted=sum(one.ledger.accounted for one in done.partitions),
        faults=[fault_answer(fault) for fault in done.faults],
        partitions=[partition_answer(one) for one in done.partitions],
    )


def request(own: App, order: TaskOrder, body: AuditShape) -> TaskRequest:
    """Return the task of an audit; raise a problem for a partition without a commit."""
    first, last = _ends(body)
    id = None if body.partition_id is None else PartitionId(body.partition_id)
    partitions = audited_partitions(own, id)
    if not partitions:
        raise not_found("partition_id", "there is no commit" if id is None else f"partition {id} has no commit")
    return audit_request(order, AuditAsked(id, body.rows, first, last), partitions)


def kind(own: App) -> AuditKind:
    """Return the audits of the stream."""
    return AuditKind(own.stream.database, *audit_means(own), own.clock)


def _ends(asked: AuditShape) -> tuple[SequenceNumber | None, SequenceNumber | None]:
    """Read the ends of a recount."""
    first = None if asked.first is None else number_of(asked.first, "first")
    last = None if asked.last is None else number_of(asked.last, "last")
    named = "first" if first is not None else "last"
    if (first, last) != (None, None) and asked.partition_id is None:
        raise invalid("partition_id", "first and last are numbers of one partition: set partition_id")
    if (first, last) != (None, None) and not asked.rows:
        raise invalid(named, "set rows, to recount the rows")
    if first is not None and last is not None:
        if last < first:
            raise invalid("last", f"{last} is before first, which is {first}")
        if last - first >= MOST_NUMBERS:
            raise invalid(
                "last", f"{last - first + 1} numbers are too many: the limit of one recount is {MOST_NUMBERS}"
            )
    return first, last

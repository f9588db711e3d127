"""The findings of an audit: of one partition, with its rows where they are requested, and of the stream."""

from collections.abc import Callable
from datetime import datetime

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
from core.audit.faults import FIRST, LedgerFault
from core.audit.task import DEADLINE, STREAM, AuditAsked
from core.model.events import PartitionId, Span
from core.model.shapes import written
from core.purge.task import Verify
from core.tasks.task import Task, of_every_kind, report_of, report_text
from handlers.app import App
from handlers.operations.audit_shapes import (
    AuditedAnswer,
    AuditJobAnswer,
    FaultAnswer,
    Finding,
    RowRecountAnswer,
)

AuditPartition = Callable[[AuditAsked, PartitionId, datetime], str]
AuditStream = Callable[[], str]


def audit_means(own: App) -> tuple[AuditPartition, AuditStream]:
    """Return two functions: one audits a partition until a time, the other the stream."""

    def of_partition(asked: AuditAsked, id: PartitionId, until: datetime) -> str:
        return _written(_of_partition(own, asked, id, Reading(lambda: own.clock.now() >= until)))

    def of_stream() -> str:
        return _written(Finding([fault_answer(one) for one in stream_faults(own.audits)]))

    return of_partition, of_stream


def verified(own: App) -> Verify:
    """Return the function with which a purge audits a partition until a time."""

    def verify(id: PartitionId, until: datetime) -> tuple[int, int]:
        done = audit(own.audits, id, Reading(lambda: own.clock.now() >= until))
        return len(done.faults), done.partitions[0].until if done.partitions else 0

    return verify


def audited_partitions(own: App, chosen: PartitionId | None) -> tuple[PartitionId, ...]:
    """Return the chosen partition, or all, that any table but that of the anchors names."""
    traces = own.audits.find_traces()
    return tuple(id for id, tables in traces.items() if chosen in (None, id) and tables != ONLY_ANCHORED)


def _of_partition(own: App, asked: AuditAsked, id: PartitionId, reading: Reading) -> Finding:
    done = audit(own.audits, id, reading)
    if not done.partitions:
        return Finding([fault_answer(_vanished(id))])
    (one,) = done.partitions
    rows = _rows(own, one, window(one.ledger, asked.first, asked.last, MOST_NUMBERS)) if asked.rows else None
    faults = (*one.faults, *(rows.faults if rows else ()))
    return Finding([fault_answer(fault) for fault in faults], partition_answer(one, rows))


def _vanished(id: PartitionId) -> LedgerFault:
    text = "the partition had rows when this audit began, but no table names it now"
    return LedgerFault(id, "partition", FIRST, FIRST, text)


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


def _written(finding: Finding) -> str:
    return report_text(finding)


def _rows(own: App, one: AuditedPartition, span: Span | None) -> RowRecount | None:
    return None if span is None else recount_rows(one, span, own.audits)


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

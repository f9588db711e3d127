"""The audit of the ledger: every range read anew and, on request, the rows and the hub recounted."""

import threading
from dataclasses import asdict
from datetime import datetime, timedelta

import msgspec

from core.ledger.audit import AuditedPartition, FaultKind, LedgerFault, audit
from core.ledger.recount import MOST_EVENTS, MOST_NUMBERS, HubRecount, RowRecount, recount_hub, recount_rows, window
from core.model.spans import SequenceNumber, Span
from handlers.desk import Desk, desk
from handlers.operation import (
    Answered,
    Call,
    Nothing,
    NumberText,
    Operation,
    PartitionText,
    Shape,
    number_of,
    partition_of,
)
from handlers.problems import BUSY, NOT_FOUND, Problem, invalid, not_found

READING = timedelta(seconds=60)  # for the events of one partition


class AuditQuery(Shape):
    """Which partition, all of them without one; and whether the rows, and the hub, are recounted too: of the numbers
    from `first` to `last` of one partition, else of the newest of each."""

    partition_id: PartitionText | None = None
    rows: bool = False
    hub: bool = False
    first: NumberText | None = None
    last: NumberText | None = None


class FaultAnswer(Answered):
    """One thing that is wrong, and the numbers that it is about."""

    partition_id: str
    kind: FaultKind
    first: str
    last: str
    detail: str


class NumbersAnswer(Answered):
    """A range of numbers, both ends included."""

    first: str
    last: str


class RowRecountAnswer(Answered):
    """The rows of the numbers from `first` to `last`, each held against the commit that it names, and the commits that
    lie wholly among them against their rows. Ask for those before `first` when there are more."""

    first: str
    last: str
    rows: int
    complete: bool


class HubRecountAnswer(Answered):
    """What the hub holds: it reaches from `beginning` to `end`. The numbers from `first` to `last` were read: it has
    `held` of them, and the ledger calls `absent` absent. `not_held` are others that it does not hold: compaction leaves
    such holes, and retention does not. `first` and `last` are null where it holds nothing of what was asked for."""

    beginning: str
    end: str
    first: str | None
    last: str | None
    held: int
    absent: int
    not_held: list[NumbersAnswer]
    lag: int


class AuditedAnswer(Answered):
    """One partition, summed from its first range; `rows` and `hub` where they were asked for and there are such."""

    partition_id: str
    first: str
    last: str
    checkpoint: str
    commits: int
    accounted: int
    dead_lettered: int
    letters: int
    balanced: bool
    rows: RowRecountAnswer | None
    hub: HubRecountAnswer | None


class AuditAnswer(Answered):
    """The audit: every range read, nothing remembered."""

    at: datetime
    balanced: bool
    accounted: int
    faults: list[FaultAnswer]
    partitions: list[AuditedAnswer]


_auditing = threading.Lock()


def audit_ledger(call: Call[Nothing, AuditQuery, Nothing]) -> AuditAnswer:
    """One at a time in a process: an audit reads all ranges."""
    ends = _ends(call.query)
    if not _auditing.acquire(blocking=False):
        raise Problem(BUSY, "an audit is running: ask again when it is done", headers={"Retry-After": "10"})
    try:
        return _audited(call, *ends)
    finally:
        _auditing.release()


def _ends(asked: AuditQuery) -> tuple[SequenceNumber | None, SequenceNumber | None]:
    """The numbers that a recount is of."""
    first = None if asked.first is None else number_of(asked.first, "first")
    last = None if asked.last is None else number_of(asked.last, "last")
    named = "first" if first is not None else "last"
    if (first, last) != (None, None) and asked.partition_id is None:
        raise invalid("partition_id", "first and last are numbers of one partition: name it")
    if (first, last) != (None, None) and not (asked.rows or asked.hub):
        raise invalid(named, "say with rows=true or hub=true what is to be recounted")
    if first is not None and last is not None:
        _refuse_range(first, last, MOST_EVENTS if asked.hub else MOST_NUMBERS)
    return first, last


def _refuse_range(first: SequenceNumber, last: SequenceNumber, most: int) -> None:
    if last < first:
        raise invalid("last", f"{last} lies before first, which is {first}")
    if last - first >= most:
        raise invalid("last", f"{last - first + 1} numbers are too many: at once {most} are recounted")


def _audited(
    call: Call[Nothing, AuditQuery, Nothing], first: SequenceNumber | None, last: SequenceNumber | None
) -> AuditAnswer:
    own, asked = desk(), call.query
    id = None if asked.partition_id is None else partition_of(asked.partition_id)
    done = audit(own.store.books, id, call.at)
    if id is not None and not done.partitions:
        raise not_found("partition_id", f"partition {id} has no commit")
    faults, partitions = list(done.faults), []
    for one in done.partitions:
        rows = _rows(own, one, window(one.ledger, first, last, MOST_NUMBERS)) if asked.rows else None
        hub = _hub(own, one, window(one.ledger, first, last, MOST_EVENTS), call.at) if asked.hub else None
        partitions.append(_partition(one, rows, hub))
        faults += [fault for recount in (rows, hub) if recount is not None for fault in recount.faults]
    return AuditAnswer(
        at=call.at,
        balanced=not faults,
        accounted=sum(one.ledger.accounted for one in done.partitions),
        faults=[_fault(fault) for fault in faults],
        partitions=partitions,
    )


def _rows(own: Desk, one: AuditedPartition, span: Span | None) -> RowRecount | None:
    return None if span is None else recount_rows(one, span, own.store.books)


def _hub(own: Desk, one: AuditedPartition, span: Span | None, now: datetime) -> HubRecount | None:
    return None if span is None else recount_hub(one, span, own.hub, own.store.books, now + READING)


def _partition(one: AuditedPartition, rows: RowRecount | None, hub: HubRecount | None) -> AuditedAnswer:
    ledger = one.ledger
    more = (rows.faults if rows else ()) + (hub.faults if hub else ())
    return AuditedAnswer(
        partition_id=ledger.partition.partition_id,
        first=str(ledger.first),
        last=str(ledger.last),
        checkpoint=str(ledger.checkpoint),
        commits=ledger.commits,
        accounted=ledger.accounted,
        dead_lettered=ledger.dead_lettered,
        letters=ledger.letters,
        balanced=not one.faults and not more,
        rows=None if rows is None else _row_recount(one, rows),
        hub=None if hub is None else _hub_recount(hub),
    )


def _row_recount(one: AuditedPartition, done: RowRecount) -> RowRecountAnswer:
    first, last = done.span.ends
    is_whole = (first, last) == (one.ledger.first, one.ledger.checkpoint)
    return RowRecountAnswer(first=str(first), last=str(last), rows=done.rows, complete=is_whole)


def _hub_recount(done: HubRecount) -> HubRecountAnswer:
    return HubRecountAnswer(
        beginning=str(done.extent.beginning),
        end=str(done.extent.last),
        first=None if done.span is None else str(done.span.first),
        last=None if done.span is None else str(done.span.last),
        held=done.held,
        absent=done.absent,
        not_held=[NumbersAnswer(first=str(hole.first), last=str(hole.last)) for hole in done.not_held],
        lag=done.lag,
    )


def _fault(fault: LedgerFault) -> FaultAnswer:
    return msgspec.convert({**asdict(fault), "first": str(fault.first), "last": str(fault.last)}, FaultAnswer)


OPERATIONS = (
    Operation(
        "audit_ledger",
        "Whether the ranges tile the log and match the letters: reads all of them",
        audit_ledger,
        {200: AuditAnswer},
        query=AuditQuery,
        problems=(NOT_FOUND, BUSY),
        tag="ledger",
    ),
)

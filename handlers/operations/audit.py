"""Audit the ledger: read every range again and, on request, recount the rows and the hub."""

import threading
from dataclasses import asdict
from datetime import datetime, timedelta

import msgspec

from core.ledger.audit import AuditedPartition, audit
from core.ledger.faults import FaultKind, LedgerFault
from core.ledger.hub_comparison import find_unbooked, incarnation_faults
from core.ledger.recount import MOST_EVENTS, MOST_NUMBERS, HubRecount, RowRecount, recount_hub, recount_rows, window
from core.model.events import PartitionId
from core.model.spans import SequenceNumber, Span
from handlers.app import App, app
from handlers.web.operation import (
    Answered,
    Call,
    Nothing,
    NumberText,
    PartitionText,
    Shape,
    number_of,
    operation,
)
from handlers.web.problems import BUSY, NOT_FOUND, Problem, invalid, not_found

READING = timedelta(seconds=60)  # to read the events of one partition


class AuditQuery(Shape):
    """One partition, or all. `rows` and `hub` also recount the rows and the hub: the numbers from `first` to `last` of
    one partition, or the newest numbers of each."""

    partition_id: PartitionText | None = None
    rows: bool = False
    hub: bool = False
    first: NumberText | None = None
    last: NumberText | None = None


class FaultAnswer(Answered):
    """A fault of the ledger, and the numbers that it concerns."""

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
    """The recount of the rows from `first` to `last`. Each row is compared with the commit that it names, and each
    commit that lies wholly among these numbers with its rows. `complete` is true if these are all numbers of
    the partition."""

    first: str
    last: str
    rows: int
    complete: bool


class HubRecountAnswer(Answered):
    """The recount of the hub, which reaches from `beginning` to `end`. Of the numbers from `first` to `last`, which
    were read, the hub holds `held`, and the ledger counts `absent` as absent. The hub does not hold those in `not_held`
    either: compaction leaves such holes, retention does not. `first` and `last` are null where the hub holds none of
    the requested numbers."""

    beginning: str
    end: str
    first: str | None
    last: str | None
    held: int
    absent: int
    not_held: list[NumbersAnswer]
    lag: int


class AuditedAnswer(Answered):
    """A partition, summed from its first range; `rows` and `hub` are null unless they were requested and exist."""

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
    """The audit, of every range; no remembered sum is used."""

    at: datetime
    balanced: bool
    accounted: int
    faults: list[FaultAnswer]
    partitions: list[AuditedAnswer]


_auditing = threading.Lock()


@operation(
    "Whether the ranges tile the log and match the letters; every range is read", "ledger", problems=(NOT_FOUND, BUSY)
)
def audit_ledger(call: Call[Nothing, AuditQuery, Nothing]) -> AuditAnswer:
    """Audit the ledger, once at a time in a process: an audit reads all ranges."""
    ends = _ends(call.query)
    if not _auditing.acquire(blocking=False):
        raise Problem(
            BUSY, "an audit is running: send the request again when it is done", headers={"Retry-After": "10"}
        )
    try:
        return _audited(call, *ends)
    finally:
        _auditing.release()


def _ends(query: AuditQuery) -> tuple[SequenceNumber | None, SequenceNumber | None]:
    """Read the ends of a recount."""
    first = None if query.first is None else number_of(query.first, "first")
    last = None if query.last is None else number_of(query.last, "last")
    named = "first" if first is not None else "last"
    if (first, last) != (None, None) and query.partition_id is None:
        raise invalid("partition_id", "first and last are numbers of one partition: set partition_id")
    if (first, last) != (None, None) and not (query.rows or query.hub):
        raise invalid(named, "set rows=true or hub=true, to recount the rows or the hub")
    if first is not None and last is not None:
        _refuse_range(first, last, MOST_EVENTS if query.hub else MOST_NUMBERS)
    return first, last


def _refuse_range(first: SequenceNumber, last: SequenceNumber, limit: int) -> None:
    if last < first:
        raise invalid("last", f"{last} is before first, which is {first}")
    if last - first >= limit:
        raise invalid("last", f"{last - first + 1} numbers are too many: the limit of one recount is {limit}")


def _audited(
    call: Call[Nothing, AuditQuery, Nothing], first: SequenceNumber | None, last: SequenceNumber | None
) -> AuditAnswer:
    own, query = app(), call.query
    id = None if query.partition_id is None else PartitionId(query.partition_id)
    done = audit(own.ledger, id)
    if id is not None and not done.partitions:
        raise not_found("partition_id", f"partition {id} has no commit")
    faults, partitions = list(done.faults), []
    for one in done.partitions:
        rows = _rows(own, one, window(one.ledger, first, last, MOST_NUMBERS)) if query.rows else None
        hub = _hub(own, one, window(one.ledger, first, last, MOST_EVENTS), call.at) if query.hub else None
        partitions.append(_partition(one, rows, hub))
        faults += [fault for recount in (rows, hub) if recount is not None for fault in recount.faults]
    if query.hub:
        incarnation = own.ledger.read_incarnation()
        states = [own.incarnations.read_partition(one.ledger.partition) for one in done.partitions]
        faults += incarnation_faults(states, incarnation, own.hub)
        faults += find_unbooked(own.hub, done.named, incarnation, call.at) if id is None else ()
    return AuditAnswer(
        at=call.at,
        balanced=not faults,
        accounted=sum(one.ledger.accounted for one in done.partitions),
        faults=[_fault(fault) for fault in faults],
        partitions=partitions,
    )


def _rows(own: App, one: AuditedPartition, span: Span | None) -> RowRecount | None:
    return None if span is None else recount_rows(one, span, own.ledger)


def _hub(own: App, one: AuditedPartition, span: Span | None, now: datetime) -> HubRecount | None:
    return None if span is None else recount_hub(one, span, own.hub, own.ledger, now + READING)


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

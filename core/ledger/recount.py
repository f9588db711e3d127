"""Recount on request of an audit the rows that commits wrote."""

from dataclasses import dataclass

from core.ledger.audit import AuditedPartition
from core.ledger.books import PartitionLedger
from core.ledger.faults import FAULT_LIMIT, CommitRows, FaultKind, LedgerFault, LetteredRow, RowCount
from core.ledger.store.audit import AuditStore
from core.model.events import PartitionId
from core.model.spans import SequenceNumber, Span

MOST_NUMBERS = 10_000_000  # numbers of a partition whose rows one recount counts
LAST_NUMBER = SequenceNumber(2**63 - 1)


@dataclass(frozen=True, slots=True)
class RowRecount:
    """The number of rows in a range, and the faults."""

    span: Span
    rows: int
    faults: tuple[LedgerFault, ...]


def window(
    ledger: PartitionLedger, first: SequenceNumber | None, last: SequenceNumber | None, most: int
) -> Span | None:
    """Return up to `most` numbers to recount: those from `first` on if it is given, else those that end at `last`.

    None when the ledger has none of these numbers.
    """
    until = ledger.checkpoint if last is None else min(last, ledger.checkpoint)
    since = SequenceNumber(until - most + 1) if first is None else first
    begin = SequenceNumber(max(since, ledger.first))
    end = SequenceNumber(min(until, begin + most - 1))
    return Span(begin, end) if begin <= end else None


def recount_rows(audited: AuditedPartition, span: Span, store: AuditStore) -> RowRecount:
    """Find rows that no commit accounts for, and commits with missing or additional rows.

    For states, only the first check is possible: newer states replace them without a trace.
    """
    ledger = audited.ledger
    id, reach = ledger.partition.partition_id, _to_the_ends(span, ledger)
    counts = store.count_rows(id, reach)
    faults = [_unaccounted(id, span, one) for one in counts if one.unaccounted]
    faults += [_of_commit(id, one) for one in store.find_row_faults(id, reach, FAULT_LIMIT)]
    faults += [_of_letter(id, one) for one in store.find_lettered_rows(id, reach, FAULT_LIMIT)]
    return RowRecount(span, sum(one.rows for one in counts), tuple(faults))


def _to_the_ends(span: Span, ledger: PartitionLedger) -> Span:
    """Return the span; if it ends with the ledger, extend it to the largest number: no commit has written rows there.

    Likewise, a span that begins with the ledger is extended to number 0.
    """
    first = SequenceNumber(0) if span.first == ledger.first else span.first
    return Span(first, LAST_NUMBER if span.last == ledger.checkpoint else span.last)


def _unaccounted(id: PartitionId, span: Span, one: RowCount) -> LedgerFault:
    text = f"{one.unaccounted} of {one.rows} rows in {one.table} are not from a commit that covers their number"
    return LedgerFault(id, "rows", span.first, span.last, text)


def _of_commit(id: PartitionId, one: CommitRows) -> LedgerFault:
    kind: FaultKind = "rows_missing" if one.rows < one.appended else "rows_added"
    text = f"commit {one.commit_number} ({one.kind}) appended {one.appended} rows, but the tables hold {one.rows}"
    return LedgerFault(id, kind, one.first, one.last, text)


def _of_letter(id: PartitionId, one: LetteredRow) -> LedgerFault:
    text = f"letter {one.sequence_number} is {one.status}, but {one.table} has rows of its event"
    return LedgerFault(id, "letters", one.sequence_number, one.sequence_number, text)

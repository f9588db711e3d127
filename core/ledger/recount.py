"""Recount on request of an audit: the rows that commits wrote, and the events that the hub still holds."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime

from core.ledger.audit import AuditedPartition
from core.ledger.books import PartitionLedger
from core.ledger.faults import FAULT_LIMIT, CommitRows, FaultKind, LedgerFault, LetteredRow, RowCount
from core.ledger.hub_comparison import LetterComparison
from core.ledger.store.ledger import Ledger
from core.model.events import PartitionId
from core.model.hub import Extent, HubReader
from core.model.spans import SequenceNumber, Span

MOST_NUMBERS = 10_000_000  # numbers of a partition whose rows one recount counts
MOST_EVENTS = 20_000  # events of a partition that one recount reads from the hub
ABSENT_LIMIT, HOLE_LIMIT = 1_000, 100  # absent ranges that are read, and holes that are reported
LAST_NUMBER = SequenceNumber(2**63 - 1)


@dataclass(frozen=True, slots=True)
class RowRecount:
    """The number of rows in a range, and the faults."""

    span: Span
    rows: int
    faults: tuple[LedgerFault, ...]


@dataclass(frozen=True, slots=True)
class HubRecount:
    """The events of a range that the hub holds. `not_held` are numbers between them that are missing and were never in
    a gap: retention leaves no such holes, compaction does. Without a `span`, the hub holds no event of the range."""

    extent: Extent
    span: Span | None
    held: int
    absent: int
    not_held: tuple[Span, ...]
    lag: int
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


def recount_rows(audited: AuditedPartition, span: Span, store: Ledger) -> RowRecount:
    """Find rows that no commit accounts for, and commits with missing or additional rows.

    For states, only the first check is possible: newer states replace them without a trace.
    """
    ledger = audited.ledger
    id, reach = ledger.partition.partition_id, _to_the_ends(span, ledger)
    counts = store.count_rows(id, reach)
    faults = [_unaccounted(id, span, one) for one in counts if one.unaccounted]
    miscounted = store.find_row_faults(id, reach, FAULT_LIMIT)
    faults += [_of_commit(id, one) for one in miscounted]
    faults += [_of_letter(id, one) for one in store.find_lettered_rows(id, reach, FAULT_LIMIT)]
    faults += _changed(id, span, {one.commit_number for one in miscounted}, store)
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


def _changed(id: PartitionId, span: Span, miscounted: Collection[int], store: Ledger) -> Iterator[LedgerFault]:
    """Yield the changed commits that no fault names yet.

    Each is read a second time: a replay may have moved its rows during the first read.
    """
    for one in store.find_changed_commits(id, span, FAULT_LIMIT):
        named = f"commit {one.commit_number} ({one.kind})"
        if one not in store.find_changed_commits(id, Span(one.first, one.last), FAULT_LIMIT):
            continue
        if not one.rows:
            text = f"the ledger's row for {named} is not the one that the commit wrote"
            yield LedgerFault(id, "ledger_changed", one.first, one.last, text)
        elif one.commit_number not in miscounted:
            text = f"{named} appended different rows than the tables hold"
            yield LedgerFault(id, "rows_changed", one.first, one.last, text)


def recount_hub(audited: AuditedPartition, span: Span, hub: HubReader, store: Ledger, deadline: datetime) -> HubRecount:
    """Read a range from the hub, and compare its letters with it. Raises HubUnreachable or HubRefused.

    Reports numbers that are recorded as absent although the hub has them, and a checkpoint after the hub's end.
    """
    ledger = audited.ledger
    id, extent = ledger.partition.partition_id, hub.extent(ledger.partition)
    lag = max(0, extent.last - ledger.checkpoint)
    faults = list(_beyond(id, ledger, extent))
    held = span.overlap(Span(extent.beginning, extent.last))
    if held is None:
        return HubRecount(extent, None, 0, 0, (), lag, tuple(faults))
    letters, numbers = LetterComparison(store, id, held), []
    for event in hub.read_range(ledger.partition, *held.ends, deadline):
        numbers.append(event.sequence_number)
        faults += letters.see(event)
    held = held.overlap(Span(hub.extent(ledger.partition).beginning, extent.last)) or held  # retention continues
    numbers = [number for number in numbers if number >= held.first]
    absent = [one for each in store.find_absent(id, held, ABSENT_LIMIT) if (one := each.overlap(held))]
    faults += _found_after_all(id, numbers, absent)
    not_held = tuple(hole for hole in held.holes(numbers) if not any(each.holds(hole) for each in absent))
    lost = sum(one.length for one in absent)
    return HubRecount(extent, held, len(numbers), lost, not_held[:HOLE_LIMIT], lag, tuple(faults))


def _beyond(id: PartitionId, ledger: PartitionLedger, extent: Extent) -> Iterator[LedgerFault]:
    if ledger.checkpoint > extent.last:
        text = f"the hub ends at {extent.last}, before the checkpoint at {ledger.checkpoint}: it is a new hub"
        yield LedgerFault(id, "hub", SequenceNumber(extent.last + 1), ledger.checkpoint, text)


def _found_after_all(id: PartitionId, numbers: list[SequenceNumber], absent: list[Span]) -> Iterator[LedgerFault]:
    for gap in absent:
        found = [number for number in numbers if gap.first <= number <= gap.last]
        if found:
            text = f"{len(found)} numbers are recorded as absent, but the hub has them; the first is {found[0]}"
            yield LedgerFault(id, "hub", found[0], found[-1], text)

"""What an audit recounts on request: the rows that commits left, and the events that the hub still holds."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from core.ledger.audit import MOST_FAULTS, AuditedPartition, FaultKind, LedgerFault
from core.ledger.status import PartitionLedger
from core.model.events import PartitionId
from core.model.hub import Extent, HubReader
from core.model.spans import SequenceNumber, Span

MOST_NUMBERS = 10_000_000  # of a partition whose rows are recounted at once
MOST_EVENTS = 20_000  # of a partition that are read from the hub at once
MOST_ABSENT, MOST_HOLES = 1_000, 100  # ranges that are looked at, and that are told
END = SequenceNumber(2**63 - 1)


@dataclass(frozen=True, slots=True)
class RowCount:
    """The rows of one table in a range. `unaccounted` ones are of no commit that reaches their number."""

    table: str
    is_state: bool
    rows: int
    unaccounted: int


@dataclass(frozen=True, slots=True)
class CommitRows:
    """A commit that appended another number of rows than there are of it, those included that replays took away."""

    commit_number: int
    kind: str
    first: SequenceNumber
    last: SequenceNumber
    appended: int
    rows: int


@dataclass(frozen=True, slots=True)
class RowRecount:
    """The rows of a range, and what is wrong with them."""

    span: Span
    rows: int
    faults: tuple[LedgerFault, ...]


@dataclass(frozen=True, slots=True)
class HubRecount:
    """What the hub holds of a range; `not_held` numbers lie between its ends and were in no gap when they were due.

    Retention leaves no such holes, compaction does. Without a `span` the hub holds nothing of what was asked for.
    """

    extent: Extent
    span: Span | None
    held: int
    absent: int
    not_held: tuple[Span, ...]
    lag: int
    faults: tuple[LedgerFault, ...]


class RecountStore(Protocol):
    """What a store tells a recount of one partition."""

    def count_rows(self, partition_id: PartitionId, span: Span) -> tuple[RowCount, ...]:
        """The rows of a range in every table that events become. Reads all of them."""
        ...

    def find_row_faults(self, partition_id: PartitionId, span: Span, most: int) -> tuple[CommitRows, ...]:
        """The first commits wholly in a range that appended another number of rows than there are of them."""
        ...

    def find_absent(self, partition_id: PartitionId, span: Span, most: int) -> tuple[Span, ...]:
        """Ranges that are absent and reach into this one, rising."""
        ...


def window(
    ledger: PartitionLedger, first: SequenceNumber | None, last: SequenceNumber | None, most: int
) -> Span | None:
    """What of a partition is recounted at once: its newest `most` numbers, or those from `first`, or those to `last`.

    None where the ledger has nothing of it.
    """
    until = ledger.checkpoint if last is None else min(last, ledger.checkpoint)
    since = SequenceNumber(until - most + 1) if first is None else first
    begin = SequenceNumber(max(since, ledger.first))
    end = SequenceNumber(min(until, begin + most - 1))
    return Span(begin, end) if begin <= end else None


def recount_rows(audited: AuditedPartition, span: Span, store: RecountStore) -> RowRecount:
    """Rows that no commit accounts for, and commits of which rows are missing or too many.

    States are only looked at for the former: newer ones replace them, and nothing is kept of that.
    """
    ledger = audited.ledger
    id, reach = ledger.partition.partition_id, _to_the_ends(span, ledger)
    counts = store.count_rows(id, reach)
    faults = [_unaccounted(id, span, one) for one in counts if one.unaccounted]
    faults += [_of_commit(id, one) for one in store.find_row_faults(id, reach, MOST_FAULTS)]
    return RowRecount(span, sum(one.rows for one in counts), tuple(faults))


def _to_the_ends(span: Span, ledger: PartitionLedger) -> Span:
    """Rows before the first number and behind the checkpoint are of no commit either."""
    first = SequenceNumber(0) if span.first == ledger.first else span.first
    return Span(first, END if span.last == ledger.checkpoint else span.last)


def _unaccounted(id: PartitionId, span: Span, one: RowCount) -> LedgerFault:
    text = f"{one.unaccounted} of {one.rows} rows in {one.table} are of no commit that reaches their number"
    return LedgerFault(id, "rows", span.first, span.last, text)


def _of_commit(id: PartitionId, one: CommitRows) -> LedgerFault:
    kind: FaultKind = "rows_missing" if one.rows < one.appended else "rows_added"
    text = f"commit {one.commit_number} ({one.kind}) appended {one.appended} rows, and there are {one.rows} of it"
    return LedgerFault(id, kind, one.first, one.last, text)


def recount_hub(
    audited: AuditedPartition, span: Span, hub: HubReader, store: RecountStore, deadline: datetime
) -> HubRecount:
    """Read a range from the hub. Raises HubUnreachable or HubRefused.

    Told are numbers called absent that the hub has after all, and a checkpoint that the hub never reached.
    """
    ledger = audited.ledger
    id, extent = ledger.partition.partition_id, hub.extent(ledger.partition)
    lag = max(0, extent.last - ledger.checkpoint)
    faults = list(_beyond(id, ledger, extent))
    held = span.overlap(Span(extent.beginning, extent.last))
    if held is None:
        return HubRecount(extent, None, 0, 0, (), lag, tuple(faults))
    numbers = [event.sequence_number for event in hub.read_range(ledger.partition, *held.ends, deadline)]
    held = held.overlap(Span(hub.extent(ledger.partition).beginning, extent.last)) or held  # it cuts as we read
    numbers = [number for number in numbers if number >= held.first]
    absent = [one for each in store.find_absent(id, held, MOST_ABSENT) if (one := each.overlap(held))]
    faults += _found_after_all(id, numbers, absent)
    not_held = tuple(hole for hole in held.holes(numbers) if not any(each.holds(hole) for each in absent))
    lost = sum(one.length for one in absent)
    return HubRecount(extent, held, len(numbers), lost, not_held[:MOST_HOLES], lag, tuple(faults))


def _beyond(id: PartitionId, ledger: PartitionLedger, extent: Extent) -> Iterator[LedgerFault]:
    if ledger.checkpoint > extent.last:
        text = f"the hub ends at {extent.last}, before the checkpoint at {ledger.checkpoint}: another hub than we knew"
        yield LedgerFault(id, "hub", SequenceNumber(extent.last + 1), ledger.checkpoint, text)


def _found_after_all(id: PartitionId, numbers: list[SequenceNumber], absent: list[Span]) -> Iterator[LedgerFault]:
    for gap in absent:
        found = [number for number in numbers if gap.first <= number <= gap.last]
        if found:
            text = f"{len(found)} numbers are called absent, and the hub has them: the first is {found[0]}"
            yield LedgerFault(id, "hub", found[0], found[-1], text)

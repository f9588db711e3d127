"""The audit: whether the ledger's ranges tile the log without hole or overlap, and their counts match the letters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from core.ledger.status import PartitionLedger
from core.model.events import PartitionId
from core.model.spans import SequenceNumber

MOST_FAULTS = 100  # of one kind and partition: with more, the first ones tell where to look

FaultKind = Literal[
    "hole",
    "overlap",
    "short",
    "beyond",
    "counts",
    "commits",
    "letters",
    "letters_outside",
    "replay_letters",
    "remembered_sum",
    "rows",
    "rows_missing",
    "rows_added",
    "hub",
]


@dataclass(frozen=True, slots=True)
class RangeFault:
    """A range that does not begin where the one before it ended."""

    commit_number: int
    previous_last: SequenceNumber
    first: SequenceNumber


@dataclass(frozen=True, slots=True)
class LetterFault:
    """A range that has another number of letters than it says."""

    commit_number: int
    first: SequenceNumber
    last: SequenceNumber
    dead_lettered: int
    letters: int


@dataclass(frozen=True, slots=True)
class RememberedSum:
    """What the store remembers of a partition: so many ranges up to a commit, and the events of them."""

    commit_number: int
    commits: int
    accounted: int


@dataclass(frozen=True, slots=True)
class LedgerFault:
    """One thing that is wrong, with the numbers that it is about."""

    partition_id: PartitionId
    kind: FaultKind
    first: SequenceNumber
    last: SequenceNumber
    detail: str


@dataclass(frozen=True, slots=True)
class AuditedPartition:
    """One partition's ledger, summed from its first range, and what is wrong with it."""

    ledger: PartitionLedger
    faults: tuple[LedgerFault, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit of a stream, or of one partition of it."""

    partitions: tuple[AuditedPartition, ...]
    audited_at: datetime

    @property
    def faults(self) -> tuple[LedgerFault, ...]:
        """All that is wrong."""
        return tuple(fault for one in self.partitions for fault in one.faults)

    @property
    def balanced(self) -> bool:
        """Nothing is wrong."""
        return not self.faults


class AuditStore(Protocol):
    """What a store tells an audit of its stream. These statements read all ranges: seconds for millions of them."""

    def audit_ledgers(self, partition_id: PartitionId | None) -> tuple[PartitionLedger, ...]:
        """The ledgers of all partitions or one, summed from the first range, not from what is remembered."""
        ...

    def find_anchor(self, partition_id: PartitionId) -> SequenceNumber | None:
        """The first number of a partition that counts; None in a store that is older than anchors."""
        ...

    def find_range_faults(self, partition_id: PartitionId, most: int) -> tuple[RangeFault, ...]:
        """The first ranges that do not begin where the one before ended."""
        ...

    def find_letter_faults(self, partition_id: PartitionId, at_least: int, most: int) -> tuple[LetterFault, ...]:
        """The first ranges with another number of letters than they say, of those that say `at_least` or more."""
        ...

    def find_missing_commits(self, partition_id: PartitionId, most: int) -> tuple[tuple[int, int], ...]:
        """The first ranges of commit numbers, up to the partition's last, that the ledger has no row of."""
        ...

    def count_replay_letters(self, partition_id: PartitionId) -> tuple[int, int]:
        """How many letters replays made of events that ranges count otherwise, and how many of these there are."""
        ...

    def find_stale_sum(self, partition_id: PartitionId) -> RememberedSum | None:
        """What is remembered of a partition, if its ranges up to that commit have another sum."""
        ...


def audit(store: AuditStore, partition_id: PartitionId | None, now: datetime) -> Audit:
    """READ the ledgers, and of those that are not even where it shows; DECIDE what is wrong."""
    ledgers = store.audit_ledgers(partition_id)
    return Audit(tuple(AuditedPartition(one, tuple(_faults(store, one))) for one in ledgers), now)


def _faults(store: AuditStore, ledger: PartitionLedger) -> Iterator[LedgerFault]:
    id = ledger.partition.partition_id
    if ledger.holes:
        yield from (_range_fault(id, found) for found in store.find_range_faults(id, MOST_FAULTS))
    yield from _fault_of_beginning(id, ledger, store.find_anchor(id))
    yield from _fault_of_ends(id, ledger)
    yield from _missing_commits(store, ledger)
    yield from _letter_faults(store, ledger)
    yield from _replay_letters(store, ledger)
    stale = store.find_stale_sum(id)
    if stale is not None:
        text = f"up to commit {stale.commit_number} the store remembers {stale.accounted} numbers in {stale.commits}"
        yield LedgerFault(id, "remembered_sum", ledger.first, ledger.last, f"{text} ranges, and the ranges differ")


def _range_fault(id: PartitionId, found: RangeFault) -> LedgerFault:
    where = f"commit {found.commit_number} begins at {found.first}, behind {found.previous_last}"
    if found.first > found.previous_last:
        return LedgerFault(id, "hole", _next(found.previous_last), _before(found.first), where)
    return LedgerFault(id, "overlap", found.first, found.previous_last, where)


def _fault_of_beginning(
    id: PartitionId, ledger: PartitionLedger, anchor: SequenceNumber | None
) -> Iterator[LedgerFault]:
    where = f"the ledger begins at {ledger.first}, and the partition is anchored at {anchor}"
    if anchor is not None and ledger.first > anchor:
        yield LedgerFault(id, "hole", anchor, _before(ledger.first), where)
    if anchor is not None and ledger.first < anchor:
        yield LedgerFault(id, "beyond", ledger.first, _before(anchor), where)


def _fault_of_ends(id: PartitionId, ledger: PartitionLedger) -> Iterator[LedgerFault]:
    if ledger.last < ledger.checkpoint:
        text = f"the ledger ends at {ledger.last}, the checkpoint is at {ledger.checkpoint}"
        yield LedgerFault(id, "short", _next(ledger.last), ledger.checkpoint, text)
    if ledger.last > ledger.checkpoint:
        text = f"the ledger ends at {ledger.last}, beyond the checkpoint at {ledger.checkpoint}"
        yield LedgerFault(id, "beyond", _next(ledger.checkpoint), ledger.last, text)
    if not ledger.holes and ledger.accounted != ledger.last - ledger.first + 1:
        text = f"{ledger.accounted} outcomes for {ledger.last - ledger.first + 1} numbers"
        yield LedgerFault(id, "counts", ledger.first, ledger.last, text)


def _letter_faults(store: AuditStore, ledger: PartitionLedger) -> Iterator[LedgerFault]:
    id = ledger.partition.partition_id
    found: Sequence[LetterFault] = store.find_letter_faults(id, 1, MOST_FAULTS)
    if not found and ledger.letters != ledger.dead_lettered:
        found = store.find_letter_faults(id, 0, MOST_FAULTS)
        if not found:
            text = f"{ledger.letters} letters for {ledger.dead_lettered}: some are of numbers that no range has"
            yield LedgerFault(id, "letters_outside", ledger.first, ledger.last, text)
    for one in found:
        text = f"commit {one.commit_number} dead-lettered {one.dead_lettered}, and there are {one.letters} letters"
        yield LedgerFault(id, "letters", one.first, one.last, text)


def _missing_commits(store: AuditStore, ledger: PartitionLedger) -> Iterator[LedgerFault]:
    """A range that is missing is a hole besides; of a retry or a replay only its number is."""
    id = ledger.partition.partition_id
    for first, last in store.find_missing_commits(id, MOST_FAULTS):
        named = f"commit {first}" if first == last else f"commits {first} to {last}"
        yield LedgerFault(id, "commits", ledger.first, ledger.checkpoint, f"the ledger has no row of {named}")


def _replay_letters(store: AuditStore, ledger: PartitionLedger) -> Iterator[LedgerFault]:
    id = ledger.partition.partition_id
    made, there = store.count_replay_letters(id)
    if made != there:
        text = f"replays made {made} letters of events that were none, and there are {there} of them"
        yield LedgerFault(id, "replay_letters", ledger.first, ledger.last, text)


def _next(number: SequenceNumber) -> SequenceNumber:
    return SequenceNumber(number + 1)


def _before(number: SequenceNumber) -> SequenceNumber:
    return SequenceNumber(number - 1)

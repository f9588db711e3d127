"""The sum of a partition's ranges, piece by piece, from the last commit that an audit verified, and their faults."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from core.ledger.books import Outcomes, PartitionLedger
from core.ledger.faults import FAULT_LIMIT, LedgerFault
from core.ledger.retention.chain import PurgeLink
from core.model.events import Partition, PartitionId
from core.model.spans import SequenceNumber

PIECE = 50_000  # commits that one statement reads
FIRST, NO_NUMBER = SequenceNumber(0), SequenceNumber(-1)


@dataclass(frozen=True, slots=True)
class RangeSum(Outcomes):
    """The sum of the ranges of a partition up to a commit; `rows` counts the rows of its commits that were read."""

    commit_number: int = 0
    first: SequenceNumber = FIRST
    last: SequenceNumber = NO_NUMBER
    commits: int = 0
    written: int = 0
    filtered: int = 0
    dead_lettered: int = 0
    held: int = 0
    absent: int = 0
    holes: int = 0
    rows: int = 0

    def plus(self, piece: "RangeSum") -> "RangeSum":
        """Return this sum and that of the commits after it."""
        added = {name: getattr(self, name) + getattr(piece, name) for name in (*COUNTS, "holes", "rows")}
        first = self.first if self.commits else piece.first
        return RangeSum(piece.commit_number, first, max(self.last, piece.last), **added)

    def equals(self, other: "RangeSum") -> bool:
        """Return True when both sums are of as many ranges from the same number on, with the same outcomes."""
        return all(getattr(self, name) == getattr(other, name) for name in ("first", *COUNTS))


def purged_sum(link: PurgeLink | None) -> RangeSum:
    """Return the sum of the ranges that were purged up to a link."""
    if link is None:
        return NOTHING
    counts = {name: getattr(link, name) for name in COUNTS[1:]}
    return RangeSum(link.commit_number, link.first, link.last, link.batches, **counts, rows=link.commit_number)


COUNTS = ("commits", "written", "filtered", "dead_lettered", "held", "absent")
NOTHING = RangeSum()


@dataclass(frozen=True, slots=True)
class CheckpointTotals:
    """The totals that a checkpoint carries, and those of the commit up to which an audit found no fault. `verified` is
    None where the ledger has no row of that commit."""

    counted: RangeSum
    verified_commit: int
    verified: RangeSum | None


@dataclass(frozen=True, slots=True)
class Commits:
    """The commits after one number and up to a second one. The ranges before them end at `previous_last` (-1: none)."""

    after: int
    last: int
    previous_last: SequenceNumber = NO_NUMBER


@dataclass(frozen=True, slots=True)
class LedgerEnds:
    """The end of a partition, read at one moment: its checkpoint (-1: none), the letters that its batches made, the
    commits that the checkpoint has counted, and the newest commit in the ledger."""

    partition: Partition
    checkpoint: SequenceNumber
    letters: int
    counted_commits: int
    newest_commit: int

    @property
    def last_commit(self) -> int:
        """The last commit that must have a row."""
        return max(self.counted_commits, self.newest_commit)

    def ledger(self, summed: RangeSum) -> PartitionLedger:
        """Return the ledger of the partition, whose ranges have this sum."""
        counts = {name: getattr(summed, name) for name in ("commits", "holes", *COUNTS[1:])}
        return PartitionLedger(
            self.partition, self.checkpoint, summed.first, summed.last, **counts,
            letters=self.letters, counted_commits=self.counted_commits, newest_commit=self.newest_commit,
        )  # fmt: skip


class SumStore(Protocol):
    """Reads the ranges of one stream by partition and commit."""

    def find_piece_end(self, partition_id: PartitionId, after: int, last: int) -> int | None:
        """Return the last commit up to `last` that has a row, else the next one that has; None when there is none."""

    def sum_ranges(self, partition_id: PartitionId, commits: Commits) -> RangeSum:
        """Return the sum of the ranges of some commits."""

    def read_totals(self, partition_id: PartitionId) -> CheckpointTotals | None:
        """Return the totals of a partition; None without a checkpoint."""

    def read_links(self, partition_id: PartitionId, after: int, most: int) -> tuple[PurgeLink, ...]:
        """Return the links of a partition's chain after a number, in order."""

    def read_last_link(self, partition_id: PartitionId) -> PurgeLink | None:
        """Return the last link of a partition; None when nothing of it was purged."""

    def before_first(self, partition_id: PartitionId) -> PurgeLink:
        """Return the link of number 0 of a partition."""

    def sum_absent_gaps(self, partition_id: PartitionId, last: SequenceNumber) -> int:
        """Return the sum of the absent gaps that begin up to a number."""

    def move_verified_commit(self, partition_id: PartitionId, commit_number: int, expected: int) -> None:
        """Store the commit up to which there is no fault, unless a different audit has moved the expected one."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The ranges that an audit reads: those after the verified commit, or all of them (`whole`).

    One statement reads `piece` commits; between two of them the audit ends if its time is over.
    """

    whole: bool
    is_over: Callable[[], bool]
    piece: int = PIECE


WHOLE = Reading(whole=True, is_over=lambda: False)
FindFaults = Callable[[Commits, RangeSum, RangeSum], Iterator[LedgerFault]]


@dataclass(frozen=True, slots=True)
class Pieces:
    """A cut of commits into pieces of up to `most`, each of which ends at the next stop at the latest."""

    most: int = PIECE
    stops: tuple[int, ...] = ()


BY_PIECES = Pieces()


def pieces(
    store: SumStore, id: PartitionId, after: int, last: int, cut: Pieces = BY_PIECES
) -> Iterator[tuple[int, int]]:
    """Yield the commits after one number and up to a second one in pieces.

    A piece ends at a commit that has a row, so missing commits that follow each other are in one piece.
    """
    while after < last:
        end = store.find_piece_end(id, after, after + cut.most) or last
        end = min([end, last, *(stop for stop in cut.stops if stop > after)])
        yield after, end
        after = end


class RangeAudit:
    """The audit of the ranges of one partition; `find_faults` names those of a piece, from the sums before and of it.

    It begins after the ranges that were purged, or at the verified commit. It reads the totals of the checkpoint at
    once, and then the caller reads the end of the ledger: totals of a commit after it are a fault, also while different
    processes add ranges.
    """

    def __init__(self, store: SumStore, id: PartitionId, reading: Reading, find_faults: FindFaults) -> None:
        self._store, self._id, self._reading, self._find_faults = store, id, reading, find_faults
        self._totals = store.read_totals(id)
        self._verified_commit = self._totals.verified_commit if self._totals else 0
        self.link = store.read_last_link(id)
        self._clean = True
        self._by_kind: Counter[str] = Counter()
        self.since = self.summed = purged_sum(self.link)
        self.faults: list[LedgerFault] = []

    def read(self, last: int) -> None:
        """Read the ranges up to a commit, or until the time is over; each piece without a fault is verified."""
        counted = self._totals.counted if self._totals else None
        verified = self._totals.verified if self._totals else None
        if verified and not self._reading.whole and self.since.commit_number <= verified.commit_number <= last:
            self.since = self.summed = verified
        cut = Pieces(self._reading.piece, (counted.commit_number,) if counted else ())
        for after, end in pieces(self._store, self._id, self.since.commit_number, last, cut):
            if counted and counted.commit_number <= after:
                self._compare(counted)
                counted = None
            if self._reading.is_over():
                return
            self._read(Commits(after, end, self.summed.last))
        if counted:
            self._compare(counted)

    def _read(self, commits: Commits) -> None:
        before = self.summed
        piece = self._store.sum_ranges(self._id, commits)
        self.summed = before.plus(piece)
        for fault in self._find_faults(commits, before, piece):
            self._add(fault)
            self._end_clean(before.commit_number)
        if self._clean and self._verified_commit < commits.last:
            self._store.move_verified_commit(self._id, commits.last, self._verified_commit)
            self._verified_commit = commits.last

    def _compare(self, counted: RangeSum) -> None:
        """Compare the totals of the checkpoint with the sum of the same ranges."""
        if not counted.equals(self.summed):
            text = f"the checkpoint counts {counted.accounted} numbers in {counted.commits} ranges up to commit"
            text = f"{text} {counted.commit_number}, but the ranges have a different sum"
            self._add(LedgerFault(self._id, "totals", counted.first, counted.last, text))

    def _end_clean(self, verified: int) -> None:
        """Note the first fault: this audit verifies no commit after it, and the next one begins before it.

        A different audit may have moved the verified commit meanwhile, so it is read again.
        """
        if not self._clean:
            return
        self._clean = False
        while (totals := self._store.read_totals(self._id)) and totals.verified_commit > verified:
            self._store.move_verified_commit(self._id, verified, totals.verified_commit)

    def _add(self, fault: LedgerFault) -> None:
        self._by_kind[fault.kind] += 1
        if self._by_kind[fault.kind] <= FAULT_LIMIT:
            self.faults.append(fault)

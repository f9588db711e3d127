"""The sum of a partition's ranges, piece by piece, from a sum that an audit verified before; and the faults found."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
        """Return True when both sums are of the same ranges and outcomes."""
        return all(getattr(self, name) == getattr(other, name) for name in ("first", "last", *COUNTS))


def purged_sum(link: PurgeLink | None) -> RangeSum:
    """Return the sum of the ranges that were purged up to a link."""
    if link is None:
        return NOTHING
    counts = {name: getattr(link, name) for name in COUNTS[1:]}
    return RangeSum(link.commit_number, link.first, link.last, link.batches, **counts, rows=link.commit_number)


COUNTS = ("commits", "written", "filtered", "dead_lettered", "held", "absent")
NOTHING = RangeSum()


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

    def read_verified_sum(self, partition_id: PartitionId) -> RangeSum | None:
        """Return the sum that an audit verified."""

    def read_links(self, partition_id: PartitionId, after: int, most: int) -> tuple[PurgeLink, ...]:
        """Return the links of a partition's chain after a number, in order."""

    def read_last_link(self, partition_id: PartitionId) -> PurgeLink | None:
        """Return the last link of a partition; None when nothing of it was purged."""

    def before_first(self, partition_id: PartitionId) -> PurgeLink:
        """Return the link of number 0 of a partition."""

    def sum_absent_gaps(self, partition_id: PartitionId, last: SequenceNumber) -> int:
        """Return the sum of the absent gaps that begin up to a number."""

    def read_remembered_sum(self, partition_id: PartitionId) -> RangeSum | None:
        """Return the sum that the books remember."""

    def keep_verified_sum(self, partition_id: PartitionId, verified: RangeSum, expected: RangeSum | None) -> None:
        """Store a verified sum, unless a different audit has replaced the expected one."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The ranges that an audit reads: those after the verified sum, or all of them (`whole`), until its time is over.

    One statement reads `piece` commits; the time is compared between two of them.
    """

    whole: bool
    is_over: Callable[[], bool]
    piece: int = PIECE


WHOLE = Reading(whole=True, is_over=lambda: False)
FindFaults = Callable[[Commits, RangeSum], Iterator[LedgerFault]]


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
    """The audit of the ranges of one partition; `find_faults` names the faults of a piece whose sum shows one.

    It begins after the ranges that were purged. It reads the known sums at once, and then the caller reads the end of
    the ledger: a sum that ends after it is a fault, also while different processes add ranges and sum them.
    """

    def __init__(self, store: SumStore, id: PartitionId, reading: Reading, find_faults: FindFaults) -> None:
        self._store, self._id, self._reading, self._find_faults = store, id, reading, find_faults
        self._verified, self._remembered = store.read_verified_sum(id), store.read_remembered_sum(id)
        self.link = store.read_last_link(id)
        self._known: list[tuple[str, RangeSum]] = []
        self._clean = True
        self._by_kind: Counter[str] = Counter()
        self.since = self.summed = purged_sum(self.link)
        self.faults: list[LedgerFault] = []

    def read(self, last: int) -> None:
        """Read the ranges up to a commit, or until the time is over; store each sum without a fault as verified."""
        self._begin(last)
        cut = Pieces(self._reading.piece, tuple(known.commit_number for _, known in self._known))
        for after, end in pieces(self._store, self._id, self.since.commit_number, last, cut):
            if self._reading.is_over():
                return
            self._read(Commits(after, end, self.summed.last))
        self._compare([*self._known])

    def _begin(self, last: int) -> None:
        """Choose the sum to begin with, and the sums to compare on the way.

        A remembered sum that ends before it is compared at once, unless that reads more than one piece.
        """
        verified, remembered = self._verified, self._remembered
        fits = verified is not None and self.since.commit_number <= verified.commit_number <= last
        if verified is not None and fits and not self._reading.whole:
            self.since = self.summed = verified
        elif verified is not None:
            self._known.append((VERIFIED, verified))
            self._compare([one for one in self._known if one[1].commit_number == self.since.commit_number])
        if remembered is None:
            return
        if remembered.commit_number > self.since.commit_number:
            self._known.append((REMEMBERED, remembered))
        elif self.since.commit_number - remembered.commit_number <= self._reading.piece:
            between = Commits(remembered.commit_number, self.since.commit_number, remembered.last)
            if not remembered.plus(self._store.sum_ranges(self._id, between)).equals(self.since):
                self._add(self._stale(REMEMBERED, remembered))

    def _read(self, commits: Commits) -> None:
        before = self.summed
        piece = self._store.sum_ranges(self._id, commits)
        self.summed = before.plus(piece)
        for fault in self._find_faults(commits, piece):
            self._add(fault)
            self._end_clean(before)
        self._compare([one for one in self._known if one[1].commit_number == commits.last])
        if self._clean and (self._verified is None or self._verified.commit_number < commits.last):
            self._keep(self.summed)

    def _compare(self, known: Sequence[tuple[str, RangeSum]]) -> None:
        """Compare known sums with the sum of the same ranges."""
        for name, one in known:
            self._known.remove((name, one))
            if not one.equals(self.summed):
                self._add(self._stale(name, one))
                self._clean = self._clean and name != VERIFIED

    def _end_clean(self, before: RangeSum) -> None:
        """Note the first fault: this audit verifies no sum after it, and the next one begins before it.

        A different audit may have moved the verified sum meanwhile, so it is read again.
        """
        if not self._clean:
            return
        self._clean = False
        while (verified := self._store.read_verified_sum(self._id)) and verified.commit_number > before.commit_number:
            self._store.keep_verified_sum(self._id, before, verified)

    def _keep(self, verified: RangeSum) -> None:
        self._store.keep_verified_sum(self._id, verified, self._verified)
        self._verified = verified

    def _add(self, fault: LedgerFault) -> None:
        self._by_kind[fault.kind] += 1
        if self._by_kind[fault.kind] <= FAULT_LIMIT:
            self.faults.append(fault)

    def _stale(self, name: str, known: RangeSum) -> LedgerFault:
        text = f"{name} {known.accounted} numbers in {known.commits} ranges up to commit {known.commit_number}, but the"
        text = f"{text} ranges have a different sum"
        return LedgerFault(self._id, "remembered_sum", known.first, known.last, text)


REMEMBERED, VERIFIED = "the store remembers", "an audit verified"

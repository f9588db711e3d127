"""The walk of an audit over the ranges of a partition, piece by piece."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.ledger.faults import FAULT_LIMIT, LedgerFault
from core.ledger.store.audit import AuditStore
from core.ledger.sums import NOTHING, Commits, RangeSum
from core.model.events import PartitionId

PIECE = 50_000  # commits that one statement reads


@dataclass(frozen=True, slots=True)
class Reading:
    """The limits of an audit: one statement reads `piece` commits, and between two pieces the audit ends if its time
    is over."""

    is_over: Callable[[], bool] = lambda: False
    piece: int = PIECE


WHOLE = Reading()
FindFaults = Callable[[Commits, RangeSum, RangeSum], Iterator[LedgerFault]]


@dataclass(frozen=True, slots=True)
class Pieces:
    """A cut of commits into pieces of up to `most`, each of which ends at the next stop at the latest."""

    most: int = PIECE
    stops: tuple[int, ...] = ()


BY_PIECES = Pieces()


def pieces(
    store: AuditStore, id: PartitionId, after: int, last: int, cut: Pieces = BY_PIECES
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
    """The audit of the ranges of one partition.

    It begins after the ranges that were purged. `find_faults` names the faults of a piece. It gets the sum before the
    piece, and the sum of the piece. The totals of the checkpoint are read before the caller reads the end of the
    ledger. So totals of a commit after that end are a fault, even while others add ranges.
    """

    def __init__(self, store: AuditStore, id: PartitionId, reading: Reading, find_faults: FindFaults) -> None:
        self._store, self._id, self._reading, self._find_faults = store, id, reading, find_faults
        self._totals = store.read_totals(id)
        self._by_kind: Counter[str] = Counter()
        self.purged = self._totals.purged if self._totals else NOTHING
        self.summed = self.purged
        self.faults: list[LedgerFault] = []

    def read(self, last: int) -> None:
        """Read the ranges up to a commit, or until the time is over."""
        counted = self._totals.counted if self._totals else None
        cut = Pieces(self._reading.piece, (counted.commit_number,) if counted else ())
        for after, end in pieces(self._store, self._id, self.purged.commit_number, last, cut):
            if counted and counted.commit_number <= after:
                self._compare(counted)
                counted = None
            if self._reading.is_over():
                return
            commits, before = Commits(after, end, self.summed.last), self.summed
            piece = self._store.sum_ranges(self._id, commits)
            self.summed = before.plus(piece)
            for fault in self._find_faults(commits, before, piece):
                self._add(fault)
        if counted:
            self._compare(counted)

    def _compare(self, counted: RangeSum) -> None:
        """Compare the totals of the checkpoint with the sum of the same ranges."""
        if not counted.equals(self.summed):
            text = f"the checkpoint counts {counted.accounted} numbers in {counted.commits} ranges up to commit"
            text = f"{text} {counted.commit_number}, but the ranges have a different sum"
            self._add(LedgerFault(self._id, "totals", counted.first, counted.last, text))

    def _add(self, fault: LedgerFault) -> None:
        self._by_kind[fault.kind] += 1
        if self._by_kind[fault.kind] <= FAULT_LIMIT:
            self.faults.append(fault)

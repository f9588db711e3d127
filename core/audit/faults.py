"""The faults that an audit names, and the sums that it compares."""

from dataclasses import dataclass, fields
from typing import Literal

from core.ledger.totals import Outcomes
from core.model.commits import LetterStatus
from core.model.events import Partition, PartitionId, SequenceNumber

FAULT_LIMIT = 100  # the most faults of one kind and partition in a report: the first ones show where to look
NO_PARTITION = PartitionId("")  # of a fault of the whole stream

FaultKind = Literal[
    "stream", "partition", "checkpoint", "anchor", "hole", "overlap", "short", "beyond", "counts", "commits", "absent",
    "held", "letters", "letters_outside", "replay_letters", "attempts", "replays", "totals", "rows", "rows_missing",
    "rows_added", "purged",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class LedgerFault:
    """One fault of a ledger, with the numbers that it concerns."""

    partition_id: PartitionId
    kind: FaultKind
    first: SequenceNumber
    last: SequenceNumber
    detail: str


@dataclass(frozen=True, slots=True)
class RowCount:
    """The rows of one table in a range. `unaccounted` counts the rows that no commit covering their number wrote."""

    table: str
    rows: int
    unaccounted: int


@dataclass(frozen=True, slots=True)
class CommitRows:
    """A commit that appended more or fewer rows than the tables hold. `rows` counts retracted rows too."""

    commit_number: int
    kind: str
    first: SequenceNumber
    last: SequenceNumber
    appended: int
    rows: int


@dataclass(frozen=True, slots=True)
class LetteredRow:
    """A letter that is not resolved, although a table has rows of its number."""

    sequence_number: SequenceNumber
    status: LetterStatus
    table: str


FIRST, NO_NUMBER = SequenceNumber(0), SequenceNumber(-1)


@dataclass(frozen=True, slots=True)
class RangeSum(Outcomes):
    """The sum of the ranges of a partition up to a commit. `rows` counts the ledger rows that were read."""

    commit_number: int = 0
    first: SequenceNumber = FIRST
    last: SequenceNumber = NO_NUMBER
    commits: int = 0
    holes: int = 0
    rows: int = 0

    def plus(self, piece: "RangeSum") -> "RangeSum":
        """Return the sum of these commits and of the commits after them."""
        added = {name: getattr(self, name) + getattr(piece, name) for name in (*COUNTS, "holes", "rows")}
        first = self.first if self.commits else piece.first
        return RangeSum(**added, commit_number=piece.commit_number, first=first, last=max(self.last, piece.last))

    def equals(self, other: "RangeSum") -> bool:
        """Return True when both sums are of as many ranges from the same number on, with the same outcomes."""
        return all(getattr(self, name) == getattr(other, name) for name in ("first", *COUNTS))


COUNTS = ("commits", *(one.name for one in fields(Outcomes)))
NOTHING = RangeSum(0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLedger(RangeSum):
    """The ledger of a partition, summed from its first range, and its end at one moment: the checkpoint (-1: none), the
    letters that its batches made, the commits that the checkpoint has counted, and the newest commit in the ledger."""

    partition: Partition
    checkpoint: SequenceNumber
    letters: int
    counted_commits: int = 0
    newest_commit: int = 0

    @property
    def balanced(self) -> bool:
        """True when each number up to the checkpoint has one outcome, and each dead-lettered or held one its letter."""
        whole = self.holes == 0 and self.last == self.checkpoint
        return whole and self.accounted == self.last - self.first + 1 and self.letters == self.lettered


@dataclass(frozen=True, slots=True)
class CheckpointTotals:
    """The totals that a checkpoint carries, and those before the first commit that is not purged."""

    counted: RangeSum | None = None
    purged: RangeSum = NOTHING


NO_TOTALS = CheckpointTotals()


@dataclass(frozen=True, slots=True)
class Commits:
    """The commits after one number and up to a second one. The ranges before them end at `previous_last` (-1: none)."""

    after: int
    last: int
    previous_last: SequenceNumber = NO_NUMBER

    @property
    def ends(self) -> dict[str, int]:
        """The parameters that statements about these commits take."""
        return {"after_commit": self.after, "last_commit": self.last}


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
        fields = {name: getattr(one, name) for one in (summed, self) for name in one.__dataclass_fields__}
        return PartitionLedger(**fields)

"""The faults that an audit names, and what the store finds of them."""

from dataclasses import dataclass
from typing import Literal

from core.model.commits import LetterStatus
from core.model.events import PartitionId
from core.model.spans import SequenceNumber

FAULT_LIMIT = 100  # the most faults of one kind and partition in a report: the first ones show where to look
NO_PARTITION = PartitionId("")  # of a fault of the whole stream

FaultKind = Literal[
    "stream",
    "partition",
    "checkpoint",
    "anchor",
    "hole",
    "overlap",
    "short",
    "beyond",
    "counts",
    "commits",
    "absent",
    "held",
    "letters",
    "letters_outside",
    "replay_letters",
    "attempts",
    "replays",
    "totals",
    "rows",
    "rows_missing",
    "rows_added",
    "purged",
]


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
    """A commit that appended more or fewer rows than the tables hold; rows that replays retracted are counted too."""

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

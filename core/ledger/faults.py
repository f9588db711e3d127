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
    "rows_changed",
    "ledger_changed",
    "letter_changed",
    "purge_stub",
    "hub",
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
class RangeFault:
    """A range that does not begin where the range before it ended."""

    commit_number: int
    previous_last: SequenceNumber
    first: SequenceNumber


@dataclass(frozen=True, slots=True)
class LetterFault:
    """A range that counts a different number of letters than it has; held events count as dead-lettered."""

    commit_number: int
    first: SequenceNumber
    last: SequenceNumber
    dead_lettered: int
    letters: int


@dataclass(frozen=True, slots=True)
class TotalFault:
    """A commit whose totals are not those of the commit before it and its own counts."""

    commit_number: int
    first: SequenceNumber
    last: SequenceNumber


@dataclass(frozen=True, slots=True)
class AbsentFault:
    """A range that counts a different number of absent numbers than the gaps that begin in it."""

    commit_number: int
    first: SequenceNumber
    last: SequenceNumber
    absent: int
    in_gaps: int


@dataclass(frozen=True, slots=True)
class AttemptFault:
    """A letter whose attempts do not lead to its status; `newest_status` is that of the last attempt, if any."""

    sequence_number: SequenceNumber
    status: LetterStatus
    attempts: int
    newest: int
    newest_status: LetterStatus | None


@dataclass(frozen=True, slots=True)
class RetryFault:
    """A retry whose counts of letters differ from those of the attempts that name it."""

    commit_number: int
    first: SequenceNumber
    last: SequenceNumber
    tried: int
    succeeded: int
    attempts: int
    resolved: int


@dataclass(frozen=True, slots=True)
class ReplayFault:
    """A replay whose progress in a partition differs from its commits or from its retracted rows."""

    job_id: str
    first: SequenceNumber
    last: SequenceNumber
    written: int
    written_of_commits: int
    rows_written: int
    rows_of_commits: int
    rows_retracted: int
    retracted_rows: int


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
class ChangedCommit:
    """A commit whose rows, or else whose row in the ledger, do not fit the checksum."""

    commit_number: int
    kind: str
    first: SequenceNumber
    last: SequenceNumber
    rows: bool


@dataclass(frozen=True, slots=True)
class LetteredRow:
    """A letter that is not resolved, although a table has rows of its number."""

    sequence_number: SequenceNumber
    status: LetterStatus
    table: str

"""The faults that an audit names."""

from dataclasses import dataclass
from typing import Literal

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
    "purge_link",
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

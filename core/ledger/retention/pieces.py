"""The pieces of a purge: its limits in a partition, and the rows that one transaction deletes."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from core.ledger.retention.purge import PurgeTarget
from core.ledger.whereabouts import LedgerRange, Purged
from core.model.events import PartitionId
from core.model.spans import SequenceNumber


@dataclass(frozen=True, slots=True)
class SettledLetter:
    """A settled letter without its event: the time of its end, the replay that made it, and what goes with it."""

    sequence_number: SequenceNumber
    settled_at: datetime
    replay_commit_number: int | None
    attempts: int
    body_bytes: int


@dataclass(frozen=True, slots=True)
class PurgeReach:
    """The limits of a purge of one partition's ledger.

    How far it is purged, the commit of its newest batch, the commit at which the oldest open replay begins, the time of
    its request, and whether an audit is open.
    """

    purged: Purged
    newest_batch: int
    replay_from: int | None
    replay_at: datetime | None
    audit_is_open: bool


@dataclass(frozen=True, slots=True)
class LedgerPiece:
    """The next ledger rows of a partition, and the last number of all purged batches after them. `retracted` counts
    the rows that each replay commit among them retracted."""

    partition_id: PartitionId
    rows: tuple[LedgerRange, ...]
    last: SequenceNumber
    retracted: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class LetterPiece:
    """Settled letters of a partition."""

    partition_id: PartitionId
    letters: tuple[SettledLetter, ...]


@dataclass(frozen=True, slots=True)
class RowPiece:
    """The next old rows of a table that no total counts: their number, at most `most`. `part_of` is the job whose parts
    they are; after the last piece the table has no old row."""

    target: PurgeTarget
    before: datetime
    most: int
    part_of: str | None = None
    rows: int = 0
    is_last: bool = True

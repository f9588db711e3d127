"""The port of purges: their jobs, and what they read and delete, piece by piece."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from core.errors import StoreFault
from core.ledger.retention.chain import LedgerRow, PurgeLink, SettledLetter
from core.ledger.retention.purge import Found, PurgeJob, PurgeRequest, Task
from core.model.events import PartitionId


class PurgeConflict(StoreFault):
    """The compare-and-set of a purge touched no row."""

    def __init__(self, purge_id: UUID) -> None:
        super().__init__(
            f"purge {purge_id} has progressed in another worker or was cancelled, an audit was opened, or a row has"
            " changed; nothing was deleted"
        )
        self.purge_id = purge_id


@dataclass(frozen=True, slots=True)
class PurgeReach:
    """What decides how far a partition's ledger may be purged.

    Its last link (number 0: none), the commit of its newest batch, the commit up to which an audit has verified the
    ledger, the commit at which the oldest open replay begins, the time of its request, and whether an audit is open.
    """

    link: PurgeLink
    newest_batch: int
    verified_to: int
    replay_from: int | None
    replay_at: datetime | None
    audit_is_open: bool


@dataclass(frozen=True, slots=True)
class LedgerPiece:
    """The next ledger rows of a partition, and the link that says so. `retracted` counts the rows that each replay
    commit among them retracted."""

    partition_id: PartitionId
    rows: tuple[LedgerRow, ...]
    link: PurgeLink
    retracted: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class LetterPiece:
    """Settled letters of a partition, and the link that says so."""

    partition_id: PartitionId
    letters: tuple[SettledLetter, ...]
    link: PurgeLink


@dataclass(frozen=True, slots=True)
class RowPiece:
    """The next old rows of a table without a chain: their number, at most `most`. `part_of` is the job whose parts they
    are; after the last piece the table has no old row."""

    task: Task
    before: datetime
    most: int
    part_of: str | None = None
    rows: int = 0
    is_last: bool = True


class PurgeJobStore(Protocol):
    """Stores the purges of one stream."""

    def open_purge(self, request: PurgeRequest) -> bool:
        """Store a job; return False, with nothing stored, while another one is open, or the stream is unknown."""

    def find_open_purge(self) -> UUID | None:
        """Return the job that is open, or None."""

    def find_purge(self, purge_id: UUID) -> PurgeJob | None:
        """Return a job, or None."""

    def read_purges(self, most: int, before: tuple[datetime, UUID] | None) -> tuple[PurgeJob, ...]:
        """Return jobs, the newest first, after one of them."""

    def find_last_purge(self) -> datetime | None:
        """Return the time of the last request that was no dry run."""

    def claim_purge(self, now: datetime, until: datetime) -> PurgeJob | None:
        """Claim the open job until a time; None when there is none, or another process has claimed it."""

    def record_purge(self, job: PurgeJob, now: datetime, until: datetime) -> bool:
        """Store the next step of a claimed job, claimed until a time; False when the job has moved on without it."""

    def cancel_purge(self, purge_id: UUID, why: str, now: datetime) -> bool:
        """Cancel an open job; False when it is over. What was purged stays purged."""


class PurgeStore(PurgeJobStore, Protocol):
    """Reads and purges the tables of one stream.

    A piece is one transaction, with the next step of its job. It raises PurgeConflict when the job, the chain or the
    rows have moved on without it, and then nothing was deleted.
    """

    def read_purge_partitions(self) -> tuple[PartitionId, ...]:
        """Return the partitions that have a checkpoint."""

    def read_reach(self, partition_id: PartitionId) -> PurgeReach:
        """Return what decides how far a partition may be purged."""

    def read_cuts(self, partition_id: PartitionId) -> Mapping[str, int]:
        """Return the commit that each aggregation job has passed in a partition."""

    def read_ledger_rows(self, partition_id: PartitionId, after: int, most: int) -> tuple[LedgerRow, ...]:
        """Return the next ledger rows after a commit, in order."""

    def find_changed(self, rows: Sequence[LedgerRow]) -> tuple[int, ...]:
        """Return the commits of those rows that no longer have their checksum."""

    def count_retracted(self, partition_id: PartitionId, after: int, last: int) -> Mapping[int, int]:
        """Count the rows that each replay commit in a range retracted."""

    def read_settled_letters(
        self, partition_id: PartitionId, link: PurgeLink, before: datetime, most: int
    ) -> tuple[SettledLetter, ...]:
        """Return the first letters that were settled before a time, of numbers and commits that a link covers."""

    def purge_ledger(self, piece: LedgerPiece, job: PurgeJob, now: datetime, until: datetime) -> None:
        """Delete ledger rows, add the link, and take them out of the counts of their replays."""

    def purge_letters(self, piece: LetterPiece, job: PurgeJob, now: datetime, until: datetime) -> None:
        """Delete letters with their attempts, and add the link."""

    def find_rows(self, task: Task, before: datetime, most: int) -> RowPiece:
        """Return the next piece of a table that has no chain."""

    def purge_rows(self, piece: RowPiece, job: PurgeJob, now: datetime, until: datetime) -> None:
        """Delete the rows of a piece, and note when staged events were first seen."""

    def count_rows(self, task: Task, before: datetime) -> Found:
        """Count the old rows of a table that has no chain."""

    def count_ledger(
        self, partition_id: PartitionId, after: int, last: int, before: datetime
    ) -> tuple[Found, PurgeLink]:
        """Count the old ledger rows of a range of commits, and return the link that a purge of them would reach, with
        its commit and its last number."""

    def count_letters(self, partition_id: PartitionId, link: PurgeLink, before: datetime) -> Found:
        """Count the letters that `read_settled_letters` would return."""

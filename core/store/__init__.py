"""The store: the only door to SQL. One method is one transaction and one verb of the business."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from core.ledger.status import PartitionLedger
from core.model.commits import BatchCommit, PartitionState
from core.model.events import Event, Gap, Partition, PartitionId, SequenceNumber
from core.model.letters import (
    ClaimedLetter,
    ClaimedPosition,
    FoundLetter,
    LetterClaim,
    LetterHold,
    LetterMove,
    RetryCommit,
)
from core.model.rows import ReferenceKey, Row
from core.ownership import Ownership, OwnershipClaim

if TYPE_CHECKING:  # their values are not needed to index the functions
    from core.replay.job import JobMove, PartitionProgress, Replayable, ReplayJob, ReplayRequest, Span
    from core.replay.pieces import CarriedState, EventDiff, Rehearsal, RehearsedPiece, ReplayCommit
    from core.replay.plan import StandingState


class Store(Protocol):
    """What every engine keeps; `tests/contract` holds them to it. All methods may be called from several threads.

    Any method may raise StoreUnavailable, and nothing was written then.
    """

    def read_partition(self, partition: Partition) -> PartitionState:
        """The partition's stream and checkpoint; a stream that is not known yet is opened."""
        ...

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        """The `state_of` rows that stand for these keys; keys without a row are left out."""
        ...

    def commit_batch(self, commit: BatchCommit) -> int:
        """Write checkpoint, rows, letters, ledger and gaps in one transaction; return the commit number.

        Raises CheckpointConflict (the checkpoint is not where the commit expects it) and DataRefused, both with
        nothing written, and CommitOutcomeUnknown when the answer was lost.
        """
        ...

    def anchor_partition(self, state: PartitionState, anchor: SequenceNumber, at: datetime) -> PartitionState:
        """Let a partition without a commit begin at a number, unless it has a beginning; the state that stands then."""
        ...

    def note_gap(self, state: PartitionState, gap: Gap, found_at: datetime) -> None:
        """Keep that a gap was found and is being healed; once more for each further try.

        Raises CheckpointConflict when the checkpoint is not where the state has it: then it may be no gap at all.
        """
        ...

    def close_gaps(self, partition: Partition) -> None:
        """Note as healed what is open although it lies behind the checkpoint: the hub handed it over after all."""
        ...

    def read_ledgers(self) -> tuple[PartitionLedger, ...]:
        """The books of every partition of every stream, by stream and partition."""
        ...

    def close(self) -> None:
        """Let go of every connection."""
        ...


class NamedQueries(Protocol):
    """What an engine answers by name; both have the same names, parameters and columns. Instants are texts."""

    def ask(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run a named statement that reads."""
        ...

    def tell(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run a named statement that writes, in a transaction of its own."""
        ...

    def count_rows(self, row_class: type, **place: Any) -> tuple[int, int]:
        """The rows of a class in a range of a partition, and how many of them no commit of the ledger accounts for."""
        ...

    def find_row_faults(self, row_classes: tuple[type, ...], **place: Any) -> list[tuple[Any, ...]]:
        """Commits in a range that appended another number of rows of these classes than there are of them."""
        ...

    def rows_at(self, row_class: type, stream_id: int, partition_id: str, number: int) -> list[tuple[Any, ...]]:
        """Ordinal (None for a state), commit number and columns of the rows that carry a number."""
        ...


class OwnershipStore(Protocol):
    """What an engine keeps for consumers that share partitions outside the Functions host."""

    def read_ownerships(self, stream: Partition) -> tuple[Ownership, ...]:
        """Every ownership of the stream that this partition belongs to."""
        ...

    def claim_ownership(self, claim: OwnershipClaim) -> bool:
        """Make an ownership if the expected etag still stands; False, and nothing changed, if not."""
        ...

    def read_checkpoints(self, stream: Partition) -> Mapping[PartitionId, tuple[SequenceNumber, str]]:
        """Sequence number and offset of every partition's checkpoint in the stream."""
        ...


class LetterStore(Protocol):
    """What an engine keeps of letters once a batch's commit has written them. `MOVES` tells what may become what."""

    def claim_letters(self, claim: LetterClaim) -> tuple[ClaimedPosition, ...]:
        """Claim letters that wait and are due, and those whose lease has ended; no letter is ever held twice.

        A letter of an ended lease counts one more lost claim, once its lone try had begun or if it never lost one. When
        the answer is lost (StoreUnavailable), letters may stay claimed until the lease ends.
        """
        ...

    def read_claimed(self, hold: LetterHold) -> tuple[ClaimedLetter, ...]:
        """Of these letters those that the claim still holds, whole, rising by sequence number."""
        ...

    def begin_lone_try(self, hold: LetterHold, began_at: datetime, until: datetime) -> None:
        """Note that these letters are about to be tried, each alone, and hold them on; others' are let alone."""
        ...

    def commit_retry(self, commit: RetryCommit) -> int:
        """Write rows, outcomes, attempts and a ledger row in one transaction; return its commit number.

        The partition's checkpoint row is locked and its commit number raised, and it stays where it is. Raises
        LetterConflict (not all letters are held by the claim) and DataRefused (also for rows that stand, written by
        whoever took the letter), both with nothing written, and CommitOutcomeUnknown when the answer was lost.
        """
        ...

    def find_letters(self, hold: LetterHold) -> tuple[FoundLetter, ...]:
        """These letters as they stand, whoever holds them; those that do not exist are left out."""
        ...

    def move_letters(self, move: LetterMove) -> tuple[FoundLetter, ...]:
        """Move those of these letters whose state allows it, with an attempt each, and return all as they stand then.

        The moved ones were touched by the move's id. A release leaves no attempt. CommitOutcomeUnknown: send it again.
        """
        ...

    def next_due_at(self, stream: Partition) -> datetime | None:
        """When the first letter of the stream is due, or its lease ends; None when none waits or is retried."""
        ...


class ReplayStore(Protocol):
    """What an engine keeps of replays. Where it changes a job, another status or progress than expected conflicts."""

    def read_partition(self, partition: Partition) -> PartitionState:
        """See Store."""
        ...

    def read_replayable(self, stream: Partition) -> tuple[Replayable, ...]:
        """How far each partition of the stream can be replayed; those without a commit are left out."""
        ...

    def open_replay(self, request: ReplayRequest) -> None:
        """Keep a new job, planned. Raises ReplayOverlap, and keeps nothing, where an open job holds part of its range;
        dry runs hold none. CommitOutcomeUnknown when the answer was lost."""
        ...

    def find_replay(self, job_id: UUID) -> ReplayJob | None:
        """A job as it stands."""
        ...

    def read_replays(self, stream: Partition, most: int, before: tuple[datetime, UUID] | None) -> tuple[ReplayJob, ...]:
        """Jobs of a stream, the newest first, behind the one that was requested at that time under that id."""
        ...

    def read_open_replays(self, stream: Partition) -> tuple[UUID, ...]:
        """The jobs of a stream that are planned or running."""
        ...

    def read_replay_diffs(
        self, job_id: UUID, after: tuple[PartitionId, SequenceNumber] | None, most: int
    ) -> tuple[EventDiff, ...]:
        """What a dry run shows, by partition and number, behind an event."""
        ...

    def move_replay(self, move: JobMove) -> bool:
        """Change a job's status where REPLAY_MOVES allows it; False, and nothing changed, if not."""
        ...

    def note_replay_fault(self, job_id: UUID, fault: str | None, at: datetime) -> None:
        """Keep what stands in an open job's way at the moment, or that nothing does."""
        ...

    def read_standing_states(
        self, state: PartitionState, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, StandingState]:
        """The `state_of` rows that stand for these keys, as events of this partition see them."""
        ...

    def read_carried(
        self, job_id: UUID, partition_id: PartitionId, keys: Iterable[ReferenceKey]
    ) -> Mapping[ReferenceKey, CarriedState]:
        """The states under these keys that the pieces of a job carried along so far."""
        ...

    def read_kept_events(self, state: PartitionState, span: Span, most: int) -> tuple[Event, ...]:
        """The events of a range that letters kept with their body, or else are staged, rising; the first of them."""
        ...

    def commit_replay(self, commit: ReplayCommit) -> int:
        """Take away what the events wrote, write what they write now, settle their letters, record it, forget that they
        were staged, and move the progress, in one transaction; return its commit number. The checkpoint stays, and its
        commit number is raised.

        Raises ReplayConflict (the progress is elsewhere, or the job does not run) and DataRefused, both with nothing
        written, and CommitOutcomeUnknown when the answer was lost.
        """
        ...

    def rehearse_replay(self, commit: ReplayCommit) -> Rehearsal:
        """The same without the job's own rows, rolled back: what it would have done. Raises DataRefused."""
        ...

    def note_rehearsal(self, rehearsed: RehearsedPiece) -> None:
        """Move the progress of a dry run. Raises ReplayConflict and CommitOutcomeUnknown as commit_replay does."""
        ...

    def close_replay(
        self, job: ReplayJob, progress: PartitionProgress, row_classes: Iterable[type], at: datetime
    ) -> None:
        """Close a partition of a running job that is through, with the states that were left; the last one ends it."""
        ...


class AppStore(Store, LetterStore, Protocol):
    """What the app works with."""


class Engine(AppStore, OwnershipStore, ReplayStore, Protocol):
    """What an engine keeps of events, letters, owners and replays."""


class DatabaseEngine(Engine, NamedQueries, Protocol):
    """An engine over a database: operators' queries are run there too."""

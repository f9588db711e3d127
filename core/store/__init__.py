"""The store: the only door to SQL. One method is one transaction and one verb of the business."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol

from core.activity import HomeActivity
from core.commits import BatchCommit, PartitionState
from core.dead_letters import (
    ClaimedLetter,
    ClaimedPosition,
    FoundLetter,
    LetterClaim,
    LetterHold,
    LetterMove,
    RetryCommit,
)
from core.events import Gap, Partition, PartitionId, SequenceNumber
from core.ownership import Ownership, OwnershipClaim
from core.rows import ReferenceKey, Row
from core.runs import AggregationRun, Staged, Standing
from core.status import PartitionLedger


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


class AppStore(Store, LetterStore, Protocol):
    """What the app works with."""


class Engine(AppStore, OwnershipStore, Protocol):
    """What a database engine keeps: all of it."""


class AggregationStore(Protocol):
    """What an engine keeps of aggregation runs, and the aggregate. Any method may raise StoreUnavailable.

    What returns a bool is a compare and set: False, and nothing was written, when another was first.
    """

    def read_standing(self, job: str) -> Standing:
        """Where a job stands, and how far the checkpoints are: all of them from one statement."""
        ...

    def open_run(self, run: AggregationRun) -> bool:
        """Make a run, with the intent to submit it, if the cut stands where it begins and no run is open."""
        ...

    def renew_intent(self, run: AggregationRun, attempt: int, intent_at: datetime) -> bool:
        """Decide on another submit of an open run, of the same attempt or of the next."""
        ...

    def note_submitted(self, run: AggregationRun, engine_job_id: str, submitted_at: datetime) -> bool:
        """The engine has this attempt, under an id of its own."""
        ...

    def fail_run(self, run: AggregationRun, failure: str, closed_at: datetime) -> bool:
        """Close an open run without a result; the cut stays."""
        ...

    def read_staged(self, run_id: str) -> Staged | None:
        """A result of this run that is staged whole, or None."""
        ...

    def commit_run(self, run: AggregationRun, staged: Staged, closed_at: datetime) -> bool:
        """Move the cut, add the staged windows, close the run, and take away what was staged, in one transaction."""
        ...

    def read_runs(self, job: str, before: int, limit: int) -> tuple[AggregationRun, ...]:
        """Runs with a number below `before`, the newest first."""
        ...

    def read_committed_runs(self, job: str, after: int) -> tuple[AggregationRun, ...]:
        """Committed runs with a number above `after`, the oldest first."""
        ...

    def read_activity(self, home_id: str, since: datetime, until: datetime) -> tuple[HomeActivity, ...]:
        """A home's windows that begin in [since, until), by window and kind."""
        ...

    def find_homes(self, prefix: str, after: str, limit: int) -> tuple[str, ...]:
        """Ids of registered homes that begin with `prefix` and come after `after` ("": from the first), in order."""
        ...

    def close(self) -> None:
        """Let go of every connection."""
        ...

"""The store: the only door to SQL. One method is one transaction and one verb of the business."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol

from core.activity import HomeActivity
from core.commits import BatchCommit, PartitionState
from core.events import Partition, PartitionId, SequenceNumber
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
        """Write checkpoint, rows, letters and ledger in one transaction; return the commit number.

        Raises CheckpointConflict (the checkpoint is not where the commit expects it) and DataRefused, both with
        nothing written, and CommitOutcomeUnknown when the answer was lost.
        """
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


class Engine(Store, OwnershipStore, Protocol):
    """What a database engine keeps: both."""


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

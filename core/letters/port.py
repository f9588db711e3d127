"""The store that letters need: claims, retries and moves."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol

from core.model.commits import PartitionState
from core.model.events import Partition, Stream
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


class LetterStore(Protocol):
    """What an engine keeps of letters once a batch's commit has written them. `MOVES` tells what may become what."""

    def open_stream(self, stream: Stream) -> int:
        """Return the id of a stream; a stream that the store does not know yet is opened."""
        ...

    def read_partition(self, partition: Partition) -> PartitionState:
        """Return the partition's stream and checkpoint; a stream that the store does not know yet is opened."""
        ...

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        """Return the `state_of` rows that stand for these keys; keys without a row are left out."""
        ...

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

    def next_due_at(self, stream: Stream) -> datetime | None:
        """When the first letter of the stream is due, or its lease ends; None when none waits or is retried."""
        ...

"""The store that letters need, and the other means to retry and move them."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from core.letters.listing import LetterFilter
from core.model.clock import Clock
from core.model.commits import LetterStatus, PartitionState
from core.model.events import Partition, Stream
from core.model.letters import (
    ClaimedLetter,
    ClaimedPosition,
    EventFinder,
    FoundLetter,
    LetterClaim,
    LetterHold,
    LetterMove,
    LetterPolicy,
    LetterPosition,
    RetryCommit,
)
from core.model.rows import ReferenceKey, Row
from core.model.transform import Lone, Transform

Selection = tuple[LetterPosition, ...]


class LetterStore(Protocol):
    """Stores letters. `MOVES` has the changes of status that are allowed."""

    def open_stream(self, stream: Stream) -> int:
        """Return the id of a stream; open a stream that the store does not know yet."""

    def read_partition(self, partition: Partition) -> PartitionState:
        """Return the partition's stream and checkpoint; open a stream that the store does not know yet."""

    def forget_partition(self, partition: Partition) -> None:
        """Forget the remembered state of a partition, so that it is read again."""

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        """Return the current `state_of` rows of these keys; keys without a row are left out."""

    def claim_letters(self, claim: LetterClaim) -> tuple[ClaimedPosition, ...]:
        """Claim letters that wait and are due, and letters whose lease has ended; no letter is ever held twice.

        A letter whose lease ended counts one more lost claim, if its lone try had begun or if it never lost a claim
        before. When the answer is lost (StoreUnavailable), letters may stay claimed until the lease ends.
        """

    def begin_chunk(self, hold: LetterHold, run: str) -> tuple[ClaimedLetter, ...]:
        """Take over the letters that the claim still holds, and return them whole, in order of sequence number.

        From then on the run holds them, so nothing can begin under this claim again. The same call repeated has no
        further effect.
        """

    def begin_lone_try(self, hold: LetterHold, began_at: datetime, until: datetime) -> None:
        """Note that these letters are about to be tried, each alone, and extend their lease if the claim holds them."""

    def commit_retry(self, commit: RetryCommit) -> int:
        """Write rows, outcomes, attempts and a ledger row in one transaction; return its commit number.

        For each settled letter, the next held letter of its key is freed: it waits and is due.

        The partition's checkpoint row is locked and its commit number raised. The checkpoint does not move. Raises
        LetterConflict (the claim does not hold all letters) and DataRefused (also for rows that the new holder of a
        letter wrote); neither writes anything. Raises CommitOutcomeUnknown when the answer was lost.
        """

    def free_letters(self, stream: Stream, by: str, at: datetime) -> None:
        """Free the first held letter of each key that has no earlier letter waiting or being retried.

        Of many, a part is freed; the next call continues.
        """

    def take_freed(self, commit: RetryCommit, until: datetime) -> tuple[ClaimedLetter, ...]:
        """Claim the letters that this commit has freed, and return those that no other claim took first."""

    def find_letters(self, hold: LetterHold) -> tuple[FoundLetter, ...]:
        """Return these letters as they are now, under any claim; letters that do not exist are left out."""

    def move_letters(self, move: LetterMove) -> tuple[FoundLetter, ...]:
        """Move the letters whose status allows it, add an attempt to each, and return all of them as they are then.

        A discard frees the next held letter of the key of each.

        The moved ones carry the move's id in `touched_by`. A release adds no attempt. After CommitOutcomeUnknown, send
        the move again.
        """

    def next_due_at(self, stream: Stream, latest: datetime, frees_held: bool = False) -> datetime | None:
        """Return the time when the first letter is due or its lease ends; None when none waits or is being retried.

        The time is in the past when a letter waits for a time after `latest`: a clock that was ahead set that time.
        With `frees_held`, held letters are due too.
        """


class MatchingStore(Protocol):
    """Finds the letters of a person's order, among those in given statuses."""

    def find_stream(self) -> int | None:
        """Return the id of the stream whose letters are found; it may have been closed some seconds ago."""

    def count_matching(self, wanted: LetterFilter, statuses: Sequence[LetterStatus]) -> int:
        """Count the letters that fit a filter."""

    def find_matching(self, wanted: LetterFilter, statuses: Sequence[LetterStatus], most: int) -> Selection:
        """Return the positions of letters that fit a filter; the letters that failed first come first."""

    def find_selected(self, positions: Selection, statuses: Sequence[LetterStatus]) -> Selection:
        """Return those of these positions that have a letter in one of these statuses."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """The means to retry and move the letters of one stream. `lone` gives the transform for letters that may kill."""

    stream: Stream
    store: LetterStore
    transform: Transform
    find_event: EventFinder
    clock: Clock
    letters: LetterPolicy = LetterPolicy()  # noqa: RUF009 - it is frozen
    lone: Lone = nullcontext

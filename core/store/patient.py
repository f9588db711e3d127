"""A store that waits: short retries with jitter while the database is unavailable, within a set patience."""

import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from core.errors import StoreUnavailable
from core.ledger.status import PartitionLedger
from core.model.commits import BatchCommit, PartitionState
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
from core.model.spans import SequenceNumber, Span
from core.store import AppStore

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Waiting:
    """Clock, sleep (both in seconds) and chance (0 to 1) of the retries."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = random.random


class Patience:
    """Calls again, with growing pauses, what raises StoreUnavailable, until the patience of the call is used up.

    Only StoreUnavailable is tried again: it promises that nothing was written. An unknown outcome goes to the caller.
    """

    def __init__(self, patience: timedelta, waiting: Waiting | None = None) -> None:
        self._patience = patience.total_seconds()
        self._waiting = waiting or Waiting()

    def __call__(self, call: Callable[[], Answer]) -> Answer:
        """What the call returns at last."""
        deadline = self._waiting.monotonic() + self._patience
        pause = FIRST_PAUSE
        while True:
            try:
                return call()
            except StoreUnavailable:
                rest = pause * self._waiting.chance()
                if self._waiting.monotonic() + rest >= deadline:
                    raise
            self._waiting.sleep(rest)
            pause = min(2 * pause, LONGEST_PAUSE)


class PatientStore:
    """Any AppStore, called with patience."""

    def __init__(self, store: AppStore, patience: timedelta, waiting: Waiting | None = None) -> None:
        self._store = store
        self._patiently = Patience(patience, waiting)

    def read_partition(self, partition: Partition) -> PartitionState:
        """See Store."""
        return self._patiently(lambda: self._store.read_partition(partition))

    def open_stream(self, stream: Stream) -> int:
        """See LetterStore."""
        return self._patiently(lambda: self._store.open_stream(stream))

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        """See Store."""
        wanted = list(keys)
        return self._patiently(lambda: self._store.read_references(wanted))

    def commit_batch(self, commit: BatchCommit) -> int:
        """See Store."""
        return self._patiently(lambda: self._store.commit_batch(commit))

    def anchor_partition(self, state: PartitionState, anchor: SequenceNumber, at: datetime) -> PartitionState:
        """See Store."""
        return self._patiently(lambda: self._store.anchor_partition(state, anchor, at))

    def note_gap(self, state: PartitionState, gap: Span, found_at: datetime) -> None:
        """See Store."""
        self._patiently(lambda: self._store.note_gap(state, gap, found_at))

    def close_gaps(self, partition: Partition) -> None:
        """See Store."""
        self._patiently(lambda: self._store.close_gaps(partition))

    def read_ledgers(self) -> tuple[PartitionLedger, ...]:
        """See Store."""
        return self._patiently(self._store.read_ledgers)

    def claim_letters(self, claim: LetterClaim) -> tuple[ClaimedPosition, ...]:
        """See LetterStore."""
        return self._patiently(lambda: self._store.claim_letters(claim))

    def read_claimed(self, hold: LetterHold) -> tuple[ClaimedLetter, ...]:
        """See LetterStore."""
        return self._patiently(lambda: self._store.read_claimed(hold))

    def begin_lone_try(self, hold: LetterHold, began_at: datetime, until: datetime) -> None:
        """See LetterStore."""
        self._patiently(lambda: self._store.begin_lone_try(hold, began_at, until))

    def commit_retry(self, commit: RetryCommit) -> int:
        """See LetterStore."""
        return self._patiently(lambda: self._store.commit_retry(commit))

    def find_letters(self, hold: LetterHold) -> tuple[FoundLetter, ...]:
        """See LetterStore."""
        return self._patiently(lambda: self._store.find_letters(hold))

    def move_letters(self, move: LetterMove) -> tuple[FoundLetter, ...]:
        """See LetterStore."""
        return self._patiently(lambda: self._store.move_letters(move))

    def next_due_at(self, stream: Stream) -> datetime | None:
        """See LetterStore."""
        return self._patiently(lambda: self._store.next_due_at(stream))

    def close(self) -> None:
        """See Store."""
        self._store.close()

"""A store that remembers: a partition's state until a fault, references for a short, set time."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from core.errors import DataRefused
from core.ledger.status import PartitionLedger
from core.model.commits import BatchCommit, PartitionState, Settled
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
from core.model.rows import ReferenceKey, Row, row_table
from core.model.spans import SequenceNumber, Span
from core.store import AppStore

MOST_REFERENCES = 50_000  # rows, about 20 MB; the oldest are forgotten first


class RememberingStore:
    """Any AppStore, with one call per batch in the steady state.

    A stale memory is harmless: the compare-and-set refuses the commit, and the partition is read again.
    `monotonic` gives seconds and is only used to let references grow old.
    """

    def __init__(self, store: AppStore, keep: timedelta, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._keep = keep.total_seconds()
        self._monotonic = monotonic
        self._states: dict[Partition, PartitionState] = {}
        self._references: dict[ReferenceKey, tuple[float, Row]] = {}
        self._lock = threading.Lock()

    def read_partition(self, partition: Partition) -> PartitionState:
        """See Store; no call while the state is remembered. Reading anew means that others may have written: forget."""
        state = self._states.get(partition)
        if state is None:
            with self._lock:
                self._references.clear()
            state = self._states[partition] = self._store.read_partition(partition)
        return state

    def open_stream(self, stream: Stream) -> int:
        """See LetterStore."""
        return self._store.open_stream(stream)

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        """See Store; one call for the keys that are not remembered. An absent row is never remembered."""
        since = self._monotonic() - self._keep
        rows: dict[ReferenceKey, Row] = {}
        unknown: list[ReferenceKey] = []
        for key in keys:
            read_at, row = self._references.get(key, (since, None))
            if row is not None and read_at > since:
                rows[key] = row
            else:
                unknown.append(key)
        if unknown:
            found = self._store.read_references(unknown)
            self._remember(found)
            rows.update(found)
        return rows

    def commit_batch(self, commit: BatchCommit) -> int:
        """See Store; after a fault the partition is read again, except after refused data: nothing was written."""
        try:
            commit_number = self._store.commit_batch(commit)
        except DataRefused:
            raise
        except BaseException:
            self._states.pop(commit.partition, None)
            raise
        finally:
            self._forget_states_of(commit.settled)
        self._states[commit.partition] = commit.state_after(commit_number)
        return commit_number

    def anchor_partition(self, state: PartitionState, anchor: SequenceNumber, at: datetime) -> PartitionState:
        """See Store."""
        anchored = self._states[state.partition] = self._store.anchor_partition(state, anchor, at)
        return anchored

    def note_gap(self, state: PartitionState, gap: Span, found_at: datetime) -> None:
        """See Store; a memory that has become stale makes gaps of its own, and is forgotten then."""
        try:
            self._store.note_gap(state, gap, found_at)
        except BaseException:
            self._states.pop(state.partition, None)
            raise

    def close_gaps(self, partition: Partition) -> None:
        """See Store."""
        self._store.close_gaps(partition)

    def read_ledgers(self) -> tuple[PartitionLedger, ...]:
        """See Store; never remembered."""
        return self._store.read_ledgers()

    def claim_letters(self, claim: LetterClaim) -> tuple[ClaimedPosition, ...]:
        """See LetterStore."""
        return self._store.claim_letters(claim)

    def read_claimed(self, hold: LetterHold) -> tuple[ClaimedLetter, ...]:
        """See LetterStore."""
        return self._store.read_claimed(hold)

    def begin_lone_try(self, hold: LetterHold, began_at: datetime, until: datetime) -> None:
        """See LetterStore."""
        self._store.begin_lone_try(hold, began_at, until)

    def commit_retry(self, commit: RetryCommit) -> int:
        """See LetterStore. The checkpoint stays where it is, so the remembered one holds; its number is only told."""
        try:
            return self._store.commit_retry(commit)
        finally:
            self._forget_states_of(commit.settled)

    def find_letters(self, hold: LetterHold) -> tuple[FoundLetter, ...]:
        """See LetterStore."""
        return self._store.find_letters(hold)

    def move_letters(self, move: LetterMove) -> tuple[FoundLetter, ...]:
        """See LetterStore."""
        return self._store.move_letters(move)

    def next_due_at(self, stream: Stream) -> datetime | None:
        """See LetterStore."""
        return self._store.next_due_at(stream)

    def close(self) -> None:
        """See Store."""
        self._store.close()

    def _remember(self, found: Mapping[ReferenceKey, Row]) -> None:
        now = self._monotonic()
        with self._lock:
            for key, row in found.items():
                self._references.pop(key, None)  # to the end: a dict keeps the order of insertion
                self._references[key] = (now, row)
            while len(self._references) > MOST_REFERENCES:
                del self._references[next(iter(self._references))]

    def _forget_states_of(self, settled: Settled) -> None:
        for row_class, rows in settled.rows.items():
            if row_table(row_class).key:
                with self._lock:
                    for _, _, row in rows:
                        self._references.pop(ReferenceKey.of(row), None)

"""A store with faults on demand: every call first asks a script what goes wrong with it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from enum import Enum, auto
from typing import TypeVar
from uuid import UUID

from core.errors import CommitOutcomeUnknown, StoreFault, StoreUnavailable
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
from core.store import AppStore, Store

Answer = TypeVar("Answer")


class Fault(Enum):
    """What goes wrong with one call. Reads know only NOT_REACHED and KILLED."""

    NOT_REACHED = auto()  # StoreUnavailable, nothing written
    UNANSWERED = auto()  # committed, and the answer lost
    LOST = auto()  # not committed, and the answer lost
    RIVAL = auto()  # another owner commits first; before a call of letters, somebody else does what `meanwhile` says
    KILLED = auto()  # the process dies before it
    KILLED_AFTER = auto()  # the process dies when it is committed


class Killed(BaseException):
    """The process died: nothing of it is left but the database."""


def rival_takes_all(store: Store, commit: BatchCommit) -> None:
    """The usual rival: it commits the very same events under an id of its own."""
    store.commit_batch(replace(commit, commit_id=UUID(int=commit.commit_id.int ^ 1), invocation_id="rival"))


class FaultyStore:
    """Any AppStore; `faults` has one entry for each call to come, by kind of call, and then all is well."""

    def __init__(
        self,
        store: AppStore,
        *,
        on_commit: Iterable[Fault | None] = (),
        on_read: Iterable[Fault | None] = (),
        on_letters: Iterable[Fault | None] = (),
        rival: Callable[[AppStore, BatchCommit], None] = rival_takes_all,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        self._store = store
        self._on_commit, self._on_read, self._on_letters = iter(on_commit), iter(on_read), iter(on_letters)
        self._rival = rival
        self._meanwhile = meanwhile
        self.calls: list[str] = []

    def open_stream(self, stream: Stream) -> int:
        return self._store.open_stream(stream)

    def read_partition(self, partition: Partition) -> PartitionState:
        self._read("read_partition")
        return self._store.read_partition(partition)

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        self._read("read_references")
        return self._store.read_references(keys)

    def anchor_partition(self, state: PartitionState, anchor: SequenceNumber, at: datetime) -> PartitionState:
        self._read("anchor_partition")
        return self._store.anchor_partition(state, anchor, at)

    def note_gap(self, state: PartitionState, gap: Span, found_at: datetime) -> None:
        self._read("note_gap")
        self._store.note_gap(state, gap, found_at)

    def close_gaps(self, partition: Partition) -> None:
        self._read("close_gaps")
        self._store.close_gaps(partition)

    def read_ledgers(self) -> tuple[PartitionLedger, ...]:
        self._read("read_ledgers")
        return self._store.read_ledgers()

    def close(self) -> None:
        self.calls.append("close")
        self._store.close()

    def commit_batch(self, commit: BatchCommit) -> int:
        self.calls.append("commit_batch")
        fault = next(self._on_commit, None)
        if fault is Fault.NOT_REACHED:
            raise StoreUnavailable("the database does not answer")
        if fault is Fault.LOST:
            raise CommitOutcomeUnknown("the commit was not answered")
        if fault is Fault.KILLED:
            raise Killed
        if fault is Fault.RIVAL:
            self._rival(self._store, commit)
        commit_number = self._store.commit_batch(commit)
        if fault is Fault.UNANSWERED:
            raise CommitOutcomeUnknown("the commit was not answered")
        if fault is Fault.KILLED_AFTER:
            raise Killed
        return commit_number

    def claim_letters(self, claim: LetterClaim) -> tuple[ClaimedPosition, ...]:
        return self._letters("claim_letters", lambda: self._store.claim_letters(claim))

    def read_claimed(self, hold: LetterHold) -> tuple[ClaimedLetter, ...]:
        return self._letters("read_claimed", lambda: self._store.read_claimed(hold))

    def begin_lone_try(self, hold: LetterHold, began_at: datetime, until: datetime) -> None:
        self._letters("begin_lone_try", lambda: self._store.begin_lone_try(hold, began_at, until))

    def commit_retry(self, commit: RetryCommit) -> int:
        return self._letters("commit_retry", lambda: self._store.commit_retry(commit), CommitOutcomeUnknown)

    def find_letters(self, hold: LetterHold) -> tuple[FoundLetter, ...]:
        return self._letters("find_letters", lambda: self._store.find_letters(hold))

    def move_letters(self, move: LetterMove) -> tuple[FoundLetter, ...]:
        return self._letters("move_letters", lambda: self._store.move_letters(move), CommitOutcomeUnknown)

    def next_due_at(self, stream: Stream) -> datetime | None:
        return self._letters("next_due_at", lambda: self._store.next_due_at(stream))

    def _read(self, call: str) -> None:
        self.calls.append(call)
        fault = next(self._on_read, None)
        if fault is Fault.KILLED:
            raise Killed
        if fault is not None:
            raise StoreUnavailable("the database does not answer")

    def _letters(
        self, name: str, call: Callable[[], Answer], unanswered: type[StoreFault] = StoreUnavailable
    ) -> Answer:
        self.calls.append(name)
        fault = next(self._on_letters, None)
        if fault is Fault.NOT_REACHED:
            raise StoreUnavailable("the database does not answer")
        if fault is Fault.LOST:
            raise unanswered("it was not answered")
        if fault is Fault.KILLED:
            raise Killed
        if fault is Fault.RIVAL:
            self._meanwhile()
        answer = call()
        if fault is Fault.UNANSWERED:
            raise unanswered("it was not answered")
        if fault is Fault.KILLED_AFTER:
            raise Killed
        return answer

"""A store with faults on demand: every call first asks a script what goes wrong with it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from enum import Enum, auto
from uuid import UUID

from core.commits import BatchCommit, PartitionState
from core.errors import CommitOutcomeUnknown, StoreUnavailable
from core.events import Gap, Partition, SequenceNumber
from core.rows import ReferenceKey, Row
from core.status import PartitionLedger
from core.store import Store


class Fault(Enum):
    """What goes wrong with one call. Reads know only NOT_REACHED and KILLED."""

    NOT_REACHED = auto()  # StoreUnavailable, nothing written
    UNANSWERED = auto()  # committed, and the answer lost
    LOST = auto()  # not committed, and the answer lost
    RIVAL = auto()  # another owner commits first
    KILLED = auto()  # the process dies before it
    KILLED_AFTER = auto()  # the process dies when it is committed


class Killed(BaseException):
    """The process died: nothing of it is left but the database."""


def rival_takes_all(store: Store, commit: BatchCommit) -> None:
    """The usual rival: it commits the very same events under an id of its own."""
    store.commit_batch(replace(commit, commit_id=UUID(int=commit.commit_id.int ^ 1), invocation_id="rival"))


class FaultyStore:
    """Any Store; `faults` has one entry for each call to come, of reads and commits alike, and then all is well."""

    def __init__(
        self,
        store: Store,
        *,
        on_commit: Iterable[Fault | None] = (),
        on_read: Iterable[Fault | None] = (),
        rival: Callable[[Store, BatchCommit], None] = rival_takes_all,
    ) -> None:
        self._store = store
        self._on_commit, self._on_read = iter(on_commit), iter(on_read)
        self._rival = rival
        self.calls: list[str] = []

    def read_partition(self, partition: Partition) -> PartitionState:
        self._read("read_partition")
        return self._store.read_partition(partition)

    def read_references(self, keys: Iterable[ReferenceKey]) -> Mapping[ReferenceKey, Row]:
        self._read("read_references")
        return self._store.read_references(keys)

    def anchor_partition(self, state: PartitionState, anchor: SequenceNumber, at: datetime) -> PartitionState:
        self._read("anchor_partition")
        return self._store.anchor_partition(state, anchor, at)

    def note_gap(self, state: PartitionState, gap: Gap, found_at: datetime) -> None:
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

    def _read(self, call: str) -> None:
        self.calls.append(call)
        fault = next(self._on_read, None)
        if fault is Fault.KILLED:
            raise Killed
        if fault is not None:
            raise StoreUnavailable("the database does not answer")

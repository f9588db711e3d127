"""The journal: know which events may have killed a process, and try those in a child process.

Every attempt notes its numbers in the flight record of the process, which outlives it. A batch is suspicious while its
process has not committed as many events of the partition as one batch may hold, when its invocation is a retry, and
when it heals a gap: the attempt before it may have died. Only such a batch looks into the flight records of dead
processes, and leaves a mark with its numbers in the store, because a machine may die with its records. Its
commit deletes the mark, and so does the end of the attempt by an exception.

A suspicious batch with numbers that a dead process had in hand, or under the mark of a different process, runs its
transform in a child process. So does every batch from the second death in half an hour on: the host of Azure Functions
ends after the third one. Memory that runs out counts as a death.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace

from core.errors import StoreFault
from core.ingest.guard import Guarded
from core.ingest.store import AttemptMark, Attempts
from core.model.clock import Clock
from core.model.commits import BatchCommit, PartitionState
from core.model.events import BATCH_EVENTS, EventBatch, Partition
from core.model.spans import Span
from core.model.transform import Lone, Transform
from core.transforms.flight import Flight

CAREFUL = 2  # deaths in the window; from the last one of them on, each batch runs in a child


@dataclass(slots=True)
class Attempt:
    """One attempt at events: the transform to try them with, its mark, if it has one, and its commit."""

    transform: Transform
    is_marked: bool = False
    committed: BatchCommit | None = None

    def marked(self, commit: BatchCommit) -> BatchCommit:
        """Return the commit of the attempt, which deletes the mark."""
        return replace(commit, is_marked=True) if self.is_marked else commit


class Journal:
    """Records attempts at batches; this class itself records none, and suspects no event."""

    def attempt(
        self, batch: EventBatch, state: PartitionState, guarded: Guarded, transform: Transform
    ) -> AbstractContextManager[Attempt]:
        """Begin an attempt at the new events of a batch; the caller reports their commit to it."""
        return nullcontext(Attempt(transform))

    def lone(self, transform: Transform) -> AbstractContextManager[Transform]:
        """Give the transform for events that may kill."""
        return nullcontext(transform)


NOT_JOURNALED = Journal()


def death_facts(partition: Partition, tried: Span, invocation_id: str) -> dict[str, object]:
    """Return the fields of the log line of an attempt at suspects."""
    place = {"action": "attempt_died", "partition": str(partition), "invocation_id": invocation_id}
    return {**place, "first": tried.first, "last": tried.last}


class StoredJournal(Journal):
    """The journal of a process, with its marks in the store.

    `lone` and `careful` give the transform that runs in a child: for suspects, and for any batch of a careful process.
    """

    def __init__(self, store: Attempts, clock: Clock, flight: Flight, lone: Lone, careful: Lone) -> None:
        self._store = store
        self._clock = clock
        self._flight = flight
        self._lone = lone
        self._careful = careful
        self._own = clock.new_id()  # in the marks of this process
        self._unproven: dict[Partition, int] = {}  # numbers left to commit until it is not suspicious
        self._fallen: dict[Partition, Span] = {}  # numbers that stood in the mark of a different process
        self._is_careful = False

    def attempt(
        self, batch: EventBatch, state: PartitionState, guarded: Guarded, transform: Transform
    ) -> AbstractContextManager[Attempt]:
        """Begin an attempt; a suspicious one leaves a mark, and one at suspects runs in a child."""
        if self._unproven.get(state.partition, BATCH_EVENTS) > 0 or batch.is_retry or batch.asked is not None:
            return self._marked(batch, state, guarded, transform)
        tried = _tried(guarded)
        if self._is_careful:
            return self._alone(self._careful(transform))
        return self._noted(state.partition, tried, transform)

    def lone(self, transform: Transform) -> AbstractContextManager[Transform]:
        """Give the transform that runs in a child."""
        return self._lone(transform)

    @contextmanager
    def _noted(self, partition: Partition, tried: Span, transform: Transform) -> Iterator[Attempt]:
        """Try events here, with a note in the flight record."""
        slot = self._flight.begin(partition.partition_id, tried)
        try:
            yield Attempt(transform)
        except MemoryError:
            self._unproven.pop(partition, None)
            self._flight.leave(slot)
            raise
        except BaseException:
            self._flight.end(slot)
            raise
        self._flight.end(slot)

    @contextmanager
    def _alone(self, lone: AbstractContextManager[Transform]) -> Iterator[Attempt]:
        """Try events in a child process."""
        self._is_careful = self._flight.look().deaths >= CAREFUL
        with lone as transform:
            yield Attempt(transform)

    @contextmanager
    def _marked(
        self, batch: EventBatch, state: PartitionState, guarded: Guarded, transform: Transform
    ) -> Iterator[Attempt]:
        partition, tried = state.partition, _tried(guarded)
        standing = self._store.read_attempt(state)
        mark = AttemptMark(tried, self._own, self._clock.now(), batch.invocation_id)
        self._store.begin_attempt(state, mark)
        with ExitStack() as stack:
            if self._is_suspect(partition, tried, standing):
                self._flight.tell(death_facts(partition, tried, batch.invocation_id))
                way = self._alone(self._lone(transform))
            elif self._is_careful:
                way = self._alone(self._careful(transform))
            else:
                way = self._noted(partition, tried, transform)
            try:
                attempt = stack.enter_context(way)
                attempt.is_marked = True
                yield attempt
            except MemoryError:
                raise  # the mark stays
            except BaseException:
                self._take_back(state, mark)
                raise
            if attempt.committed is None:
                self._take_back(state, mark)
            else:
                self._note_commit(attempt.committed)

    def _is_suspect(self, partition: Partition, tried: Span, standing: AttemptMark | None) -> bool:
        """Return True when one of these events may have killed a process."""
        wreckage = self._flight.look()
        self._is_careful = wreckage.deaths >= CAREFUL
        if standing is not None and standing.attempt_id != self._own:
            self._fallen[partition] = standing.tried
        fallen = self._fallen.get(partition)
        if fallen is not None and fallen.overlap(tried) is not None:
            return True
        return wreckage.holds(partition.partition_id, tried)

    def _take_back(self, state: PartitionState, mark: AttemptMark) -> None:
        """Take back the mark of an attempt that has ended; this process knows its own marks."""
        with suppress(StoreFault):
            self._store.end_attempt(state, mark)

    def _note_commit(self, commit: BatchCommit) -> None:
        numbers = commit.last.sequence_number + 1 - commit.first
        self._unproven[commit.partition] = self._unproven.get(commit.partition, BATCH_EVENTS) - numbers


def _tried(guarded: Guarded) -> Span:
    return Span(guarded.first, guarded.run[-1].sequence_number)

"""The journal: isolate an event that kills its process, by a mark in the store before it is tried.

A batch is suspicious while its process has not committed as many events of the partition as one batch may hold, when
its invocation is a retry, and when it heals a gap: the attempt before it may have died. Only such a batch leaves a mark
with its numbers, and its commit deletes the mark. A mark that is still there when its numbers are tried again counts as
a death. After three deaths the range is tried in eighths, each in a separate commit; a part that dies once is tried in
eighths again, until one event is tried alone. An event that died alone three times becomes a letter of class `crash`.
The other events of the range are committed in parts.

Attempts at numbers that died before run one at a time in a process, so that an innocent partition never dies with a
killing one. An attempt that ends by an exception has not died: its mark is taken back, or remembered here while the
store cannot be reached. Only MemoryError counts as a death.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from uuid import UUID

from core.errors import ProcessDied, StoreFault, StoreUnavailable
from core.ingest.guard import Guarded
from core.ingest.port import AttemptMark, AttemptStore
from core.model.clock import Clock
from core.model.commits import BatchCommit, PartitionState
from core.model.events import BATCH_EVENTS, Event, EventBatch, Partition, number_of
from core.model.rows import References, Row
from core.model.transform import Transform

UNFINISHED = 3  # deaths of a range before it is narrowed, and of a single event before it becomes a letter
PARTS = 8  # a range is narrowed to parts of an eighth
LARGEST_PART = -(-BATCH_EVENTS // PARTS)
RACES = 3  # conflicts in a row with other processes at the same partition; after them the host retries


@dataclass(frozen=True, slots=True)
class Suspects:
    """The rest of a narrowed range: the number after it, and how many events to try at once, None for all.

    `grows`: an event of the range is a letter now, so each part that is committed doubles the next one.
    """

    end: int
    reach: int | None
    grows: bool = False


@dataclass(frozen=True, slots=True)
class AttemptPlan:
    """The events to try next, the number of attempts at them including this one, and the rest of their range."""

    run: tuple[Event, ...]
    attempts: int = 1
    suspects: Suspects | None = None

    @property
    def is_lone(self) -> bool:
        """True when its events may have killed a process."""
        return self.attempts > 1 or self.suspects is not None

    @property
    def is_crash(self) -> bool:
        """True when its only event has killed its process too often: it is not tried again."""
        return self.attempts > UNFINISHED


def plan_attempt(guarded: Guarded, standing: AttemptMark | None, suspects: Suspects | None) -> AttemptPlan:
    """Return the next attempt at new events, given the stored mark, if any, and the known suspects."""
    run = guarded.run
    if standing is not None and standing.first == guarded.first and (standing.attempts or standing.is_narrowed):
        again = run[: bisect_right(run, standing.last, key=number_of)]
        if again:
            return _plan_again(again, standing)
    if suspects is not None:
        part = run[: bisect_left(run, suspects.end, key=number_of)][: suspects.reach]
        if part:
            return AttemptPlan(part, suspects=suspects)
    return AttemptPlan(run)


def _plan_again(run: tuple[Event, ...], standing: AttemptMark) -> AttemptPlan:
    """Return the next attempt at a range of which attempts have died; a batch may bring only a part of the range."""
    is_whole, died = run[-1].sequence_number == standing.last, standing.attempts
    narrowed = standing.suspects_end if standing.is_narrowed else standing.last + 1
    if is_whole and len(run) == 1:
        suspects = Suspects(narrowed, 1, grows=died >= UNFINISHED) if standing.is_narrowed else None
        return AttemptPlan(run, died + 1, suspects)
    if died >= (1 if standing.is_narrowed else UNFINISHED):
        size = -(-len(run) // PARTS)
        return AttemptPlan(run[:size], suspects=Suspects(narrowed, size))
    if is_whole:
        suspects = Suspects(narrowed, len(run)) if standing.is_narrowed else None
        return AttemptPlan(run, died + 1, suspects)
    return AttemptPlan(run, 1 if len(run) == 1 else died + 1, Suspects(narrowed, None))


@dataclass(slots=True)
class Attempt:
    """One attempt at events, between its mark, if it has one, and its commit."""

    run: tuple[Event, ...]
    is_marked: bool = False
    is_crash: bool = False
    committed: BatchCommit | None = None

    def around(self, transform: Transform) -> Transform:
        """Return the transform; for an event that killed its process too often, one that only raises ProcessDied."""
        return replace(transform, rows_of=_died, references_of=None) if self.is_crash else transform

    def marked(self, commit: BatchCommit) -> BatchCommit:
        """Return the commit of the attempt, which deletes the mark."""
        return replace(commit, is_marked=True) if self.is_marked else commit


def _died(event: Event, references: References) -> Iterable[Row]:
    raise ProcessDied(f"the process died {UNFINISHED} times while it tried this event alone")


class Journal:
    """Records attempts at batches; this class itself records none, and every attempt takes all events."""

    def attempt(self, batch: EventBatch, state: PartitionState, guarded: Guarded) -> AbstractContextManager[Attempt]:
        """Begin an attempt at the first new events of a batch; the caller reports their commit to it."""
        return nullcontext(Attempt(guarded.run))


NOT_JOURNALED = Journal()


def death_facts(partition: Partition, died: AttemptMark, plan: AttemptPlan) -> dict[str, object]:
    """Return the fields of the log line of an attempt that died: its numbers, and the last one of the next attempt."""
    return {
        "action": "attempt_died",
        "partition": str(partition),
        "first": died.first,
        "last": died.last,
        "deaths": died.attempts,
        "next_last": plan.run[-1].sequence_number,
        "gives_up": plan.is_crash,
        "invocation_id": died.invocation_id,
    }


class StoredJournal(Journal):
    """The journal of a process, with its marks in the store.

    `turns` is a lock. `died` is called with each attempt that died, before its events are tried again.
    """

    def __init__(
        self,
        store: AttemptStore,
        clock: Clock,
        turns: AbstractContextManager[object],
        died: Callable[[dict[str, object]], None] = lambda facts: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._turns = turns
        self._died = died
        self._unproven: dict[Partition, int] = {}  # numbers left to commit until it is not suspicious
        self._suspects: dict[Partition, Suspects] = {}
        self._own: dict[Partition, dict[UUID, int]] = {}  # attempts of this process, and the deaths before each

    def attempt(self, batch: EventBatch, state: PartitionState, guarded: Guarded) -> AbstractContextManager[Attempt]:
        """Begin an attempt; a suspicious one leaves a mark, and may have to wait for its turn."""
        partition = state.partition
        is_unproven = self._unproven.get(partition, BATCH_EVENTS) > 0 or partition in self._suspects
        if is_unproven or batch.is_retry or batch.asked is not None:
            return self._marked(batch, state, guarded)
        return self._unmarked(partition, guarded.run)

    @contextmanager
    def _unmarked(self, partition: Partition, run: tuple[Event, ...]) -> Iterator[Attempt]:
        try:
            yield Attempt(run)
        except MemoryError:
            self._unproven.pop(partition, None)
            raise

    @contextmanager
    def _marked(self, batch: EventBatch, state: PartitionState, guarded: Guarded) -> Iterator[Attempt]:
        with ExitStack() as turn:
            plan, mark = self._begin(batch, state, guarded, turn)
            attempt = Attempt(plan.run, is_marked=True, is_crash=plan.is_crash)
            try:
                yield attempt
            except MemoryError:
                self._unproven.pop(state.partition, None)
                self._own.pop(state.partition, None)  # its mark counts as a death
                raise
            except BaseException:
                self._take_back(state, mark)
                raise
            if attempt.committed is not None:
                self._note_commit(attempt.committed, plan)
            else:
                self._take_back(state, mark)

    def _begin(
        self, batch: EventBatch, state: PartitionState, guarded: Guarded, turn: ExitStack
    ) -> tuple[AttemptPlan, AttemptMark | None]:
        """Leave the mark of the next attempt; an event that is a letter now is not tried, and needs no new mark."""
        partition = state.partition
        own = self._own.setdefault(partition, {})
        for _ in range(RACES):
            standing = self._store.read_attempt(state)
            died = _without_own(standing, own)
            plan = plan_attempt(guarded, died, self._suspects.get(partition))
            if died is not None and died.attempts and died.first == guarded.first:
                self._died(death_facts(partition, died, plan))
            if plan.is_crash:
                self._note_suspects(partition, plan.suspects)
                return plan, None
            if plan.is_lone:
                turn.enter_context(self._turns)
            mark = self._mark_of(plan, batch, guarded)
            own[mark.attempt_id] = mark.attempts - 1
            if self._store.begin_attempt(state, mark, standing):
                self._note_suspects(partition, plan.suspects)
                return plan, mark
            turn.close()
        raise StoreUnavailable(f"{partition}: other processes try the same events; nothing was tried here")

    def _mark_of(self, plan: AttemptPlan, batch: EventBatch, guarded: Guarded) -> AttemptMark:
        return AttemptMark(
            first=guarded.first,
            last=plan.run[-1].sequence_number,
            suspects_end=plan.suspects.end if plan.suspects else 0,
            attempts=plan.attempts,
            attempt_id=self._clock.new_id(),
            begun_at=self._clock.now(),
            invocation_id=batch.invocation_id,
        )

    def _take_back(self, state: PartitionState, mark: AttemptMark | None) -> None:
        """Take back the mark of an attempt that has ended; remember it while the store cannot be reached."""
        if mark is not None:
            with suppress(StoreFault):
                self._store.end_attempt(state, mark)

    def _note_suspects(self, partition: Partition, suspects: Suspects | None) -> None:
        if suspects is None:
            self._suspects.pop(partition, None)
        else:
            self._suspects[partition] = suspects

    def _note_commit(self, commit: BatchCommit, plan: AttemptPlan) -> None:
        partition, suspects, following = commit.partition, plan.suspects, commit.last.sequence_number + 1
        self._unproven[partition] = self._unproven.get(partition, BATCH_EVENTS) - (following - commit.first)
        self._own.pop(partition, None)
        if suspects is None or following >= suspects.end:
            self._suspects.pop(partition, None)
        elif suspects.grows and suspects.reach is not None and not plan.is_crash:
            self._suspects[partition] = replace(suspects, reach=min(2 * suspects.reach, LARGEST_PART))


def _without_own(standing: AttemptMark | None, own: Mapping[UUID, int]) -> AttemptMark | None:
    """Return the stored mark, in which attempts of this process do not count as deaths."""
    if standing is None or standing.attempt_id not in own:
        return standing
    return replace(standing, attempts=min(standing.attempts, own[standing.attempt_id]))

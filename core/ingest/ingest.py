"""Ingest a batch: read the partition, decide, write once. docs/one-event.md walks through it.

A partition may be held for ever by a fault that is taken for a passing one: a lock that nobody releases, a statement
that never ends in time, an error that the store does not know, or by a commit that is refused even without the rows of
its events. The host passes a batch after some retries, and begins to count anew with the next one: so the store counts,
and a person must see it.
"""

from bisect import bisect_left
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from core.errors import (
    CheckpointConflict,
    CommitOutcomeUnknown,
    DataRefused,
    HeldLettersFull,
    PartitionStopped,
    StoreFault,
    StoreUnreachable,
)
from core.incarnations.hub_check import NOT_VERIFIED, Verification, choose_anchor
from core.ingest.fuse import check_fuse
from core.ingest.gaps import NO_GAP_READING, Gap, GapReading, gap_rows, pieces
from core.ingest.guard import Guarded, guard
from core.measured import measured
from core.model.commits import BatchCommit, PartitionState
from core.model.events import Event, EventBatch, Partition, Span, number_of, order_key
from core.model.letters import LetterPolicy
from core.model.policies import NO_FUSE, Fuse
from core.model.ports import Clock
from core.model.rows import References
from core.model.transforms import Transform
from core.settle.isolate import NOT_JOURNALED, AttemptRequest, Isolation, Journal, RunChanged
from core.settle.partition_store import Partitions
from core.settle.settle import KeyOrder, OpenLetter, reference_keys, scheduled, settle

OpenLetters = Mapping[str, OpenLetter]  # by partition key, the last one of each


def read_open_letters(
    state: PartitionState, run: Sequence[Event], store: Partitions, policy: LetterPolicy
) -> tuple[PartitionState, OpenLetters | None]:
    """READ the open letters that the events of a run have to wait for, or None where no event waits.

    Calls the store only for keys that may have an open letter. The returned state remembers the keys that have none.
    """
    if policy.order != "hold_key" or not run:
        return state, None
    state = store.read_open_keys(state)
    asked = state.open_keys.among(map(order_key, run)) if state.open_keys else frozenset()
    if not asked:
        return state, {}
    found = store.find_open_letters(state, asked, run[0].sequence_number)
    known = state.open_keys.minus(asked - found.keys()) if state.open_keys else None
    return replace(state, open_keys=known), found


def events_that_fit(commit: BatchCommit, run: Sequence[Event], store: Partitions, policy: LetterPolicy) -> int:
    """Return how many events of a run can be committed without holding too many letters.

    Raises HeldLettersFull when not even the first one can.
    """
    held = [letter.event.sequence_number for letter in commit.settled.letters if letter.status == "held"]
    if not held:
        return len(run)
    room = max(0, policy.held_limit - store.count_held(commit.state))
    if len(held) <= room:
        return len(run)
    fitting = sum(event.sequence_number < held[room] for event in run)
    if fitting == 0:
        raise HeldLettersFull(commit.partition, held[room], policy.held_limit)
    return fitting


RECURRENT = 5  # failures of a batch in a row; the pauses of the host between them grow to half a minute


CONFLICT_LIMIT = 5  # conflicts in a row until the host has to retry: each means that another owner committed
REFUSAL_LIMIT = 200  # refusals in one invocation; the host's retry continues after the events that were committed


@dataclass(frozen=True, slots=True)
class IngestReport:
    """The outcome of a batch and of the gaps before and inside it. The commits of the gaps come first."""

    batch: EventBatch
    commits: tuple[BatchCommit, ...]
    gaps: tuple[Span, ...]

    @property
    def redelivered(self) -> int:
        """The number of events that the guard dropped: committed before, or before the anchor."""
        return len(self.batch.events) - self._taken

    @property
    def healed(self) -> int:
        """The number of events that were not in the batch and were read back from the hub."""
        return sum(commit.events for commit in self.commits) - self._taken

    @property
    def absent(self) -> int:
        """The number of sequence numbers that the hub no longer had."""
        return sum(commit.absent for commit in self.commits)

    def facts(self) -> dict[str, int]:
        """Return the counts of the log line and of the span."""
        settled = [commit.settled for commit in self.commits]
        return {
            "events": len(self.batch.events),
            "commits": len(settled),
            "rows": sum(each.rows_written for each in settled),
            "written": sum(each.written for each in settled),
            "filtered": sum(each.filtered for each in settled),
            "dead_lettered": sum(each.dead_lettered for each in settled),
            "held": sum(each.held for each in settled),
            "redelivered": self.redelivered,
            "healed": self.healed,
            "absent": self.absent,
        }

    @property
    def _taken(self) -> int:
        events = self.batch.events
        return sum(
            bisect_left(events, commit.last.sequence_number + 1, key=number_of)
            - bisect_left(events, commit.first, key=number_of)
            for commit in self.commits
        )


@dataclass(slots=True)
class Progress:
    """The progress of a batch: its commits, the gaps that were healed, and a commit whose answer was lost."""

    commits: list[BatchCommit] = field(default_factory=list)
    gaps: list[Span] = field(default_factory=list)
    doubtful: BatchCommit | None = None
    conflicts: int = 0

    def reached(self, last: Event) -> bool:
        """Return True when our newest commit ends with this event."""
        return bool(self.commits) and self.commits[-1].last is last

    def settle_doubt(self, state: PartitionState) -> None:
        """Add the commit whose answer was lost, if the checkpoint carries its id."""
        doubtful, self.doubtful = self.doubtful, None
        if doubtful and state.checkpoint and state.checkpoint.commit_id == doubtful.commit_id:
            self.add(doubtful)

    def add(self, commit: BatchCommit) -> None:
        self.conflicts = 0
        self.commits.append(commit)

    def note_conflict(self) -> bool:
        """Count a conflict. Return False after too many in a row."""
        self.conflicts += 1
        return self.conflicts < CONFLICT_LIMIT


@dataclass(frozen=True, slots=True)
class BatchReading:
    """The reads of one turn before it decides: the partition's state, the new events, their references, and the open
    letters that they wait for (None when no event waits)."""

    state: PartitionState
    guarded: Guarded
    references: References = field(default_factory=lambda: References({}))
    open_letters: OpenLetters | None = None

    def gap_before(self, batch: EventBatch) -> Gap | None:
        """Return the gap that has to be healed before the batch continues, or None."""
        gap = self.guarded.gap
        if gap is None:
            return None
        in_hand = [event for event in self.guarded.run if event.sequence_number <= gap.last]
        return Gap(self.state, gap, in_hand, batch.invocation_id)

    def only(self, run: tuple[Event, ...]) -> "BatchReading":
        """Return the reading with only the events to commit next."""
        return self if run is self.guarded.run else replace(self, guarded=replace(self.guarded, run=run))


@dataclass(frozen=True, slots=True)
class Ingestion:
    """The store, the transform, the clock, the reading of gaps and the policy that a batch is ingested with."""

    store: Partitions
    transform: Transform
    clock: Clock
    gap_reading: GapReading = NO_GAP_READING
    letters: LetterPolicy = LetterPolicy()  # noqa: RUF009 - it is frozen
    fuse: Fuse = NO_FUSE
    incarnations: Verification = NOT_VERIFIED
    journal: Journal = NOT_JOURNALED


@measured("ingest")
def ingest_batch(batch: EventBatch, means: Ingestion) -> IngestReport:
    """Commit the new events of a batch once, in order, in one transaction.

    Missing events before them are committed first. Raises InfrastructureFault. The commits before the fault remain, and
    the guard drops their events on redelivery.
    """
    try:
        return _ingest(batch, means)
    except PartitionStopped as stop:
        record_stop(batch.partition, stop, means)
        raise
    except StoreFault as fault:
        with suppress(StoreFault):  # the next retry does it
            _count_failure(batch, fault, means)
        raise


def record_stop(partition: Partition, stop: PartitionStopped, means: Ingestion) -> None:
    """Record a stop for pages and alerts. When the store fails too, the next attempt records it."""
    with suppress(StoreFault):
        state, now = means.store.read_partition(partition), means.clock.now()
        means.store.note_stop(state, stop.reason, str(stop), now, stop.failing)


def _count_failure(batch: EventBatch, fault: StoreFault, means: Ingestion) -> None:
    """Record a fault that failed the batch too often as the stop `store`, and count each one after it, also of other
    batches."""
    is_recurrent = batch.retries + 1 >= RECURRENT
    if isinstance(fault, StoreUnreachable) and not is_recurrent:
        return  # the count could not be read either, and the batch would wait twice as long
    state = means.store.read_partition(batch.partition)
    stop = state.stop_for("store")
    if is_recurrent or stop is not None:
        count = batch.retries + 1 if stop is None else stop.attempts + RECURRENT
        detail = f"the partition failed {count} times in a row, last on the database; nothing was dropped: {fault}"
        means.store.note_stop(state, "store", detail, means.clock.now())


def _ingest(batch: EventBatch, means: Ingestion) -> IngestReport:
    progress, isolation, known = Progress(), Isolation(REFUSAL_LIMIT), batch
    while not progress.reached(batch.events[-1]):
        reading = read(known, means)
        progress.settle_doubt(reading.state)
        if not reading.guarded.run:
            break
        if (gap := reading.gap_before(known)) is not None:
            try:
                means.store.note_gap(gap.state, gap.missing, means.clock.now())
            except CheckpointConflict:  # the state came from memory, and another owner has committed since
                if not progress.note_conflict():
                    raise
                continue
            progress.commits += heal(gap, means)
            progress.gaps.append(gap.missing)
            known = replace(known, asked=gap.missing)  # numbers of this range that are still missing are absent
            continue
        _commit_next(known, reading, means, progress, isolation)
    return IngestReport(batch, tuple(progress.commits), tuple(progress.gaps))


def _commit_next(
    batch: EventBatch, reading: BatchReading, means: Ingestion, progress: Progress, isolation: Isolation
) -> None:
    """Plan and commit the next new events: all of them, or a part when some are refused, deadly or held."""
    reading = reading.only(isolation.next_run(reading.guarded.run))
    erased = means.store.read_erased(reading.state, reading.guarded.run[0].enqueued_at)
    try:
        with means.journal.attempt(_request(batch, reading, means, isolation), means.transform) as attempt:
            transform = erased.around(isolation.around(attempt.transform))
            reading, commit = _plan_next(batch, reading, replace(means, transform=transform), progress)
            commit = replace(commit, is_marked=True) if attempt.is_marked else commit
            means.store.commit_batch(commit)
            attempt.done_to, attempt.is_cleared = commit.last.sequence_number, True
    except RunChanged:
        return
    except DataRefused as fault:
        isolation.note_refusal(reading.guarded.run, fault)
    except (CheckpointConflict, CommitOutcomeUnknown) as fault:
        if not progress.note_conflict():
            raise
        if isinstance(fault, CommitOutcomeUnknown):
            progress.doubtful = commit
    else:
        isolation.note_commit(reading.guarded.run)
        progress.add(commit)


def _request(batch: EventBatch, reading: BatchReading, means: Ingestion, isolation: Isolation) -> AttemptRequest:
    state, guarded = reading.state, reading.guarded
    expected = None if state.checkpoint is None else state.checkpoint.sequence_number

    def look_again() -> None:
        means.store.forget_partition(state.partition)
        if means.store.read_partition(state.partition).next_number != state.next_number:
            raise CheckpointConflict(state.partition, expected)

    return AttemptRequest(
        "batch",
        state,
        Span(guarded.first, guarded.run[-1].sequence_number),
        isolation,
        batch.invocation_id,
        comes_again=batch.is_retry or batch.asked is not None,
        look_again=look_again,
    )


def _plan_next(
    batch: EventBatch, reading: BatchReading, means: Ingestion, progress: Progress
) -> tuple[BatchReading, BatchCommit]:
    """Return the events that one commit can take, and that commit."""
    reading = refer(reading, means)
    commit = plan_commit(batch, reading, means)
    planned = [*progress.commits, commit]
    is_healthy = check_fuse(means.fuse, planned, partial(means.store.read_past, planned[0].state))
    fitting = events_that_fit(commit, reading.guarded.run, means.store, means.letters)
    is_cut = fitting < len(reading.guarded.run)
    if is_cut:
        reading = refer(reading.only(reading.guarded.run[:fitting]), means)
        commit = plan_commit(batch, reading, means)
    return reading, commit.ending(outage=is_healthy, held=not is_cut, erasure_key=means.store.has_key(reading.state))


def read(batch: EventBatch, means: Ingestion) -> BatchReading:
    """READ the state, from memory in the steady state, and find the new events.

    Where the events of a partition key are kept in order, READ also the open letters that they have to wait for.
    """
    state = read_anchored(batch.partition, means, batch.events[0])
    if batch.asked is not None:  # the hub has answered since: numbers that it left out will be absent
        means.incarnations.verify_now(state, means.store)
    guarded = guard(means.incarnations.without_former(batch, state), state)
    if batch.asked is None:
        means.incarnations.verify_events(guarded.run, state, is_retry=batch.is_retry)
    run = guarded.run if guarded.gap is None else ()
    state, open_letters = read_open_letters(without_stop(state, means), run, means.store, means.letters)
    return BatchReading(state, guarded, open_letters=open_letters)


def refer(reading: BatchReading, means: Ingestion) -> BatchReading:
    """READ the references of the events to commit next: from memory in the steady state, else with one call.

    A plan adds the states of its events to its references, so each plan needs new ones.
    """
    keys = reference_keys(reading.guarded.run, means.transform, reading.state.partition)
    return replace(reading, references=References(means.store.read_references(keys) if keys else {}))


def read_anchored(partition: Partition, means: Ingestion, in_hand: Event | None = None) -> PartitionState:
    """Return the partition's state. Anchor a partition that has neither a checkpoint nor an anchor.

    Raises StreamIncarnationChanged when the hub is not the stream's.
    """
    state = means.incarnations.verify(means.store.read_partition(partition), means.store)
    if state.checkpoint is not None or state.anchor is not None:
        return state
    number = choose_anchor(state, means.gap_reading.anchoring, means.gap_reading.hub, in_hand)
    means.incarnations.verify_now(state, means.store)
    return means.store.anchor_partition(state, number, means.clock.now())


def without_stop(state: PartitionState, means: Ingestion) -> PartitionState:
    """Return the state after deleting its stop of reason `incarnation`: the hub is the stream's again."""
    if state.stop_for("incarnation") is None:
        return state
    means.store.clear_stops(state, ["incarnation"])
    return state.without_stops(["incarnation"])


def heal(gap: Gap, means: Ingestion) -> Generator[BatchCommit, None, None]:
    """Commit the events of a gap that the hub holds, and yield each commit. If two owners do so, one of them wins.

    Raises GapNotHealed, HubUnreachable and the faults of a commit. The next try continues after the last commit.
    """
    for piece in pieces(gap, means.gap_reading, means.clock.now):
        yield from _ingest(piece, replace(means, gap_reading=NO_GAP_READING)).commits


def plan_commit(batch: EventBatch, reading: BatchReading, means: Ingestion) -> BatchCommit:
    """DECIDE: return the outcome of every number up to the last new event, as one value."""
    run, first = reading.guarded.run, reading.guarded.first
    order = None if reading.open_letters is None else KeyOrder(reading.open_letters)
    settled = settle(run, reading.references, means.transform, order, batch.partition)
    last, now = run[-1], means.clock.now()
    return BatchCommit(
        state=reading.state,
        commit_id=means.clock.new_id(),
        first=first,
        last=last,
        settled=scheduled(settled, means.letters, means.clock, now),
        transform_version=means.transform.version,
        invocation_id=batch.invocation_id,
        committed_at=now,
        absent=last.sequence_number - first + 1 - len(run),
        gaps=gap_rows(run, Span(first, last.sequence_number), batch.asked) if batch.asked else (),
    )

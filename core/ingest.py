"""Ingest a batch: read the partition, decide, write once. The walk of docs/one-event.md."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from core.commits import BatchCommit, DeadLetter, PartitionState, Settled
from core.dead_letters import LetterPolicy
from core.errors import CheckpointConflict, CommitOutcomeUnknown, DataRefused
from core.events import Event, EventBatch
from core.guard import Gap, Guarded, guard
from core.isolation import Isolation
from core.rows import References
from core.settle import reference_keys, settle
from core.store import Store
from core.transforms import Transform

CONFLICTS = 5  # in a row, before the host has to retry: each one means that another owner went on


@dataclass(frozen=True, slots=True)
class Stamps:
    """What is passed in: the clock (aware UTC), the maker of ids, chance (0 to 1) for backoff, and the letters' policy.

    Without chance every pause is the longest.
    """

    now: Callable[[], datetime]
    new_id: Callable[[], UUID]
    chance: Callable[[], float] = lambda: 1.0
    letters: LetterPolicy = field(default_factory=LetterPolicy)


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of a batch. `redelivered` events were committed before; `gaps` precede what was committed now."""

    batch: EventBatch
    commits: tuple[BatchCommit, ...]
    gaps: tuple[Gap, ...]

    @property
    def redelivered(self) -> int:
        """How many events of the batch the guard dropped."""
        return len(self.batch.events) - sum(commit.events for commit in self.commits)


@dataclass(slots=True)
class Progress:
    """What a batch has come to so far: the commits that stand, the gaps before them, and the one in doubt."""

    commits: list[BatchCommit] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    doubtful: tuple[BatchCommit, Gap | None] | None = None
    conflicts: int = 0

    def reached(self, last: Event) -> bool:
        """Whether the newest commit of ours ends with this event."""
        return bool(self.commits) and self.commits[-1].last is last

    def settle_doubt(self, state: PartitionState) -> None:
        """A commit whose answer was lost stands when the checkpoint carries its id."""
        doubtful, self.doubtful = self.doubtful, None
        if doubtful and state.checkpoint and state.checkpoint.commit_id == doubtful[0].commit_id:
            self.add(*doubtful)

    def add(self, commit: BatchCommit, gap: Gap | None) -> None:
        """This commit stands."""
        self.conflicts = 0
        self.commits.append(commit)
        if gap is not None:
            self.gaps.append(gap)

    def note_conflict(self) -> bool:
        """Whether it is worth another turn: not when one conflict has followed the other for too long."""
        self.conflicts += 1
        return self.conflicts < CONFLICTS


@dataclass(frozen=True, slots=True)
class Reading:
    """What one turn knows before it decides: the partition's state, the new events, and the rows they refer to."""

    state: PartitionState
    guarded: Guarded
    references: References

    def narrowed(self, isolation: Isolation) -> "Reading":
        """The same, with only as many events as may be committed next."""
        return replace(self, guarded=replace(self.guarded, run=isolation.next_run(self.guarded.run)))


def ingest_batch(batch: EventBatch, store: Store, transform: Transform, stamps: Stamps) -> IngestReport:
    """Commit the new events of a batch: each unbroken run of them once, in order, in one transaction.

    Raises InfrastructureFault; what was committed before it stands, and is dropped when the batch comes again.
    """
    progress, isolation = Progress(), Isolation()
    while not progress.reached(batch.events[-1]):
        reading = read(batch, store, transform)
        progress.settle_doubt(reading.state)
        if not reading.guarded.run:
            break
        commit = plan_commit(batch, reading.narrowed(isolation), isolation.around(transform), stamps)
        try:
            store.commit_batch(commit)
        except DataRefused as fault:
            isolation.note_refusal(commit, fault)
        except (CheckpointConflict, CommitOutcomeUnknown) as fault:
            if not progress.note_conflict():
                raise
            if isinstance(fault, CommitOutcomeUnknown):
                progress.doubtful = (commit, reading.guarded.gap)
        else:
            isolation.note_commit(commit)
            progress.add(commit, reading.guarded.gap)
    return IngestReport(batch, tuple(progress.commits), tuple(progress.gaps))


def read(batch: EventBatch, store: Store, transform: Transform) -> Reading:
    """READ: from memory in the steady state, otherwise one call for the state and one for unknown references."""
    state = store.read_partition(batch.partition)
    guarded = guard(batch, state.checkpoint)
    keys = reference_keys(guarded.run, transform)
    return Reading(state, guarded, References(store.read_references(keys) if keys else {}))


def plan_commit(batch: EventBatch, reading: Reading, transform: Transform, stamps: Stamps) -> BatchCommit:
    """DECIDE: the outcome of every new event, as one value."""
    run = reading.guarded.run
    settled, now = settle(run, reading.references, transform), stamps.now()
    return BatchCommit(
        state=reading.state,
        commit_id=stamps.new_id(),
        first=run[0].sequence_number,
        last=run[-1],
        settled=scheduled(settled, now, stamps),
        transform_version=transform.version,
        invocation_id=batch.invocation_id,
        committed_at=now,
    )


def scheduled(settled: Settled, now: datetime, stamps: Stamps) -> Settled:
    """The same, its letters with their first retry, and with their bodies or without."""
    if not settled.letters:
        return settled
    return replace(settled, letters=[_scheduled(letter, now, stamps) for letter in settled.letters])


def _scheduled(letter: DeadLetter, now: datetime, stamps: Stamps) -> DeadLetter:
    policy = stamps.letters
    due_at = now + policy.backoff.pause(1, stamps.chance()) if letter.status == "waiting" else None
    return replace(letter, due_at=due_at, keeps_body=policy.keep_bodies)


def report_facts(report: IngestReport) -> dict[str, object]:
    """What the one log line of a batch says, as fields."""
    batch, settled = report.batch, [commit.settled for commit in report.commits]
    return {
        "action": "ingest",
        "partition": str(batch.partition),
        "first": batch.events[0].sequence_number,
        "last": batch.events[-1].sequence_number,
        "commits": len(report.commits),
        "written": sum(each.written for each in settled),
        "filtered": sum(each.filtered for each in settled),
        "dead_lettered": sum(len(each.letters) for each in settled),
        "redelivered": report.redelivered,
        "gaps": [[gap.first, gap.last] for gap in report.gaps],
        "invocation_id": batch.invocation_id,
    }

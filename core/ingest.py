"""Ingest a batch: read the partition, decide, write once. The walk of docs/one-event.md."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from core.commits import BatchCommit, PartitionState
from core.errors import CheckpointConflict, CommitOutcomeUnknown, DataRefused
from core.events import EventBatch
from core.guard import Gap, Guarded, guard
from core.isolation import Isolation
from core.rows import References
from core.settle import reference_keys, settle
from core.store import Store
from core.transforms import Transform

CONFLICTS = 5  # in a row, before the host has to retry: each one means that another owner went on


@dataclass(frozen=True, slots=True)
class Stamps:
    """Time and chance, passed in: the clock (aware UTC) and the maker of commit ids."""

    now: Callable[[], datetime]
    new_id: Callable[[], UUID]


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


@dataclass(frozen=True, slots=True)
class Reading:
    """What one turn knows before it decides: the partition's state, the new events, and the rows they refer to."""

    state: PartitionState
    guarded: Guarded
    references: References

    def narrowed(self, isolation: Isolation) -> "Reading":
        """The same, with only as many events as may be committed next."""
        run = isolation.next_run(self.guarded.run)
        return self if run is self.guarded.run else replace(self, guarded=replace(self.guarded, run=run))


def ingest_batch(batch: EventBatch, store: Store, transform: Transform, stamps: Stamps) -> IngestReport:
    """Commit the new events of a batch: each unbroken run of them once, in order, in one transaction.

    Raises InfrastructureFault; what was committed before it stands, and is dropped when the batch comes again.
    """
    commits: list[BatchCommit] = []
    gaps: list[Gap] = []
    isolation = Isolation()
    doubtful: BatchCommit | None = None
    before_doubtful: list[Gap] = []
    conflicts = 0
    while not commits or commits[-1].last is not batch.events[-1]:
        reading = read(batch, store, transform)
        if doubtful is not None and _stands(doubtful, reading.state):
            commits.append(doubtful)
            gaps.extend(before_doubtful)
        doubtful = None
        if not reading.guarded.run:
            break
        commit = plan_commit(batch, reading.narrowed(isolation), isolation.around(transform), stamps)
        gap = [] if reading.guarded.gap is None else [reading.guarded.gap]
        try:
            store.commit_batch(commit)
        except DataRefused as fault:
            isolation.note_refusal(commit, fault)
            continue
        except (CheckpointConflict, CommitOutcomeUnknown) as fault:
            conflicts += 1
            if conflicts == CONFLICTS:
                raise
            doubtful, before_doubtful = (commit, gap) if isinstance(fault, CommitOutcomeUnknown) else (None, [])
            continue
        isolation.note_commit(commit)
        conflicts = 0
        commits.append(commit)
        gaps.extend(gap)
    return IngestReport(batch, tuple(commits), tuple(gaps))


def read(batch: EventBatch, store: Store, transform: Transform) -> Reading:
    """READ: from memory in the steady state, otherwise one call for the state and one for unknown references."""
    state = store.read_partition(batch.partition)
    guarded = guard(batch, state.checkpoint)
    keys = reference_keys(guarded.run, transform)
    return Reading(state, guarded, References(store.read_references(keys) if keys else {}))


def plan_commit(batch: EventBatch, reading: Reading, transform: Transform, stamps: Stamps) -> BatchCommit:
    """DECIDE: the outcome of every new event, as one value."""
    run = reading.guarded.run
    return BatchCommit(
        state=reading.state,
        commit_id=stamps.new_id(),
        first=run[0].sequence_number,
        last=run[-1],
        settled=settle(run, reading.references, transform),
        transform_version=transform.version,
        invocation_id=batch.invocation_id,
        committed_at=stamps.now(),
    )


def _stands(doubtful: BatchCommit, state: PartitionState) -> bool:
    """Whether a commit whose answer was lost was made after all: then the checkpoint carries its id."""
    return state.checkpoint is not None and state.checkpoint.commit_id == doubtful.commit_id


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

"""Ingest a batch: read the partition, decide, write once. The walk of docs/one-event.md."""

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from operator import attrgetter

from core.errors import CheckpointConflict, CommitOutcomeUnknown, DataRefused
from core.ingest.anchor import choose_anchor
from core.ingest.gaps import NOT_HEALING, Healing, Wound, gap_rows, pieces
from core.ingest.guard import Guarded, guard
from core.ingest.port import IngestStore
from core.model.clock import Clock
from core.model.commits import BatchCommit, PartitionState
from core.model.events import Event, EventBatch, Partition
from core.model.letters import LetterPolicy
from core.model.rows import References
from core.model.spans import Span
from core.model.transform import Transform
from core.settle.isolate import Isolation
from core.settle.settle import reference_keys, scheduled, settle

CONFLICTS = 5  # in a row, before the host has to retry: each one means that another owner went on

_number = attrgetter("sequence_number")


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What became of a batch, and of the gaps before and inside it: their commits come before those of the batch."""

    batch: EventBatch
    commits: tuple[BatchCommit, ...]
    gaps: tuple[Span, ...]

    @property
    def redelivered(self) -> int:
        """How many events of the batch the guard dropped: committed before, or before the anchor."""
        return len(self.batch.events) - self._taken

    @property
    def healed(self) -> int:
        """How many events were not in the batch and were fetched back from the hub."""
        return sum(commit.events for commit in self.commits) - self._taken

    @property
    def absent(self) -> int:
        """How many numbers the hub no longer had."""
        return sum(commit.absent for commit in self.commits)

    @property
    def _taken(self) -> int:
        return sum(_among(self.batch.events, commit) for commit in self.commits)


def _among(events: tuple[Event, ...], commit: BatchCommit) -> int:
    behind = commit.last.sequence_number + 1
    return bisect_left(events, behind, key=_number) - bisect_left(events, commit.first, key=_number)


@dataclass(slots=True)
class Progress:
    """What a batch has come to so far: the commits that stand, the gaps that were healed, and the commit in doubt."""

    commits: list[BatchCommit] = field(default_factory=list)
    gaps: list[Span] = field(default_factory=list)
    doubtful: BatchCommit | None = None
    conflicts: int = 0

    def reached(self, last: Event) -> bool:
        """Whether the newest commit of ours ends with this event."""
        return bool(self.commits) and self.commits[-1].last is last

    def settle_doubt(self, state: PartitionState) -> None:
        """A commit whose answer was lost stands when the checkpoint carries its id."""
        doubtful, self.doubtful = self.doubtful, None
        if doubtful and state.checkpoint and state.checkpoint.commit_id == doubtful.commit_id:
            self.add(doubtful)

    def add(self, commit: BatchCommit) -> None:
        """This commit stands."""
        self.conflicts = 0
        self.commits.append(commit)

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

    def wound(self, batch: EventBatch) -> Wound | None:
        """What has to be healed before the batch goes on."""
        gap = self.guarded.gap
        if gap is None:
            return None
        in_hand = [event for event in self.guarded.run if event.sequence_number <= gap.last]
        return Wound(self.state, gap, in_hand, batch.invocation_id)

    def narrowed(self, isolation: Isolation) -> "Reading":
        """The same, with only as many events as may be committed next."""
        return replace(self, guarded=replace(self.guarded, run=isolation.next_run(self.guarded.run)))


@dataclass(frozen=True, slots=True)
class Means:
    """What a batch is ingested with."""

    store: IngestStore
    transform: Transform
    clock: Clock
    healing: Healing = NOT_HEALING
    letters: LetterPolicy = LetterPolicy()  # noqa: RUF009 - it is frozen


def ingest_batch(batch: EventBatch, means: Means) -> IngestReport:
    """Commit the new events of a batch once, in order, in one transaction; what is missing before them comes first.

    Raises InfrastructureFault; what was committed before it stands, and is dropped when the batch comes again.
    """
    progress, isolation, known = Progress(), Isolation(), batch
    while not progress.reached(batch.events[-1]):
        reading = read(known, means)
        progress.settle_doubt(reading.state)
        if not reading.guarded.run:
            break
        if (wound := reading.wound(known)) is not None:
            known = _heal_batch(known, wound, means, progress)
            continue
        commit = plan_commit(known, reading.narrowed(isolation), isolation.around(means.transform), means)
        try:
            means.store.commit_batch(commit)
        except DataRefused as fault:
            isolation.note_refusal(commit, fault)
        except (CheckpointConflict, CommitOutcomeUnknown) as fault:
            if not progress.note_conflict():
                raise
            if isinstance(fault, CommitOutcomeUnknown):
                progress.doubtful = commit
        else:
            isolation.note_commit(commit)
            progress.add(commit)
    return IngestReport(batch, tuple(progress.commits), tuple(progress.gaps))


def read(batch: EventBatch, means: Means) -> Reading:
    """READ: from memory in the steady state, otherwise one call for the state and one for unknown references."""
    state = read_anchored(batch.partition, means, batch.events[0])
    guarded = guard(batch, state)
    keys = reference_keys(guarded.run, means.transform) if guarded.gap is None else ()
    return Reading(state, guarded, References(means.store.read_references(keys) if keys else {}))


def read_anchored(partition: Partition, means: Means, in_hand: Event | None = None) -> PartitionState:
    """The partition's state; one that has no beginning yet gets it, for good."""
    state = means.store.read_partition(partition)
    if state.checkpoint is not None or state.anchor is not None:
        return state
    number = choose_anchor(state, means.healing.anchoring, means.healing.hub, in_hand)
    return means.store.anchor_partition(state, number, means.clock.now())


def _heal_batch(batch: EventBatch, wound: Wound, means: Means, progress: Progress) -> EventBatch:
    """The batch after what is missing in it was committed; what the hub was asked for and did not have is absent."""
    try:
        means.store.note_gap(wound.state, wound.gap, means.clock.now())
    except CheckpointConflict:  # the state was remembered, and another owner went on meanwhile
        if not progress.note_conflict():
            raise
        return batch
    progress.commits += heal(wound, means)
    progress.gaps.append(wound.gap)
    return replace(batch, asked=wound.gap)


def heal(wound: Wound, means: Means) -> list[BatchCommit]:
    """Commit what the hub holds of a gap, piece by piece; another owner may do the same, and one of them wins.

    Raises GapNotHealed, HubUnreachable or what a commit raises; the next try goes on behind what is committed.
    """
    commits: list[BatchCommit] = []
    for piece in pieces(wound, means.healing, means.clock.now):
        commits += ingest_batch(piece, replace(means, healing=NOT_HEALING)).commits
    return commits


def plan_commit(batch: EventBatch, reading: Reading, transform: Transform, means: Means) -> BatchCommit:
    """DECIDE: the outcome of every number up to the last new event, as one value."""
    run, first = reading.guarded.run, reading.guarded.first
    last, settled, now = run[-1], settle(run, reading.references, transform), means.clock.now()
    return BatchCommit(
        state=reading.state,
        commit_id=means.clock.new_id(),
        first=first,
        last=last,
        settled=scheduled(settled, means.letters, means.clock, now),
        transform_version=transform.version,
        invocation_id=batch.invocation_id,
        committed_at=now,
        absent=last.sequence_number - first + 1 - len(run),
        gaps=gap_rows(run, Span(first, last.sequence_number), batch.asked) if batch.asked else (),
    )


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
        "healed": report.healed,
        "absent": report.absent,
        "invocation_id": batch.invocation_id,
    }

"""Heal a gap at the end of a partition that has fallen silent: no later batch would reveal it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core.errors import CheckpointConflict, InfrastructureFault, PartitionStopped
from core.ingest.gaps import Wound
from core.ingest.ingest import Means, heal, read_anchored, record_stop, without_stop
from core.model.commits import BatchCommit, PartitionState, SequenceGap, Settled
from core.model.events import Partition
from core.model.hub import BEFORE_FIRST, Extent
from core.model.spans import SequenceNumber, Span


@dataclass(frozen=True, slots=True)
class Healed:
    """A gap at the end of a partition, and the commits that closed it."""

    partition: Partition
    gap: Span
    commits: tuple[BatchCommit, ...]

    @property
    def healed(self) -> int:
        """The number of events that were read back from the hub."""
        return sum(commit.events for commit in self.commits)

    @property
    def absent(self) -> int:
        """The number of sequence numbers that the hub no longer had."""
        return sum(commit.absent for commit in self.commits)


@dataclass(frozen=True, slots=True)
class Unhealed:
    """A partition that could not be checked or healed."""

    partition: Partition
    fault: InfrastructureFault


@dataclass(frozen=True, slots=True)
class Standstill:
    """A lagging partition: the number that it waits for, and the time at which a check first found it there."""

    waits_for: SequenceNumber
    since: datetime


@dataclass(slots=True)
class SilenceCheck:
    """Checks every partition from time to time; `means.store` must have no memory, because other processes commit too.

    A partition is healed when it has waited for the same number for as long as `grace`, and the hub's newest event is
    at least as old: until then the events may be on their way. If they arrive after all, one of the two commits wins.
    """

    means: Means
    grace: timedelta
    standing: dict[Partition, Standstill] = field(default_factory=dict)

    def run(self, invocation_id: str) -> Iterator[Healed | Unhealed]:
        """Check all partitions once; after a fault, continue with the next partition."""
        for partition in self.means.healing.hub.partitions():
            try:
                healed = self._check(partition, invocation_id)
            except CheckpointConflict:
                continue  # another owner commits there
            except InfrastructureFault as fault:
                if isinstance(fault, PartitionStopped):
                    record_stop(partition, fault, self.means)
                yield Unhealed(partition, fault)
            else:
                if healed is not None:
                    yield healed

    def _check(self, partition: Partition, invocation_id: str) -> Healed | None:
        state = read_anchored(partition, self.means)
        extent = self.means.healing.hub.extent(partition)  # read second: an older end may lie before the checkpoint
        self.means.incarnations.verify_whole(state, self.means.store)
        state = without_stop(state, self.means)
        if extent.last < state.next_number:
            self.standing.pop(partition, None)
            self.means.store.close_gaps(partition)
            if state.stops:  # no event waits: the batch was committed, maybe by another owner
                self.means.store.clear_stops(state, [stop.reason for stop in state.stops])
            return None
        if state.stop_for("store") and self._has_moved(state):
            self.means.store.clear_stops(state, ["store"])
        if not self._has_fallen_silent(state, extent):
            return None
        gap = Span(state.next_number, extent.last)
        self.means.store.note_gap(state, gap, self.means.clock.now())
        commits = heal(Wound(state, gap, (), invocation_id), self.means)
        return Healed(partition, gap, (*commits, *self._close(gap, extent, invocation_id, partition)))

    def _has_moved(self, state: PartitionState) -> bool:
        """Return True when events were committed since the last check."""
        seen = self.standing.get(state.partition)
        return seen is not None and seen.waits_for != state.next_number

    def _has_fallen_silent(self, state: PartitionState, extent: Extent) -> bool:
        now = self.means.clock.now()
        seen = self.standing.get(state.partition)
        if seen is None or seen.waits_for != state.next_number or seen.since > now:  # the clock was ahead
            seen = self.standing[state.partition] = Standstill(state.next_number, now)
        return now - seen.since >= self.grace and now - extent.last_enqueued_at >= self.grace

    def _close(self, gap: Span, extent: Extent, invocation_id: str, partition: Partition) -> list[BatchCommit]:
        """Commit the numbers up to the hub's end as absent; a conflict means that another owner committed first."""
        state = self.means.store.read_partition(partition)
        if state.next_number > gap.last:
            return []
        self.means.incarnations.verify_now(state, self.means.store)
        commit = absent_commit(state, extent, self.means, invocation_id)
        self.means.store.commit_batch(commit)
        return [commit]


@dataclass(frozen=True, slots=True)
class HubEnd:
    """The position of a commit that ends where the hub ends; reading can continue from its offset."""

    sequence_number: SequenceNumber
    offset: str
    enqueued_at: datetime


def absent_commit(state: PartitionState, extent: Extent, means: Means, invocation_id: str) -> BatchCommit:
    """Return a commit that records all numbers up to the hub's end as absent."""
    first, checkpoint = state.next_number, state.checkpoint
    offset = checkpoint.offset if checkpoint else BEFORE_FIRST
    return BatchCommit(
        state=state,
        commit_id=means.clock.new_id(),
        first=first,
        last=HubEnd(extent.last, offset, extent.last_enqueued_at),
        settled=Settled({}, (), 0, 0),
        transform_version=means.transform.version,
        invocation_id=invocation_id,
        committed_at=means.clock.now(),
        absent=extent.last - first + 1,
        gaps=(SequenceGap(first, extent.last, "absent"),),
    )

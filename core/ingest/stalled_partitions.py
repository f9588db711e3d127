"""Heal partitions whose checkpoint stands while the hub is ahead, and move the trigger's own checkpoint forward.

The host keeps a checkpoint of its own for each partition. A reader of the host that died at an event which it cannot
read opens again where this checkpoint is. A healthy one writes over it within a second.

The app's own reader reads such a partition until a different owner commits there again, and lifts its trigger.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from core.errors import CheckpointConflict, InfrastructureFault, PartitionStopped, StoreFault
from core.incarnations.hub_check import Verification
from core.ingest.gaps import Gap, gap_facts
from core.ingest.ingest import Ingestion, heal, read_anchored, record_stop, without_stop
from core.model.commits import BatchCommit, Checkpoint, PartitionState, SequenceGap, Settled
from core.model.events import Partition, SequenceNumber, Span, span
from core.model.ports import BEFORE_FIRST, Extent
from core.settle.partition_store import Partitions

# After its checkpoint was lifted: a dead reader opens again within 30 seconds. The second check of the timer finds it,
# which may come a little less than two minutes later.
MOVES_WITHIN = timedelta(seconds=110)


class HostStorageUnreachable(InfrastructureFault):
    """The storage of the Functions host is not set, does not answer, or refuses us. Its text says which."""


@dataclass(frozen=True, slots=True)
class HostCheckpoint:
    """The trigger's own checkpoint as it was read. Without a number there is none.

    `tag` is its version. `others` are the values beside the position, which stay as they are.
    """

    sequence_number: int = -1
    tag: str | None = None
    others: Mapping[str, str] = field(default_factory=dict)


# Names the first event from a number on that the trigger cannot deliver, in a clause; None when none is known.
Suspect = Callable[[Partition, SequenceNumber], str | None]


class HostCheckpoints(Protocol):
    """Reads and moves the trigger's own checkpoints. Both methods may raise HostStorageUnreachable."""

    def read(self, partition: Partition) -> HostCheckpoint:
        """Return the checkpoint of a partition."""

    def write(self, partition: Partition, position: Checkpoint, found: HostCheckpoint) -> bool:
        """Replace a checkpoint, or make one where none was found. Return False when it has changed since."""


@dataclass(frozen=True, slots=True)
class Lift:
    """The outcome of a lift: the number at which the trigger's checkpoint was found, the number to which it was moved,
    and a clause in words. Without an answer from the storage, `found` is None. Without a move, `moved_to` is None."""

    words: str
    found: int | None = None
    moved_to: int | None = None


def lift(state: PartitionState, host: HostCheckpoints, verification: Verification, store: Partitions) -> Lift:
    """Move the trigger's checkpoint to the one in SQL, never back, and only while the hub is the stream's.

    Raises StreamIncarnationChanged and HubUnreachable. The result says when the storage failed.
    """
    try:
        found = host.read(state.partition)
        checkpoint = state.checkpoint
        if checkpoint is None or checkpoint.offset == BEFORE_FIRST:
            return Lift("SQL has no event to lift its checkpoint to", found.sequence_number)
        if found.sequence_number >= checkpoint.sequence_number:
            words = f"its checkpoint, {found.sequence_number}, is after the one in SQL, or of a former hub"
            is_there = found.sequence_number == checkpoint.sequence_number
            return Lift("its checkpoint was lifted" if is_there else words, found.sequence_number)
        verification.verify_whole(state, store)
        is_moved = host.write(state.partition, checkpoint, found)
    except HostStorageUnreachable as fault:
        return Lift(f"its checkpoint cannot be lifted: {fault}")
    if not is_moved:
        return Lift("its checkpoint moved at the same moment", found.sequence_number)
    return Lift("its checkpoint was lifted", found.sequence_number, checkpoint.sequence_number)


@dataclass(frozen=True, slots=True)
class TriggerPosition:
    """The position of a trigger that stands, while the app's own reader reads its partition.

    `stands_at` is the last number that the trigger had delivered, and `since` the time of the first check that found it
    there. `moved_at` is the time at which the own reader began, or the trigger's own checkpoint last moved by itself.
    `left_at` is the number that it had after the last look. `words` are those that were said last, and `cause` names
    the event at which the trigger stands, if it is known.
    """

    stands_at: int
    since: datetime
    moved_at: datetime
    left_at: int | None = None
    words: str = ""
    cause: str | None = None

    def after(self, lifted: Lift, now: datetime) -> "TriggerPosition":
        """Return the position after a lift."""
        moves = self.left_at is not None and lifted.found is not None and lifted.found > self.left_at
        left_at = next((one for one in (lifted.moved_to, lifted.found) if one is not None), self.left_at)
        return replace(self, moved_at=now if moves else self.moved_at, left_at=left_at, words=lifted.words)

    def stands(self, now: datetime) -> bool:
        """Return True when the trigger has not moved for too long."""
        return now - self.moved_at >= MOVES_WITHIN

    def sentence(self, state: PartitionState) -> str:
        """Return how the trigger stands, for people."""
        count = state.next_number - 1 - self.stands_at
        number = f"stands at {self.stands_at:,}" if self.stands_at >= 0 else "stands before its first event"
        where = f"the trigger of partition {state.partition.partition_id} {number}"
        went = f"{count:,} event{'s' * (count != 1)} went by the app's own reader"
        parts = [f"{where} since {self.since:%H:%M} UTC", went, self.words, *filter(None, [self.cause])]
        return "; ".join(parts)


NOT_RUNNING = datetime.min.replace(tzinfo=UTC)  # the end of a run before the first one
TURN = timedelta(seconds=10)  # of one partition, when others wait too; the commit in hand ends it


@dataclass(frozen=True, slots=True)
class Healed:
    """A gap at the end of a partition, and the commits that closed it. `is_level`: they reach the hub's end."""

    partition: Partition
    gap: Span
    commits: tuple[BatchCommit, ...]
    is_level: bool = True

    @property
    def healed(self) -> int:
        """The number of events that were read back from the hub."""
        return sum(commit.events for commit in self.commits)

    @property
    def absent(self) -> int:
        """The number of sequence numbers that the hub no longer had."""
        return sum(commit.absent for commit in self.commits)

    def facts(self) -> dict[str, object]:
        """Return the fields of the log line."""
        return gap_facts(self.partition, self.gap, self.healed, self.absent)


@dataclass(frozen=True, slots=True)
class Unhealed:
    """A partition that could not be checked or healed."""

    partition: Partition
    fault: InfrastructureFault

    def facts(self) -> dict[str, object]:
        """Return the fields of the log line."""
        error = f"{type(self.fault).__name__}: {self.fault}"
        return {"action": "gap", "partition": str(self.partition), "error": error}


@dataclass(frozen=True, slots=True)
class PartitionStanding:
    """A trigger that stands, in words for people. It is yielded when there is something new to say."""

    partition: Partition
    words: str


Looked = Healed | Unhealed | PartitionStanding


@dataclass(frozen=True, slots=True)
class StalledPartition:
    """A partition that only the checks bring further: the number that comes next, and the time of the first check.

    `trigger` is known from the first commit of the checks on.
    """

    waits_for: SequenceNumber
    since: datetime
    trigger: TriggerPosition | None = None


@dataclass(frozen=True, slots=True)
class HubEnd:
    """The position of a commit that ends where the hub ends. Reading can continue from its offset."""

    sequence_number: SequenceNumber
    offset: str
    enqueued_at: datetime


@dataclass(slots=True)
class SilenceCheck:
    """Checks every partition from time to time. `means.store` must have no memory, because other processes commit too.

    A partition is healed when it has waited for the same number for as long as `grace`, also while new events come. If
    its own events arrive after all, one of the two commits wins. A run ends after the patience of a gap reading. The
    next one begins with the partitions that this one did not reach. `host` has the trigger's own checkpoints, or None
    where there is no host. `suspect` names the event at which a trigger stands.
    """

    means: Ingestion
    grace: timedelta
    host: HostCheckpoints | None = None
    suspect: Suspect | None = None
    standing: dict[Partition, StalledPartition] = field(default_factory=dict)
    due: deque[Partition] = field(default_factory=deque)
    until: datetime = NOT_RUNNING

    def run(self, invocation_id: str) -> Iterator[Looked]:
        """Check all partitions in turn until each is level or the time is up. After a fault, continue with the next."""
        self.until = self.means.clock.now() + self.means.gap_reading.patience
        partitions = self.means.gap_reading.hub.partitions()
        first = [partition for partition in self.due if partition in partitions]  # the last run did not reach them
        self.due = deque([*first, *(partition for partition in partitions if partition not in first)])
        while self.due:
            partition = self.due.popleft()
            try:
                yield from self._check(partition, invocation_id)
            except CheckpointConflict:
                with suppress(StoreFault):  # another owner commits there
                    self._let_go(self.means.store.read_partition(partition))
            except InfrastructureFault as fault:
                if isinstance(fault, PartitionStopped):
                    record_stop(partition, fault, self.means)
                yield Unhealed(partition, fault)
            if self.means.clock.now() >= self.until:
                break

    def _check(self, partition: Partition, invocation_id: str) -> Iterator[Looked]:
        state = read_anchored(partition, self.means)
        extent = self.means.gap_reading.hub.extent(partition)  # read second: an older end may lie before the checkpoint
        self.means.incarnations.verify_whole(state, self.means.store)
        state = without_stop(state, self.means)
        if extent.last < state.next_number:
            if self._has_moved(state):
                self._let_go(state)  # otherwise only the checks bring it further, and it waits for no grace later
            self.means.store.close_gaps(partition)
            if over := [stop.reason for stop in state.stops if stop.reason != "trigger"]:
                self.means.store.clear_stops(state, over)  # the batch was committed, maybe by another owner
            return
        if state.stop_for("store") and self._has_moved(state):
            self.means.store.clear_stops(state, ["store"])
        if not self._stands(state):
            return
        if self.means.journal.has_in_hand(state, self.means.clock.now() - self.grace):
            return  # an attempt tries events of the partition that may kill
        if (healed := self._heal(state, extent, invocation_id)) is not None:
            yield healed
            if healed.is_level:
                yield from self._lift(partition)
            else:
                self.due.append(partition)

    def _let_go(self, state: PartitionState) -> None:
        """Leave a partition to the owner that commits there again."""
        self.standing.pop(state.partition, None)
        if state.stop_for("trigger"):
            self.means.store.clear_stops(state, ["trigger"])

    def _has_moved(self, state: PartitionState) -> bool:
        """Return True when another owner has committed events since the last check."""
        seen = self._seen(state)
        return seen is not None and seen.waits_for != state.next_number

    def _seen(self, state: PartitionState) -> StalledPartition | None:
        """Return the stalled partition as this process saw it, or as a different process recorded it.

        A partition that is further than the record has a trigger that moves again. The record is at most one check old.
        """
        seen, stop = self.standing.get(state.partition), state.stop_for("trigger")
        if seen is not None or stop is None or stop.carried is None:
            return seen
        trigger = TriggerPosition(stop.carried.first - 1, stop.stopped_at, stop.stopped_at)
        return StalledPartition(SequenceNumber(stop.carried.last + 1), stop.stopped_at, trigger)

    def _stands(self, state: PartitionState) -> bool:
        """Return True when no other owner has committed for as long as the grace."""
        now = self.means.clock.now()
        seen = self._seen(state)
        if self._has_moved(state):
            self._let_go(state)
            seen = None
        if seen is None or seen.since > now:  # the clock was ahead
            seen = StalledPartition(state.next_number, now)
        self.standing[state.partition] = seen
        return now - seen.since >= self.grace

    def _heal(self, state: PartitionState, extent: Extent, invocation_id: str) -> Healed | None:
        """Commit the gap, piece by piece, while the turn lasts, and then the numbers that the hub no longer has.

        A hub that sends nothing is waited for until the end of the run, and the next run begins with the others.
        """
        gap, commits, now = Span(state.next_number, extent.last), list[BatchCommit](), self.means.clock.now()
        self.means.store.note_gap(state, gap, now)
        means = replace(self.means, gap_reading=replace(self.means.gap_reading, patience=max(TURN, self.until - now)))
        try:
            with closing(heal(Gap(state, gap, (), invocation_id), means)) as healed:
                for commit in healed:
                    commits.append(commit)
                    if self.means.clock.now() >= now + TURN:
                        break
                else:
                    commits += self._close(gap, extent, invocation_id, state.partition)
        finally:
            self._note_own(state, commits)
        if not commits:
            return None
        reached = commits[-1].last.sequence_number
        return Healed(state.partition, Span(gap.first, reached), tuple(commits), is_level=reached >= gap.last)

    def _note_own(self, state: PartitionState, commits: Sequence[BatchCommit]) -> None:
        """Remember that the own reader brought the partition so far, unless another owner committed in between.

        A second run of this check may have let the partition go meanwhile: then it begins anew.
        """
        following = state.next_number
        for commit in commits:
            if commit.first != following:
                self._let_go(state)
                return
            following = SequenceNumber(commit.last.sequence_number + 1)
        seen = self.standing.get(state.partition)
        if commits and seen is not None:
            begun = TriggerPosition(state.next_number - 1, seen.since, self.means.clock.now())
            self.standing[state.partition] = StalledPartition(following, seen.since, seen.trigger or begun)

    def _lift(self, partition: Partition) -> Iterator[PartitionStanding]:
        """Lift the trigger of a stalled partition. Say so once, and record a trigger that stands for long."""
        seen = self.standing.get(partition)
        if self.host is None or seen is None or seen.trigger is None:
            return
        state, now = self.means.store.read_partition(partition), self.means.clock.now()
        trigger = seen.trigger.after(lift(state, self.host, self.means.incarnations, self.means.store), now)
        if not seen.trigger.words and self.suspect is not None:
            with suppress(InfrastructureFault):  # the events go on, and the words say the rest
                trigger = replace(trigger, cause=self.suspect(partition, SequenceNumber(trigger.stands_at + 1)))
        self.standing[partition] = replace(seen, trigger=trigger)
        if trigger.stands(now):
            read = span(trigger.stands_at + 1, state.next_number - 1)
            self.means.store.note_stop(state, "trigger", trigger.sentence(state), trigger.since, read)
        if trigger.words != seen.trigger.words:
            yield PartitionStanding(partition, trigger.sentence(state))

    def _close(self, gap: Span, extent: Extent, invocation_id: str, partition: Partition) -> list[BatchCommit]:
        """Commit the numbers up to the hub's end as absent. A conflict means that another owner committed first.

        While the hub's newest event is younger than the grace, it may still come, so nothing is absent yet.
        """
        state = self.means.store.read_partition(partition)
        if state.next_number > gap.last or self.means.clock.now() - extent.last_enqueued_at < self.grace:
            return []
        self.means.incarnations.verify_now(state, self.means.store)
        first, checkpoint = state.next_number, state.checkpoint
        offset = checkpoint.offset if checkpoint else BEFORE_FIRST
        commit = BatchCommit(
            state=state,
            commit_id=self.means.clock.new_id(),
            first=first,
            last=HubEnd(extent.last, offset, extent.last_enqueued_at),
            settled=Settled({}, (), 0, 0),
            transform_version=self.means.transform.version,
            invocation_id=invocation_id,
            committed_at=self.means.clock.now(),
            absent=extent.last - first + 1,
            gaps=(SequenceGap(first, extent.last, "absent"),),
        )
        self.means.store.commit_batch(commit)
        return [commit]

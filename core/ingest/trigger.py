"""Lift the trigger of a partition that stands: its own checkpoint is moved forward to the one in SQL.

The host keeps a checkpoint of its own for each partition. A reader of the host that died at an event which it cannot
read opens again where this checkpoint is; a healthy one writes over it within a second.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from core.errors import InfrastructureFault
from core.ingest.incarnation import Verification
from core.model.commits import Checkpoint, PartitionState
from core.model.events import Partition
from core.model.hub import BEFORE_FIRST
from core.model.spans import SequenceNumber
from core.settle.store.partitions import Partitions

# After its checkpoint was lifted: a dead reader opens again within 30 seconds. The second check of the timer finds it,
# which may come a little less than two minutes later.
MOVES_WITHIN = timedelta(seconds=110)


class HostStorageUnreachable(InfrastructureFault):
    """The storage of the Functions host is not set, does not answer, or refuses us; its text says which."""


@dataclass(frozen=True, slots=True)
class HostCheckpoint:
    """The trigger's own checkpoint as it was read; without a number there is none.

    `tag` is its version; `others` are the values beside the position, which stay as they are.
    """

    sequence_number: int = -1
    tag: str | None = None
    others: Mapping[str, str] = field(default_factory=dict)


# Names the first event from a number on that the trigger cannot deliver, in a clause; None when none is known.
Suspect = Callable[[Partition, SequenceNumber], str | None]


def no_suspect(partition: Partition, first: SequenceNumber) -> str | None:
    """Name no event."""
    return None


class HostCheckpoints(Protocol):
    """Reads and moves the trigger's own checkpoints. Both methods may raise HostStorageUnreachable."""

    def read(self, partition: Partition) -> HostCheckpoint:
        """Return the checkpoint of a partition."""

    def write(self, partition: Partition, position: Checkpoint, found: HostCheckpoint) -> bool:
        """Replace a checkpoint, or make one where none was found; return False when it has changed since."""


@dataclass(frozen=True, slots=True)
class Lift:
    """The outcome of a lift: the number at which the trigger's checkpoint was found, the number to which it was moved,
    and a clause in words. Without an answer from the storage, `found` is None; without a move, `moved_to` is None."""

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
            return Lift(_ahead(found, checkpoint), found.sequence_number)
        verification.verify_whole(state, store)
        is_moved = host.write(state.partition, checkpoint, found)
    except HostStorageUnreachable as fault:
        return Lift(f"its checkpoint cannot be lifted: {fault}")
    if not is_moved:
        return Lift("its checkpoint moved at the same moment", found.sequence_number)
    return Lift("its checkpoint was lifted", found.sequence_number, checkpoint.sequence_number)


def _ahead(found: HostCheckpoint, checkpoint: Checkpoint) -> str:
    if found.sequence_number == checkpoint.sequence_number:
        return "its checkpoint was lifted"
    return f"its checkpoint, {found.sequence_number}, is after the one in SQL, or of a former hub"


@dataclass(frozen=True, slots=True)
class Carrying:
    """A partition that the app's own reader carries because its trigger stands.

    `stands_at` is the last number that the trigger had delivered, and `since` the time of the first check that found it
    there. `moved_at` is the time at which the carrying began, or the trigger's own checkpoint last moved by itself;
    `left_at` is the number that it had after the last look. `words` are those that were said last, and `cause` names
    the event at which the trigger stands, if it is known.
    """

    stands_at: int
    since: datetime
    moved_at: datetime
    left_at: int | None = None
    words: str = ""
    cause: str | None = None

    def after(self, lifted: Lift, now: datetime) -> "Carrying":
        """Return the carrying after a lift."""
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

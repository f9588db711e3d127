"""The state of the books: per partition what was accounted for, whether that is all of it, and the lag."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.model.events import Partition, PartitionId
from core.model.spans import SequenceNumber


@dataclass(frozen=True, slots=True)
class PartitionLedger:
    """One partition's ledger, summed. `holes` counts ranges that do not begin where the one before them ended."""

    partition: Partition
    checkpoint: SequenceNumber
    first: SequenceNumber
    last: SequenceNumber
    commits: int
    holes: int
    written: int
    filtered: int
    dead_lettered: int
    held: int
    absent: int
    letters: int

    @property
    def accounted(self) -> int:
        """Events with an outcome."""
        return self.written + self.filtered + self.dead_lettered + self.held + self.absent

    @property
    def balanced(self) -> bool:
        """Every number from the first to the checkpoint has one outcome, and each dead-lettered one its letter."""
        whole = self.holes == 0 and self.last == self.checkpoint
        return whole and self.accounted == self.last - self.first + 1 and self.letters == self.dead_lettered


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """A partition's books beside the hub's end (-1: the hub holds nothing; None: the hub could not be asked)."""

    partition_id: PartitionId
    hub_end: int | None
    ledger: PartitionLedger | None

    @property
    def lag(self) -> int | None:
        """Events in the hub that are not accounted for yet."""
        if self.hub_end is None:
            return None
        if self.hub_end == -1:
            return 0
        return self.hub_end - (self.ledger.checkpoint if self.ledger else -1)


def partition_statuses(
    ledgers: Sequence[PartitionLedger], hub_ends: Mapping[PartitionId, int] | None
) -> tuple[PartitionStatus, ...]:
    """Join the books of one stream with the ends of its hub; a partition is listed when either knows it."""
    books = {ledger.partition.partition_id: ledger for ledger in ledgers}
    ends = hub_ends or {}
    ids = sorted({*books, *ends}, key=lambda id: (len(id), id))
    return tuple(PartitionStatus(id, ends.get(id), books.get(id)) for id in ids)


def balanced(ledgers: Sequence[PartitionLedger]) -> bool:
    """Whether all books are balanced."""
    return all(ledger.balanced for ledger in ledgers)

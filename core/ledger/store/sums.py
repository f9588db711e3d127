"""The sums of a stream's ranges, commit by commit, and the faults in them, from named statements."""

from typing import Any

from core.ledger.faults import FAULT_LIMIT
from core.ledger.store.purged import read_purged
from core.ledger.sums import CheckpointTotals, Commits, LedgerEnds, RangeSum
from core.ledger.whereabouts import Purged
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from core.store.decoding import decoder
from core.store.stream import OneStream

_NO_ENDS = (-1, 0, 0, 0)  # of a partition in a database without its stream


class RangeSums:
    """Sums the ranges of one stream, commit by commit, and finds the faults in them."""

    _stream: OneStream

    def read_ledger_ends(self, partition_id: PartitionId) -> LedgerEnds:
        """Return where a partition ends."""
        found = self._stream.ask("read_ledger_ends", partition_id=partition_id)
        return LedgerEnds(self._stream.stream.partition(partition_id), *(found[0] if found else _NO_ENDS))

    def find_piece_end(self, partition_id: PartitionId, after: int, last: int) -> int | None:
        """Return the last commit up to `last` that has a row, else the next one that has; None when there is none."""
        found = self._stream.ask("find_piece_end", partition_id=partition_id, **Commits(after, last).ends)
        return found[0][0] if found else None

    def sum_ranges(self, partition_id: PartitionId, commits: Commits) -> RangeSum:
        """Return the sum of the ranges of some commits."""
        place = {"partition_id": partition_id, **commits.ends}
        found = self._stream.ask("sum_ranges", **place, previous_last=commits.previous_last)
        if not found:
            return RangeSum(commits.last)
        return RangeSum(commits.last, *found[0])

    def read_totals(self, partition_id: PartitionId) -> CheckpointTotals | None:
        """Return the totals of a partition; None without a checkpoint."""
        found = self._stream.ask("read_totals", partition_id=partition_id)
        return decoder(CheckpointTotals)(found[0]) if found else None

    def read_purged(self, partition_id: PartitionId) -> Purged:
        """Return how far a partition is purged."""
        return read_purged(self._stream, partition_id)

    def sum_absent_gaps(self, partition_id: PartitionId, last: SequenceNumber) -> int:
        """Return the sum of the absent gaps that begin up to a number."""
        found = self._stream.ask("sum_absent_gaps", partition_id=partition_id, last_sequence_number=last)
        return int(found[0][0]) if found else 0

    def move_verified_commit(self, partition_id: PartitionId, commit_number: int, expected: int) -> None:
        """Store the commit up to which there is no fault, unless a different audit has moved the expected one."""
        self._stream.write("move_verified_commit", partition_id, verified_commit=commit_number, expected=expected)

    def find_faults(self, statement: str, partition_id: PartitionId, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that finds faults of a partition: the first ones, at most FAULT_LIMIT."""
        return self._stream.ask(statement, partition_id=partition_id, **{"most": FAULT_LIMIT, **values})

"""The sums of a stream's ranges, commit by commit, and the faults in them, from named statements."""

from typing import Any

from core.ledger.audit import LetterFault, RangeFault, TotalFault
from core.ledger.store.purge_links import PurgeLinks
from core.ledger.sums import COUNTS, CheckpointTotals, Commits, LedgerEnds, RangeSum
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from core.store.decoding import decoded
from core.store.stream import OneStream

_NO_ENDS = (-1, 0, 0, 0)  # of a partition in a database without its stream


class RangeSums(PurgeLinks):
    """A SumStore over one stream."""

    _stream: OneStream

    def read_ledger_ends(self, partition_id: PartitionId) -> LedgerEnds:
        found = self._stream.ask("read_ledger_ends", partition_id=partition_id)
        return LedgerEnds(self._stream.stream.partition(partition_id), *(found[0] if found else _NO_ENDS))

    def find_piece_end(self, partition_id: PartitionId, after: int, last: int) -> int | None:
        found = self._stream.ask("find_piece_end", **_place(partition_id, Commits(after, last)))
        return found[0][0] if found else None

    def sum_ranges(self, partition_id: PartitionId, commits: Commits) -> RangeSum:
        found = self._stream.ask("sum_ranges", **_place(partition_id, commits), previous_last=commits.previous_last)
        if not found:
            return RangeSum(commits.last)
        return RangeSum(commits.last, *found[0])

    def read_totals(self, partition_id: PartitionId) -> CheckpointTotals | None:
        found = self._stream.ask("read_totals", partition_id=partition_id)
        if not found:
            return None
        row, width = found[0], len(COUNTS) + 3
        verified = None if row[width + 1] is None else RangeSum(*row[width + 1 :])
        return CheckpointTotals(RangeSum(*row[:width]), row[width], verified)

    def sum_absent_gaps(self, partition_id: PartitionId, last: SequenceNumber) -> int:
        found = self._stream.ask("sum_absent_gaps", partition_id=partition_id, last_sequence_number=last)
        return int(found[0][0]) if found else 0

    def move_verified_commit(self, partition_id: PartitionId, commit_number: int, expected: int) -> None:
        self._stream.write("move_verified_commit", partition_id, verified_commit=commit_number, expected=expected)

    def find_total_faults(
        self, partition_id: PartitionId, commits: Commits, before: RangeSum, most: int
    ) -> tuple[TotalFault, ...]:
        sums = {f"{name}_before": getattr(before, name) for name in COUNTS}
        found = self._stream.ask("find_total_faults", **_place(partition_id, commits), **sums, most=most)
        return decoded(TotalFault, found)

    def find_range_faults(self, partition_id: PartitionId, commits: Commits, most: int) -> tuple[RangeFault, ...]:
        place = _place(partition_id, commits)
        found = self._stream.ask("find_range_faults", **place, previous_last=commits.previous_last, most=most)
        return decoded(RangeFault, found)

    def find_letter_faults(
        self, partition_id: PartitionId, commits: Commits, at_least: int, most: int
    ) -> tuple[LetterFault, ...]:
        found = self._stream.ask("find_letter_faults", **_place(partition_id, commits), at_least=at_least, most=most)
        return decoded(LetterFault, found)

    def find_missing_commits(
        self, partition_id: PartitionId, commits: Commits, most: int
    ) -> tuple[tuple[int, int], ...]:
        found = self._stream.ask("find_missing_commits", **_place(partition_id, commits), most=most)
        return tuple((first, last) for first, last in found)


def _place(partition_id: PartitionId, commits: Commits) -> dict[str, Any]:
    return {"partition_id": partition_id, "after_commit": commits.after, "last_commit": commits.last}

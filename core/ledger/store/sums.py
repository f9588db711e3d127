"""The sums of a stream's ranges, commit by commit, and the faults in them, from named statements."""

from typing import Any

from core.ledger.faults import LetterFault, RangeFault, TotalFault
from core.ledger.store.purge_stubs import PurgeStubs
from core.ledger.sums import COUNTS, CheckpointTotals, Commits, LedgerEnds, RangeSum
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from core.store.decoding import decoded, decoder
from core.store.stream import OneStream

_NO_ENDS = (-1, 0, 0, 0)  # of a partition in a database without its stream


class RangeSums(PurgeStubs):
    """Sums the ranges of one stream, commit by commit, and finds the faults in them."""

    _stream: OneStream

    def read_ledger_ends(self, partition_id: PartitionId) -> LedgerEnds:
        """Return where a partition ends."""
        found = self._stream.ask("read_ledger_ends", partition_id=partition_id)
        return LedgerEnds(self._stream.stream.partition(partition_id), *(found[0] if found else _NO_ENDS))

    def find_piece_end(self, partition_id: PartitionId, after: int, last: int) -> int | None:
        """Return the last commit up to `last` that has a row, else the next one that has; None when there is none."""
        found = self._stream.ask("find_piece_end", **_place(partition_id, Commits(after, last)))
        return found[0][0] if found else None

    def sum_ranges(self, partition_id: PartitionId, commits: Commits) -> RangeSum:
        """Return the sum of the ranges of some commits."""
        found = self._stream.ask("sum_ranges", **_place(partition_id, commits), previous_last=commits.previous_last)
        if not found:
            return RangeSum(commits.last)
        return RangeSum(commits.last, *found[0])

    def read_totals(self, partition_id: PartitionId) -> CheckpointTotals | None:
        """Return the totals of a partition; None without a checkpoint."""
        found = self._stream.ask("read_totals", partition_id=partition_id)
        return decoder(CheckpointTotals)(found[0]) if found else None

    def sum_absent_gaps(self, partition_id: PartitionId, last: SequenceNumber) -> int:
        """Return the sum of the absent gaps that begin up to a number."""
        found = self._stream.ask("sum_absent_gaps", partition_id=partition_id, last_sequence_number=last)
        return int(found[0][0]) if found else 0

    def move_verified_commit(self, partition_id: PartitionId, commit_number: int, expected: int) -> None:
        """Store the commit up to which there is no fault, unless a different audit has moved the expected one."""
        self._stream.write("move_verified_commit", partition_id, verified_commit=commit_number, expected=expected)

    def find_total_faults(
        self, partition_id: PartitionId, commits: Commits, before: RangeSum, most: int
    ) -> tuple[TotalFault, ...]:
        """Return the first of some commits whose totals are not those of the commit before it and its own counts.

        `before` is the sum of the ranges before these commits. It counts if the ledger has no row of the commit before.
        """
        sums = {f"{name}_before": getattr(before, name) for name in COUNTS}
        found = self._stream.ask("find_total_faults", **_place(partition_id, commits), **sums, most=most)
        return decoded(TotalFault, found)

    def find_range_faults(self, partition_id: PartitionId, commits: Commits, most: int) -> tuple[RangeFault, ...]:
        """Return the first ranges of some commits that do not begin where the range before them ended."""
        place = _place(partition_id, commits)
        found = self._stream.ask("find_range_faults", **place, previous_last=commits.previous_last, most=most)
        return decoded(RangeFault, found)

    def find_letter_faults(
        self, partition_id: PartitionId, commits: Commits, at_least: int, most: int
    ) -> tuple[LetterFault, ...]:
        """Return the first ranges of some commits that count `at_least` letters but have a different number of them."""
        found = self._stream.ask("find_letter_faults", **_place(partition_id, commits), at_least=at_least, most=most)
        return decoded(LetterFault, found)

    def find_missing_commits(
        self, partition_id: PartitionId, commits: Commits, most: int
    ) -> tuple[tuple[int, int], ...]:
        """Return the first ranges of commit numbers, among some commits, for which the ledger has no row."""
        found = self._stream.ask("find_missing_commits", **_place(partition_id, commits), most=most)
        return tuple((first, last) for first, last in found)


def _place(partition_id: PartitionId, commits: Commits) -> dict[str, Any]:
    return {"partition_id": partition_id, "after_commit": commits.after, "last_commit": commits.last}

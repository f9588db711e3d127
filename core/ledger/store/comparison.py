"""The comparison of a stream's tables with each other, partition by partition, from named statements."""

from collections.abc import Mapping

from core.ledger.faults import AbsentFault, AttemptFault, ReplayFault, RetryFault
from core.ledger.sums import Commits
from core.model.events import PartitionId
from core.model.rows import row_table
from core.model.spans import SequenceNumber, Span, span
from core.store.columns import names_of
from core.store.script import of_rows
from core.store.stream import OneStream

BOOKS = (
    "event_hub_checkpoint", "batch_ledger", "event_hub_dead_letter", "dead_letter_attempt", "retracted_row",
    "sequence_gap", "partition_anchor", "purge_stub",
)  # fmt: skip


class Comparison:
    """Compares the tables of one stream, whose rows are of these classes."""

    def __init__(self, stream: OneStream, row_classes: tuple[type, ...]) -> None:
        self._stream = stream
        self._row_classes = row_classes

    def count_incarnations(self) -> tuple[int, int, int]:
        """Count the incarnations of the stream, and return the first and the last one."""
        ((found, first, last),) = self._stream.database.ask("find_incarnations", **names_of(self._stream.stream))
        return found, first or 0, last or 0

    def find_traces(self) -> Mapping[PartitionId, tuple[str, ...]]:
        """Return every partition that a table names, in order of number, with these tables; open gaps do not count."""
        traces: dict[PartitionId, tuple[str, ...]] = {}
        after = ""
        while following := self._next_partitions(after):
            after = min(following.values())
            traces[PartitionId(after)] = tuple(table for table, id in following.items() if id == after)
        return {id: traces[id] for id in sorted(traces, key=lambda id: (len(id), id))}

    def find_absent_faults(self, partition_id: PartitionId, commits: Commits, most: int) -> tuple[AbsentFault, ...]:
        """Return ranges of some commits whose count of absent numbers is not the sum of the absent gaps that begin
        in them."""
        place = {"partition_id": partition_id, "after_commit": commits.after, "last_commit": commits.last}
        found = self._stream.ask("find_absent_faults", **place, most=most)
        return tuple(AbsentFault(*row) for row in found)

    def find_stray_gaps(self, partition_id: PartitionId, most: int) -> tuple[Span, ...]:
        """Return absent gaps that begin in no range that counts absent numbers."""
        found = self._stream.ask("find_stray_gaps", partition_id=partition_id, most=most)
        return tuple(span(first, last) for first, last in found)

    def find_held_faults(self, partition_id: PartitionId, most: int) -> tuple[SequenceNumber, ...]:
        """Return the numbers of letters that are held, although no commit of their number held any event."""
        found = self._stream.ask("find_held_faults", partition_id=partition_id, most=most)
        return tuple(SequenceNumber(number) for (number,) in found)

    def find_attempt_faults(self, partition_id: PartitionId, most: int) -> tuple[AttemptFault, ...]:
        """Return letters whose status is not that of their last attempt, and letters with a hole in their attempts."""
        found = self._stream.ask("find_attempt_faults", partition_id=partition_id, most=most)
        return tuple(AttemptFault(*row) for row in found)

    def find_retry_faults(self, partition_id: PartitionId, most: int) -> tuple[RetryFault, ...]:
        """Return retries whose counts of letters differ from those of the attempts that name them."""
        found = self._stream.ask("find_retry_faults", partition_id=partition_id, most=most)
        return tuple(RetryFault(*row) for row in found)

    def find_replay_faults(self, partition_id: PartitionId, most: int) -> tuple[ReplayFault, ...]:
        """Return replays, dry runs apart, whose progress differs from their commits or their retracted rows."""
        found = self._stream.ask("find_replay_faults", partition_id=partition_id, most=most)
        return tuple(ReplayFault(*row) for row in found)

    def _next_partitions(self, after: str) -> dict[str, str]:
        """Return the next partition in each table that has one."""
        found = self._stream.ask("find_next_partitions", partition_id=after)
        following = dict(zip(BOOKS, found[0], strict=True)) if found else {}
        for row_class in self._row_classes if found else ():
            if not row_table(row_class).key:
                ((next_id,),) = self._stream.ask(of_rows("next_partition", row_class), partition_id=after)
                following[row_table(row_class).name] = next_id
        return {table: id for table, id in following.items() if id is not None}

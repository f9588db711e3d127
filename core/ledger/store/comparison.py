"""The comparison of a stream's tables with each other, partition by partition, from named statements."""

from collections.abc import Mapping

from core.model.events import PartitionId
from core.model.rows import row_table
from core.store.columns import names_of
from core.store.script import of_rows
from core.store.stream import OneStream

BOOKS = (
    "event_hub_checkpoint", "batch_ledger", "event_hub_dead_letter", "dead_letter_attempt", "retracted_row",
    "sequence_gap", "partition_anchor",
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

    def _next_partitions(self, after: str) -> dict[str, str]:
        """Return the next partition in each table that has one."""
        found = self._stream.ask("find_next_partitions", partition_id=after)
        following = dict(zip(BOOKS, found[0], strict=True)) if found else {}
        for row_class in self._row_classes if found else ():
            if not row_table(row_class).key:
                ((next_id,),) = self._stream.ask(of_rows("next_partition", row_class), partition_id=after)
                following[row_table(row_class).name] = next_id
        return {table: id for table, id in following.items() if id is not None}

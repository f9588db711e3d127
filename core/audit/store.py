"""The audit in SQL: each row that a statement returns is a fault, and this module has its words."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from core.audit.faults import (
    FAULT_LIMIT,
    NOTHING,
    CheckpointTotals,
    CommitRows,
    Commits,
    FaultKind,
    LedgerEnds,
    LedgerFault,
    LetteredRow,
    RangeSum,
    RowCount,
)
from core.ledger.store import Ledger, read_purged
from core.ledger.totals import Purged
from core.model.events import PartitionId, SequenceNumber, Span
from core.model.rows import row_table
from core.store.columns import decoder, names_of, span_values
from core.store.database import OneStream
from core.store.script import of_rows

_NO_ENDS = (-1, 0, 0, 0)  # of a partition in a database without its stream
BOOKS = (
    "event_hub_checkpoint", "batch_ledger", "event_hub_dead_letter", "dead_letter_attempt", "retracted_row",
    "sequence_gap", "partition_anchor",
)  # fmt: skip


class AuditStore:
    """Reads for the audit of one stream, whose rows are of these classes."""

    def __init__(self, stream: OneStream, row_classes: tuple[type, ...]) -> None:
        self.ledger = Ledger(stream)
        self.stream = stream
        self._row_classes = row_classes

    def count_incarnations(self) -> tuple[int, int, int]:
        """Count the incarnations of the stream, and return the first and the last one."""
        ((found, first, last),) = self.stream.database.ask("find_incarnations", **names_of(self.stream.stream))
        return found, first or 0, last or 0

    def find_traces(self) -> Mapping[PartitionId, tuple[str, ...]]:
        """Return every partition that a table names, in order of number, with these tables. Open gaps do not count."""
        traces: dict[PartitionId, tuple[str, ...]] = {}
        after = ""
        while following := self._next_partitions(after):
            after = min(following.values())
            traces[PartitionId(after)] = tuple(table for table, id in following.items() if id == after)
        return {id: traces[id] for id in sorted(traces, key=lambda id: (len(id), id))}

    def _next_partitions(self, after: str) -> dict[str, str]:
        """Return the next partition in each table that has one."""
        found = self.stream.ask("find_next_partitions", partition_id=after)
        following = dict(zip(BOOKS, found[0], strict=True)) if found else {}
        for row_class in self._row_classes if found else ():
            if not row_table(row_class).key:
                ((next_id,),) = self.stream.ask(of_rows("next_partition", row_class), partition_id=after)
                following[row_table(row_class).name] = next_id
        return {table: id for table, id in following.items() if id is not None}

    def read_ledger_ends(self, partition_id: PartitionId) -> LedgerEnds:
        """Return where a partition ends."""
        found = self.stream.ask("read_ledger_ends", partition_id=partition_id)
        return LedgerEnds(self.stream.stream.partition(partition_id), *(found[0] if found else _NO_ENDS))

    def find_piece_end(self, partition_id: PartitionId, after: int, last: int) -> int | None:
        """Return the last commit up to `last` that has a row, else the next commit that has a row, or None."""
        found = self.stream.ask("find_piece_end", partition_id=partition_id, **Commits(after, last).ends)
        return found[0][0] if found else None

    def sum_ranges(self, partition_id: PartitionId, commits: Commits) -> RangeSum:
        """Return the sum of the ranges of some commits."""
        place = {"partition_id": partition_id, **commits.ends}
        found = self.stream.ask("sum_ranges", **place, previous_last=commits.previous_last)
        if not found:
            return replace(NOTHING, commit_number=commits.last)
        first, last, count, *outcomes, holes, rows = found[0]
        return decoder(RangeSum)((*outcomes, commits.last, first, last, count, holes, rows))

    def read_totals(self, partition_id: PartitionId) -> CheckpointTotals | None:
        """Return the totals of a partition, or None without a checkpoint."""
        found = self.stream.ask("read_totals", partition_id=partition_id)
        return decoder(CheckpointTotals)(found[0]) if found else None

    def read_purged(self, partition_id: PartitionId) -> Purged:
        """Return how far a partition is purged."""
        return read_purged(self.stream, partition_id)

    def sum_absent_gaps(self, partition_id: PartitionId, last: SequenceNumber) -> int:
        """Return the sum of the absent gaps that begin up to a number."""
        found = self.stream.ask("sum_absent_gaps", partition_id=partition_id, last_sequence_number=last)
        return int(found[0][0]) if found else 0

    def find_faults(self, statement: str, partition_id: PartitionId, **values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement that finds faults of a partition: the first ones, at most FAULT_LIMIT."""
        return self.stream.ask(statement, partition_id=partition_id, **{"most": FAULT_LIMIT, **values})

    def count_replay_letters(self, partition_id: PartitionId) -> tuple[int, int, int | None]:
        """Count the letters that replays have made of events, as recorded, as they exist, and by the checkpoint."""
        found = self.stream.ask("count_replay_letters", partition_id=partition_id)
        made, exist, counted = found[0] if found else (0, 0, None)
        return made, exist, counted

    def find_row_faults(self, partition_id: PartitionId, span: Span, most: int) -> tuple[CommitRows, ...]:
        """Return the first commits that lie wholly in a range and appended more or fewer rows than the tables hold."""
        place = {"partition_id": partition_id, **span_values(span), "most": most}
        found = self.stream.ask(of_rows("find_row_faults", *self._row_classes), **place)
        return tuple(CommitRows(*row) for row in found)

    def find_lettered_rows(self, partition_id: PartitionId, span: Span, most: int) -> tuple[LetteredRow, ...]:
        """Return the first letters of a range that are not resolved, although rows of their number were appended."""
        place = {"partition_id": partition_id, **span_values(span), "most": most}
        appended = [row_class for row_class in self._row_classes if not row_table(row_class).key]
        return tuple(
            LetteredRow(number, status, row_table(row_class).name)
            for row_class in appended
            for number, status in self.stream.ask(of_rows("find_lettered", row_class), **place)
        )

    def count_rows(self, partition_id: PartitionId, span: Span) -> tuple[RowCount, ...]:
        """Count the rows of each table in a range, and those that no commit of theirs accounts for."""
        counted = []
        for row_class in self._row_classes:
            table = row_table(row_class)
            found = self.stream.ask(of_rows("count_rows", row_class), partition_id=partition_id, **span_values(span))
            counted += [RowCount(table.name, *counts) for counts in found]
        return tuple(counted)


_COMPARED = ("find_stray_gaps", "find_held_faults", "find_attempt_faults", "find_retry_faults", "find_replay_faults")
_REPLAYED = "replay {0} counts {3} events written, {5} rows written and {7} retracted, but its commits count"
_TRIED = (
    "commit {0} (retry) tried {3} letters and resolved {4}, but {5} attempts name it, and {6} of them resolved a letter"
)

# What a row of each statement tells: the kind, the places of the first and the last number in it, and the words.
_TOLD: Mapping[str, tuple[FaultKind, int, int, str]] = {
    "find_letter_faults": ("letters", 1, 2, "commit {0} dead-lettered {3} events, but has {4} letters"),
    "find_total_faults": (
        "totals", 1, 2, "the totals of commit {0} are not those of the commit before it and its own counts",
    ),
    "find_absent_faults": (
        "absent", 1, 2, "commit {0} counts {3} absent numbers, but the gaps that begin in its range have {4}",
    ),
    "find_stray_gaps": (
        "absent", 0, 1, "the gap from {0} to {1} is absent, but no range counts its numbers as absent",
    ),
    "find_held_faults": ("held", 0, 0, "letter {0} is held, but no commit of its number held any event"),
    "find_retry_faults": ("attempts", 1, 2, _TRIED),
    "find_replay_faults": ("replays", 1, 2, _REPLAYED + " {4} and {6} written, and {8} retracted rows exist"),
}  # fmt: skip


def find_faults(store: AuditStore, id: PartitionId, statement: str, **values: Any) -> Iterator[LedgerFault]:
    """Yield the first faults of a partition that a statement finds."""
    for row in store.find_faults(statement, id, **values):
        if statement == "find_range_faults":
            yield _range(id, *row)
        elif statement == "find_attempt_faults":
            yield LedgerFault(id, "attempts", row[0], row[0], _attempts(*row))
        else:
            kind, first, last, words = _TOLD[statement]
            yield LedgerFault(id, kind, row[first], row[last], words.format(*row))


def compare_tables(store: AuditStore, id: PartitionId) -> Iterator[LedgerFault]:
    """Yield the faults of a partition's gaps, letters, attempts and replays, besides those of absent numbers."""
    for statement in _COMPARED:
        yield from find_faults(store, id, statement)


def _range(id: PartitionId, commit: int, previous_last: SequenceNumber, first: SequenceNumber) -> LedgerFault:
    where = f"commit {commit} begins at {first}, but the range before it ends at {previous_last}"
    if first > previous_last:
        return LedgerFault(id, "hole", SequenceNumber(previous_last + 1), SequenceNumber(first - 1), where)
    return LedgerFault(id, "overlap", first, previous_last, where)


def _attempts(number: SequenceNumber, status: str, attempts: int, newest: int, newest_status: str | None) -> str:
    """Tell of a letter whose attempts do not lead to its status. The last attempt left it `newest_status`."""
    if attempts != newest:
        return f"letter {number} has {attempts} attempts, but the last one is attempt {newest}"
    if newest_status is None:
        return f"letter {number} is {status}, but it has no attempt"
    return f"letter {number} is {status}, but its last attempt left it {newest_status}"

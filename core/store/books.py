"""The books and the audit of a stream, from named statements of either engine."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from core.ledger.audit import LetterFault, RangeFault, RememberedSum
from core.ledger.books import CountedLetters, PartitionBooks
from core.ledger.recount import CommitRows, RowCount
from core.ledger.status import PartitionLedger
from core.letters.listing import LetterKey
from core.model.commits import LetterStatus
from core.model.events import PartitionId
from core.model.rows import row_table
from core.model.spans import SequenceNumber, Span
from core.store.named import NamedStream
from core.store.records import instant_of, instant_text

REMEMBERED_FROM = 200  # ranges that a reader summed: so many are worth writing the sum down
STATUSES: tuple[LetterStatus, ...] = ("waiting", "retrying", "held", "exhausted", "resolved", "discarded")


class BookReading:
    """A BookStore, a WatchStore, an AuditStore and a RecountStore over one stream of an engine."""

    def __init__(self, stream: NamedStream, row_classes: tuple[type, ...]) -> None:
        self._stream = stream
        self._row_classes = row_classes

    def read_books(self) -> tuple[PartitionBooks, ...]:
        """See BookStore."""
        books = tuple(_books(row) for row in self._stream.ask("read_books"))
        for one in books:
            if one.fresh_commits >= REMEMBERED_FROM:
                self._remember(one)
        return books

    def count_letters(self) -> CountedLetters:
        """See BookStore."""
        found = self._stream.ask("count_letters")
        if not found:
            return CountedLetters({}, 0)
        *counts, replayed = found[0]
        return CountedLetters(dict(zip(STATUSES, counts, strict=True)), replayed)

    def find_oldest_letter(self, statuses: Sequence[LetterStatus]) -> LetterKey | None:
        """See BookStore."""
        found = [row for status in statuses for row in self._stream.ask("find_oldest_letter", status=status)]
        keys = [LetterKey(instant_of(at), PartitionId(id), SequenceNumber(number)) for at, id, number in found]
        return min(keys, key=lambda key: key.failed_at, default=None)

    def read_last_batches(self) -> Mapping[PartitionId, datetime]:
        """See WatchStore."""
        return {PartitionId(id): instant_of(at) for id, at in self._stream.ask("read_last_batches")}

    def count_absent(self, since: datetime) -> int:
        """See WatchStore."""
        found = self._stream.ask("count_absent", since_at=instant_text(since))
        return int(found[0][0]) if found else 0

    def audit_ledgers(self, partition_id: PartitionId | None) -> tuple[PartitionLedger, ...]:
        """See AuditStore."""
        found = self._stream.ask("audit_ledgers", partition_id=partition_id)
        return tuple(PartitionLedger(self._stream.of(PartitionId(id)), *sums) for id, *sums in found)

    def find_anchor(self, partition_id: PartitionId) -> SequenceNumber | None:
        """See AuditStore."""
        found = self._stream.ask("read_anchor", partition_id=partition_id)
        return found[0][0] if found else None

    def find_range_faults(self, partition_id: PartitionId, most: int) -> tuple[RangeFault, ...]:
        """See AuditStore."""
        found = self._stream.ask("find_range_faults", partition_id=partition_id, most=most)
        return tuple(RangeFault(*row) for row in found)

    def find_letter_faults(self, partition_id: PartitionId, at_least: int, most: int) -> tuple[LetterFault, ...]:
        """See AuditStore."""
        found = self._stream.ask("find_letter_faults", partition_id=partition_id, at_least=at_least, most=most)
        return tuple(LetterFault(*row) for row in found)

    def find_stale_sum(self, partition_id: PartitionId) -> RememberedSum | None:
        """See AuditStore."""
        found = self._stream.ask("find_stale_sum", partition_id=partition_id)
        return RememberedSum(*found[0]) if found else None

    def find_missing_commits(self, partition_id: PartitionId, most: int) -> tuple[tuple[int, int], ...]:
        """See AuditStore."""
        found = self._stream.ask("find_missing_commits", partition_id=partition_id, most=most)
        return tuple((first, last) for first, last in found)

    def count_replay_letters(self, partition_id: PartitionId) -> tuple[int, int]:
        """See AuditStore."""
        found = self._stream.ask("count_replay_letters", partition_id=partition_id)
        return (found[0][0], found[0][1]) if found else (0, 0)

    def find_absent(self, partition_id: PartitionId, span: Span, most: int) -> tuple[Span, ...]:
        """See RecountStore."""
        found = self._stream.ask("find_absent", partition_id=partition_id, **_ends(span), most=most)
        return tuple(Span(SequenceNumber(first), SequenceNumber(last)) for first, last in found)

    def find_row_faults(self, partition_id: PartitionId, span: Span, most: int) -> tuple[CommitRows, ...]:
        """See RecountStore."""
        stream_id = self._stream.find()
        if stream_id is None:
            return ()
        place = {"stream_id": stream_id, "partition_id": partition_id, **_ends(span), "most": most}
        return tuple(CommitRows(*row) for row in self._stream.engine.find_row_faults(self._row_classes, **place))

    def count_rows(self, partition_id: PartitionId, span: Span) -> tuple[RowCount, ...]:
        """See RecountStore."""
        stream_id = self._stream.find()
        if stream_id is None:
            return ()
        counted, place = [], {"stream_id": stream_id, "partition_id": partition_id, **_ends(span)}
        for row_class in self._row_classes:
            table = row_table(row_class)
            counts = self._stream.engine.count_rows(row_class, **place)
            counted.append(RowCount(table.name, bool(table.key), *counts))
        return tuple(counted)

    def _remember(self, books: PartitionBooks) -> None:
        """Of two readers at once one writes: both have read the same."""
        values: dict[str, Any] = {
            "partition_id": books.partition_id,
            "commit_number": books.commit_number,
            "last_sequence_number": books.last,
            **{name: getattr(books, name) for name in _SUMS},
        }
        if books.summed_to is None:
            self._stream.tell("open_sum", **values, first_sequence_number=books.first)
        else:
            self._stream.tell("advance_sum", **values, expected=books.summed_to)


_SUMS = ("commits", "holes", "written", "filtered", "dead_lettered", "held", "absent")


def _ends(span: Span) -> dict[str, SequenceNumber]:
    return {"first_sequence_number": span.first, "last_sequence_number": span.last}


def _books(row: tuple[Any, ...]) -> PartitionBooks:
    values = list(row)
    values[2] = instant_of(values[2])
    return PartitionBooks(*values)

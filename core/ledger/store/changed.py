"""Find commits that changed: their rows, or their rows in the ledger, do not fit their checksums."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from itertools import islice
from typing import Any

from core.ledger.faults import ChangedCommit
from core.model.events import PartitionId
from core.model.rows import ERASED, row_table
from core.model.spans import SequenceNumber, Span
from core.store.checksum import LEDGER_ROW, CommitDigest, ledger_checksum, positioned_values
from core.store.columns import day_text, fields_of, instant_of, instant_text, span_values, types_of
from core.store.decoding import row_of_json
from core.store.script import of_rows
from core.store.stream import OneStream

NUMBERS = 20_000  # whose rows are in memory at once

Values = list[Any]


@dataclass(slots=True)
class _Commit:
    """A commit that begins in a range, and the digest of its rows so far."""

    found: ChangedCommit
    rows_checksum: int
    rows: CommitDigest = field(default_factory=CommitDigest)


class ChangedCommits:
    """Reads the commits and the rows of one partition again, in the order of their numbers."""

    def __init__(self, stream: OneStream, row_classes: tuple[type, ...], partition_id: PartitionId) -> None:
        self._stream = stream
        self._partition_id = partition_id
        self._appended = {row_table(each).name: each for each in row_classes if not row_table(each).key}
        self._open: dict[int, _Commit] = {}

    def find(self, span: Span, most: int) -> tuple[ChangedCommit, ...]:
        """Return the first commits wholly in a range whose rows or whose row in the ledger are different now."""
        return tuple(islice(self._changed(span), most))

    def _changed(self, span: Span) -> Iterator[ChangedCommit]:
        for part in self._parts(span):
            for commit, ledger_fits in self._commits(part):
                self._open[commit.found.commit_number] = commit
                if not ledger_fits:
                    yield commit.found
            self._add_rows(part)
            yield from self._closed(part.last)
        yield from self._closed(span.last)

    def _closed(self, last: SequenceNumber) -> Iterator[ChangedCommit]:
        """Yield the commits up to a number that changed; all their rows were added."""
        for number in [number for number, one in self._open.items() if one.found.last <= last]:
            closed = self._open.pop(number)
            if closed.rows.total() != closed.rows_checksum:
                yield replace(closed.found, rows=True)

    def _parts(self, span: Span) -> Iterator[Span]:
        """Cut the span into parts, and leave out numbers at which no table has anything."""
        first = self._next_number(span.first)
        while first is not None and first <= span.last:
            last = SequenceNumber(min(first + NUMBERS - 1, span.last))
            yield Span(first, last)
            first = self._next_number(SequenceNumber(last + 1)) if last < span.last else None

    def _next_number(self, first: SequenceNumber) -> SequenceNumber | None:
        place = {"partition_id": self._partition_id, "first_sequence_number": first}
        found = self._stream.ask("find_next_numbers", **place)
        for row_class in self._appended.values():
            found += self._stream.ask(of_rows("next_number", row_class), **place)
        return min((number for row in found for number in row if number is not None), default=None)

    def _commits(self, part: Span) -> Iterator[tuple[_Commit, bool]]:
        for row in sorted(self._ask("read_checked_commits", part)):
            commit_number, kind, *values, rows_checksum, checksum = row
            named = dict(zip(LEDGER_ROW, values, strict=True))
            named["committed_at"] = instant_text(instant_of(named["committed_at"]))
            found = ChangedCommit(commit_number, kind, values[0], values[1], rows=False)
            yield _Commit(found, rows_checksum), checksum == ledger_checksum(kind, named)

    def _add_rows(self, part: Span) -> None:
        for table, number, rows in self.rows_of(part):
            if number in self._open:
                self._open[number].rows.add(table, rows)

    def rows_of(self, part: Span) -> Iterator[tuple[str, int, list[Values]]]:
        """Yield the rows of a range by table and commit, in order: those that stand, and those that replays took away.
        Erased ones are left out."""
        taken = self._retracted(part)
        for table, row_class in self._appended.items():
            of_commit: dict[int, list[Values]] = taken.get(table, defaultdict(list))
            merged = set(of_commit)
            read = _reader(row_class)
            for commit_number, *values in self._ask(of_rows("select_range", row_class), part):
                of_commit[commit_number].append(read(values))
            for number, rows in of_commit.items():
                yield table, number, sorted(rows, key=lambda row: (row[0], row[1])) if number in merged else rows

    def _retracted(self, part: Span) -> dict[str, dict[int, list[Values]]]:
        """Return the rows that replays took away, by table and by the commit that wrote them."""
        taken: dict[str, dict[int, list[Values]]] = {}
        for table, number, ordinal, commit_number, document in self._ask("read_retracted_range", part):
            row_class = self._appended.get(table)
            if row_class is None or document == ERASED:
                continue
            values = _values_of(row_class, number, ordinal, document)
            taken.setdefault(table, defaultdict(list))[commit_number].append(values)
        return taken

    def _ask(self, statement: Any, part: Span) -> list[tuple[Any, ...]]:
        return self._stream.ask(statement, partition_id=self._partition_id, **span_values(part))


def _values_of(row_class: type, number: int, ordinal: int, document: str) -> Values:
    """Return the values of a row from its document; a document that is no row of the class fits no checksum."""
    try:
        ((*values,),) = positioned_values(row_class)([(number, ordinal, row_of_json(row_class, document))])
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return [number, ordinal, document]
    return list(values)


@cache
def _reader(row_class: type) -> Callable[[Values], Values]:
    """Return a function that turns the values of a row, in place, into the form in which they were written."""
    writers = [(place, _writer(hint)) for place, (_, hint) in enumerate(fields_of(row_class), start=2)]
    given = [(place, writer) for place, writer in writers if writer is not None]

    def read(values: Values) -> Values:
        for place, writer in given:
            if values[place] is not None:
                with suppress(ArithmeticError, TypeError, ValueError):  # a value that no commit wrote fits no checksum
                    values[place] = writer(values[place])
        return values

    return read


def _writer(hint: Any) -> Callable[[Any], Any] | None:
    """Return the function that writes a value of a column as the store wrote it; None where both are the same."""
    types = types_of(hint)
    if datetime in types:
        return lambda value: value if isinstance(value, str) else instant_text(instant_of(value))
    if date in types:
        return lambda value: value if isinstance(value, str) else day_text(value)
    if Decimal in types:
        return Decimal
    if float in types:
        return float
    return bool if bool in types else None

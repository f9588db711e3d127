"""The checksums of commits that lose rows to an erasure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.ledger.erasure.found import CommitMark
from core.ledger.store.changed import NUMBERS, ChangedCommits
from core.model.events import PartitionId
from core.model.spans import SequenceNumber, Span, span
from core.store.checksum import CommitDigest
from core.store.columns import numbers_json
from core.store.stream import OneStream

Places = Collection[tuple[str, int, int]]  # table, sequence number, ordinal


@dataclass(slots=True)
class _CommitSums:
    """The digests of a commit's rows: of all that stand, and of those that an erasure leaves."""

    stored: int
    standing: CommitDigest = field(default_factory=CommitDigest)
    left: CommitDigest = field(default_factory=CommitDigest)

    def mark(self, commit_number: int) -> CommitMark:
        """Return the new checksum. A commit that had changed before keeps its own, so that an audit still names it."""
        fits = self.standing.total() == self.stored
        return CommitMark(commit_number, self.stored, self.left.total() if fits else self.stored)


class Marks:
    """Computes the checksums of commits of one partition without some of their rows."""

    def __init__(self, stream: OneStream, row_classes: tuple[type, ...], partition_id: PartitionId) -> None:
        self._stream = stream
        self._partition_id = partition_id
        self._rows = ChangedCommits(stream, row_classes, partition_id)

    def of(self, commit_numbers: Collection[int], gone: Places) -> tuple[CommitMark, ...]:
        """Return the marks of commits that lose the rows at these places. Commits that were purged have none."""
        numbers = numbers_json([SequenceNumber(number) for number in sorted(commit_numbers)])
        found = self._ask("read_commits_to_mark", commit_numbers=numbers)
        sums = {number: _CommitSums(stored) for number, *_, stored in found}
        batches = [row for row in found if row[1] == "batch"]
        if batches:
            whole = Span(SequenceNumber(batches[0][2]), SequenceNumber(batches[-1][3]))
            self._add({row[0]: sums[row[0]] for row in batches}, [whole], gone)
        for number, kind, first, last, _ in found:
            if kind == "retry":  # its letters may lie far apart
                self._add({number: sums[number]}, self._retried(number, span(first, last)), gone)
            elif kind == "replay":
                self._add({number: sums[number]}, [span(first, last)], gone)
        return tuple(one.mark(number) for number, one in sums.items())

    def _add(self, sums: Mapping[int, _CommitSums], spans: Collection[Span], gone: Places) -> None:
        for part in _parts(spans):
            for table, number, rows in self._rows.rows_of(part):
                if number in sums:
                    sums[number].standing.add(table, rows)
                    sums[number].left.add(table, [row for row in rows if (table, row[0], row[1]) not in gone])

    def _retried(self, commit_number: int, reach: Span) -> list[Span]:
        ends = {"first_sequence_number": reach.first, "last_sequence_number": reach.last}
        found = self._ask("read_retried_numbers", **ends, commit_number=commit_number)
        return [span(number, number) for (number,) in found]

    def _ask(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        return self._stream.ask(statement, partition_id=self._partition_id, **values)


def _parts(spans: Collection[Span]) -> Iterator[Span]:
    """Cut spans into parts whose rows the memory holds."""
    for one in spans:
        for first in range(one.first, one.last + 1, NUMBERS):
            yield span(first, min(first + NUMBERS - 1, one.last))

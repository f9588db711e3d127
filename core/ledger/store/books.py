"""The books of a stream: the remembered sums, and the ranges since, which are read in pieces."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from core.errors import LedgerNotSummed
from core.ledger.books import PartitionBooks
from core.ledger.store.sums import RangeSums
from core.ledger.sums import COUNTS, PIECE, Commits, Pieces, pieces
from core.store.decoding import decoded

REMEMBERED_FROM = 200  # ranges; a reader that summed so many stores the sum
_SUMS = (*COUNTS, "holes")


@dataclass(frozen=True, slots=True)
class Summing:
    """The limits of a reader: the most commits of each partition that it reads at once, the commits of a piece of those
    before, and the seconds after which it ends, by the clock of its stream."""

    most: int = 10_000
    piece: int = PIECE
    seconds: float = 10.0


class BookSums(RangeSums):
    """Reads the books of one stream."""

    summing = Summing()

    def read_books(self) -> tuple[PartitionBooks, ...]:
        deadline = self._stream.monotonic() + self.summing.seconds
        books = self._read()
        while any(self._reach(one) < one.commit_number for one in books):
            self._catch_up(books, deadline)
            books = self._read()
        for one in books:
            if one.fresh_commits >= REMEMBERED_FROM:
                self._remember(one)
        return books

    def remember_books(self) -> None:
        """Store the sums of all ranges, however few are new."""
        for one in self.read_books():
            if one.fresh_commits:
                self._remember(one)

    def _read(self) -> tuple[PartitionBooks, ...]:
        return decoded(PartitionBooks, self._stream.ask("read_books", most=self.summing.most))

    def _reach(self, books: PartitionBooks) -> int:
        """Return the last commit that the statement read."""
        return min(books.commit_number, (books.summed_to or 0) + self.summing.most)

    def _catch_up(self, books: tuple[PartitionBooks, ...], deadline: float) -> None:
        """Sum the ranges that the statement did not reach, piece by piece, and store each sum."""
        read = [replace(one, commit_number=self._reach(one)) for one in books]
        reached = {one.partition_id: one.commit_number for one in read}
        short = [(one, whole) for one, whole in zip(read, books, strict=True) if one != whole]
        for one, _ in short:
            self._remember(one)
        for one, whole in short:
            for summed in self._sums_after(one, whole.commit_number):
                self._remember(summed)
                reached[one.partition_id] = summed.commit_number
                if self._stream.monotonic() >= deadline:
                    commits = sum(each.commit_number for each in books)
                    raise LedgerNotSummed(self._stream.stream.event_hub, sum(reached.values()), commits)

    def _sums_after(self, summed: PartitionBooks, last: int) -> Iterator[PartitionBooks]:
        """Yield the books up to each commit at which a piece ends."""
        cut = Pieces(self.summing.piece)
        for after, end in pieces(self, summed.partition_id, summed.commit_number, last, cut):
            piece = self.sum_ranges(summed.partition_id, Commits(after, end, summed.last))
            added = {name: getattr(summed, name) + getattr(piece, name) for name in _SUMS}
            highest = max(summed.last, piece.last)
            summed = replace(summed, commit_number=end, summed_to=after, last=highest, **added)
            yield summed

    def _remember(self, books: PartitionBooks) -> None:
        """Store a sum. If two readers do so at once, one of them writes; both read the same sum."""
        values: dict[str, Any] = {
            "commit_number": books.commit_number,
            "last_sequence_number": books.last,
            **{name: getattr(books, name) for name in _SUMS},
        }
        if books.summed_to is None:
            self._stream.write("open_sum", books.partition_id, **values, first_sequence_number=books.first)
        else:
            self._stream.write("advance_sum", books.partition_id, **values, expected=books.summed_to)

"""Ranges of sequence numbers: one type, and the walks over it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NewType

SequenceNumber = NewType("SequenceNumber", int)


@dataclass(frozen=True, slots=True)
class Span:
    """Sequence numbers, both ends included."""

    first: SequenceNumber
    last: SequenceNumber

    @property
    def ends(self) -> tuple[SequenceNumber, SequenceNumber]:
        return self.first, self.last

    @property
    def length(self) -> int:
        return self.last - self.first + 1

    def holds(self, other: "Span") -> bool:
        """Return True when every number of the other span is in this one."""
        return self.first <= other.first and other.last <= self.last

    def overlap(self, other: "Span") -> "Span | None":
        """Return the numbers that are in both spans; None when there are none."""
        first, last = max(self.first, other.first), min(self.last, other.last)
        return Span(first, last) if first <= last else None

    def runs(self, numbers: Iterable[int]) -> "Iterator[tuple[Span, bool]]":
        """Cut the span into runs of numbers that are given (True) and runs of numbers that are not (False).

        The given numbers must rise, come once each, and lie in the span.
        """
        following = int(self.first)
        for _, run in groupby(enumerate(numbers), key=lambda placed: placed[1] - placed[0]):
            given = [number for _, number in run]
            if given[0] > following:
                yield span(following, given[0] - 1), False
            yield span(given[0], given[-1]), True
            following = given[-1] + 1
        if following <= self.last:
            yield span(following, self.last), False

    def holes(self, numbers: Iterable[int]) -> "list[Span]":
        """Return the runs of this span without any given number; the numbers are as for `runs`."""
        return [run for run, is_given in self.runs(numbers) if not is_given]


def span(first: int, last: int) -> Span:
    """Return a span of plain numbers."""
    return Span(SequenceNumber(first), SequenceNumber(last))


def joined(before: Sequence[Span], after: Sequence[Span], limit: int) -> tuple[Span, ...]:
    """Return both lists as one, with touching spans joined; spans above the limit are left out."""
    spans = list(before)
    for one in after:
        if spans and spans[-1].last + 1 == one.first:
            spans[-1] = Span(spans[-1].first, one.last)
        elif len(spans) < limit:
            spans.append(one)
    return tuple(spans)

"""Find the places of a key: letters with this partition key, and rows whose declared subject has this value.

No index has the key, so the numbers of each partition are read downwards, some at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from core.model.events import PartitionId
from core.model.rows import row_table
from core.model.spans import SequenceNumber, Span, span


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """A number that carries the key: the tables that have rows of it, and whether it has a letter."""

    partition_id: PartitionId
    sequence_number: SequenceNumber
    letter: bool
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeySearch:
    """The numbers of each partition to search. A page has at most `most` places, and ends when `is_over` is true."""

    spans: Mapping[PartitionId, Span]
    most: int
    is_over: Callable[[], bool]


Before = tuple[PartitionId, int]  # where a page ends: the next one begins before this number
ReadPlaces = Callable[[PartitionId, Span], tuple[Sequence[KeyPlace], int]]  # the last places, and where they begin


def find_places(search: KeySearch, after: Before | None, read: ReadPlaces) -> tuple[list[KeyPlace], Before | None]:
    """Return the places of a page, the newest of each partition first, and where the next page begins, if any."""
    found: list[KeyPlace] = []
    for id, reach in _left(search, after):
        while reach.length > 0:
            places, begins = read(id, reach)
            found += places
            if len(found) >= search.most:
                return found[: search.most], (id, found[search.most - 1].sequence_number)
            if search.is_over():
                return found, (id, begins)
            reach = span(reach.first, begins - 1)
    return found, None


def _left(search: KeySearch, after: Before | None) -> Iterator[tuple[PartitionId, Span]]:
    """Yield the numbers of each partition that no earlier page has read."""
    for id in sorted(search.spans):
        if after is None or id > after[0]:
            yield id, search.spans[id]
        elif id == after[0]:
            yield id, span(search.spans[id].first, min(search.spans[id].last, after[1] - 1))


def sentence_of(row_classes: Sequence[type]) -> str:
    """Say in words where a search looks, and what it cannot find."""
    tables = [row_table(one) for one in row_classes]
    declared = [f"{one.name}.{one.subject}" for one in tables if one.subject]
    others = ", ".join(one.name for one in tables if not one.subject)
    looked = " and in ".join(["the partition keys of letters", *([", ".join(declared)] if declared else [])])
    hidden = ["an event that was filtered", "a letter whose event was sent with a different partition key or none"]
    if any(one.key for one in tables):
        hidden.append("an event whose state a newer event has replaced")
    if others:
        hidden.append(f"a row of {others}, because no subject is declared there")
    return f"Searched in {looked}. Such a search cannot find {', or '.join(hidden)}."

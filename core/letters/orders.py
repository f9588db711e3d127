"""A person's order about letters: those of a selection or a filter, retried or discarded once the count is agreed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from core.letters.listing import LetterFilter
from core.letters.retry import Keeper, Order, discard, requeue
from core.model.commits import LetterStatus
from core.model.letters import MOVES, LetterPosition, MoveReport

MOST_MOVED = 10_000  # letters of one order: the rest is told, and waits for the next

OrderedMove = Literal["requeue", "discard"]
Selection = tuple[LetterPosition, ...]


@dataclass(frozen=True, slots=True)
class LetterOrder:
    """What is asked: which letters, what for, and how many they were when the person looked."""

    move: OrderedMove
    chosen: LetterFilter | Selection
    expected_count: int
    order: Order


@dataclass(frozen=True, slots=True)
class CountDiffers:
    """Nothing was moved: the letters that may be moved so are another number by now."""

    found: int


@dataclass(frozen=True, slots=True)
class OrderReport:
    """What came of an order: `left` letters of the filter wait for another one."""

    matched: int
    report: MoveReport
    left: int


class MatchingStore(Protocol):
    """What a store tells of the letters that an order is about, of those in one of some statuses."""

    def count_matching(self, wanted: LetterFilter, statuses: Sequence[LetterStatus]) -> int:
        """How many letters fit a filter."""
        ...

    def find_matching(self, wanted: LetterFilter, statuses: Sequence[LetterStatus], most: int) -> Selection:
        """The positions of those that failed first."""
        ...

    def find_selected(self, positions: Selection, statuses: Sequence[LetterStatus]) -> Selection:
        """Those of these positions at which there is such a letter."""
        ...


_MOVE: Mapping[OrderedMove, Callable[[Selection, Keeper, Order], MoveReport]] = {
    "requeue": requeue,
    "discard": discard,
}


def carry_out(order: LetterOrder, matching: MatchingStore, keeper: Keeper) -> OrderReport | CountDiffers:
    """READ which letters are meant, and move them if they are as many as expected. A filter's are moved oldest first.

    A letter that changes meanwhile is told as unmoved. Sent again, an order finds its letters moved already.
    """
    statuses = MOVES[order.move].sources
    positions, matched = _chosen(order.chosen, matching, statuses)
    if matched != order.expected_count:
        return CountDiffers(matched)
    return OrderReport(matched, _MOVE[order.move](positions, keeper, order.order), matched - len(positions))


def _chosen(
    chosen: LetterFilter | Selection, matching: MatchingStore, statuses: Sequence[LetterStatus]
) -> tuple[Selection, int]:
    if isinstance(chosen, LetterFilter):
        return matching.find_matching(chosen, statuses, MOST_MOVED), matching.count_matching(chosen, statuses)
    found = matching.find_selected(chosen, statuses)
    return found, len(found)

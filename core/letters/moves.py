"""Move letters without a retry: on a person's order, if the expected count is right, or to release a claim."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from core.errors import CommitOutcomeUnknown
from core.letters.keeper import Keeper
from core.letters.listing import LetterFilter
from core.letters.store.letters import Letters
from core.letters.store.listing import LetterListing
from core.model.commits import LetterStatus
from core.model.events import Partition, PartitionId
from core.model.letters import (
    MOVES,
    TRANSACTION_LIMIT,
    FoundLetter,
    LetterChunk,
    LetterMove,
    LetterPosition,
    Move,
    MoveReport,
    OrderedMove,
    Selection,
    Unmoved,
)
from core.model.spans import SequenceNumber

ORDER_LIMIT = 10_000  # letters of one order: the report counts the rest, which need another order


@dataclass(frozen=True, slots=True)
class Mover:
    """The person or the program that moves letters, and the reason."""

    by: str
    why: str


RELEASED = Mover("keeper", "it was not tried")


@dataclass(frozen=True, slots=True)
class LetterOrder:
    """The order of a person: the move, the letters, the number of letters that the person saw, and the reason."""

    move: OrderedMove
    chosen: LetterFilter | Selection
    expected_count: int
    mover: Mover


@dataclass(frozen=True, slots=True)
class CountDiffers:
    """The number of letters that this move may take differs from the expected one; nothing was moved."""

    found: int


@dataclass(frozen=True, slots=True)
class OrderReport:
    """The outcome of an order: `left` letters of the filter need another order."""

    matched: int
    report: MoveReport
    left: int


def carry_out(order: LetterOrder, matching: LetterListing, keeper: Keeper) -> OrderReport | CountDiffers:
    """READ the letters that are meant, and move them if the count is as expected; a filter begins with the oldest.

    A letter that changes in between is reported as unmoved. An order that is sent again finds its letters moved. None
    can be moved while the count and the store know different incarnations: that lasts a few seconds.
    """
    statuses, stream_id = MOVES[order.move].sources, matching.find_stream()
    positions, matched = _chosen(order.chosen, matching, statuses)
    if matched != order.expected_count:
        return CountDiffers(matched)
    if positions and keeper.store.open_stream(keeper.stream) != stream_id:
        return CountDiffers(0)
    return OrderReport(matched, _ORDERED[order.move](positions, keeper, order.mover), matched - len(positions))


def requeue(positions: Iterable[LetterPosition], keeper: Keeper, mover: Mover) -> MoveReport:
    """Make waiting or exhausted letters due now, on a person's order; their attempts begin again."""
    return _move("requeue", positions, keeper, mover)


def discard(positions: Iterable[LetterPosition], keeper: Keeper, mover: Mover) -> MoveReport:
    """Give letters up for good, on a person's order, including held letters and letters that are being retried."""
    return _move("discard", positions, keeper, mover)


def release(chunk: LetterChunk, keeper: Keeper) -> MoveReport:
    """Give back the letters of a chunk that its claim still holds and that were not settled; no attempt is counted.

    These letters are due after a short pause, so that the fault may pass.
    """
    positions = [LetterPosition(chunk.partition_id, number) for number in chunk.sequence_numbers]
    return _move("release", positions, keeper, RELEASED, chunk.claimed_by)


_ORDERED: Mapping[OrderedMove, Callable[[Selection, Keeper, Mover], MoveReport]] = {
    "requeue": requeue,
    "discard": discard,
}


def _chosen(
    chosen: LetterFilter | Selection, matching: LetterListing, statuses: Sequence[LetterStatus]
) -> tuple[Selection, int]:
    if isinstance(chosen, LetterFilter):
        return matching.find_matching(chosen, statuses, ORDER_LIMIT), matching.count_matching(chosen, statuses)
    found = matching.find_selected(chosen, statuses)
    return found, len(found)


def _move(
    move: Move, positions: Iterable[LetterPosition], keeper: Keeper, mover: Mover, claimed_by: str | None = None
) -> MoveReport:
    """Move up to a thousand letters of a partition in each transaction; letters moved before a fault stay moved."""
    moved: list[LetterPosition] = []
    unmoved: list[Unmoved] = []
    for partition_id, numbers in _by_transaction(positions):
        sent = _stamped(move, keeper, mover, keeper.stream.partition(partition_id))
        sent = replace(sent, sequence_numbers=numbers, claimed_by=claimed_by)
        found = {letter.sequence_number: letter for letter in _send(sent, keeper.store)}
        for number in numbers:
            letter, position = found.get(number), LetterPosition(partition_id, number)
            if letter is not None and letter.touched_by == sent.move_id:
                moved.append(position)
            else:
                unmoved.append(Unmoved(position, None if letter is None else letter.status))
    return MoveReport(tuple(moved), tuple(unmoved))


def _stamped(move: Move, keeper: Keeper, mover: Mover, partition: Partition) -> LetterMove:
    """Return a move with its id and times, and no letters yet."""
    clock, now = keeper.clock, keeper.clock.now()
    pause = keeper.letters.backoff.pause(1, clock.chance()) if move == "release" else timedelta()
    return LetterMove(move, partition, (), str(clock.new_id()), now, now + pause, mover.by, mover.why)


def _send(move: LetterMove, store: Letters) -> Sequence[FoundLetter]:
    """Send a move. If the answer is lost, send it again: the second time only reports."""
    try:
        return store.move_letters(move)
    except CommitOutcomeUnknown:
        return store.move_letters(move)


def _by_transaction(
    positions: Iterable[LetterPosition],
) -> Iterator[tuple[PartitionId, tuple[SequenceNumber, ...]]]:
    numbers: dict[PartitionId, dict[SequenceNumber, None]] = {}
    for position in positions:
        numbers.setdefault(position.partition_id, {})[position.sequence_number] = None
    for partition_id, wanted in numbers.items():
        rising = sorted(wanted)
        for start in range(0, len(rising), TRANSACTION_LIMIT):
            yield partition_id, tuple(rising[start : start + TRANSACTION_LIMIT])

"""Retry and discard letters, of a selection or a filter: with a reason, and with the expected count."""

import logging
from typing import Annotated, Protocol

import msgspec

from core.api.operation import (
    Answered,
    Call,
    Nothing,
    NumberText,
    PartitionText,
    Reason,
    Shape,
    number_of,
    operation,
)
from core.api.problems import COUNT_DIFFERS, Problem, clipped
from core.letters.listing import LetterFilter
from core.letters.moves import CountDiffers, LetterOrder, Mover, OrderReport, carry_out
from core.model.events import PartitionId
from core.model.letters import LetterPosition, OrderedMove, Selection, Unmoved
from handlers.app import app
from handlers.operations.letters import LetterChoice, filter_of

log = logging.getLogger("hubledger.api")
MOST_SELECTED = 500  # letters in one selection
MOST_UNMOVED = 100  # letters in an answer


class LetterName(Shape):
    """A letter, by its position."""

    partition_id: PartitionText
    sequence_number: NumberText


class OrderShape(Shape):
    """The letters, by exactly one of `letters` and `filter` ({} is all); the number of them that can be moved, as the
    person saw it; and why."""

    ONE_OF = ("letters", "filter")

    expected_count: Annotated[int, msgspec.Meta(ge=0, le=2**53)]
    reason: Reason
    letters: Annotated[list[LetterName], msgspec.Meta(min_length=1, max_length=MOST_SELECTED)] | None = None
    filter: LetterChoice | None = None


class UnmovedAnswer(Answered):
    """A letter that had changed and was not moved, with its `status` now; null where the letter is gone."""

    partition_id: str
    sequence_number: str
    status: str | None


class LetterOrderAnswer(Answered):
    """The result. One order moves up to ten thousand letters: `left` letters of the filter wait for the next order."""

    matched: int
    moved: int
    left: int
    unmoved_count: int
    unmoved: list[UnmovedAnswer]


@operation("Retry letters now", "letters", problems=(COUNT_DIFFERS,))
def retry_letters_now(call: Call[Nothing, Nothing, OrderShape]) -> LetterOrderAnswer:
    """Make waiting and exhausted letters due now, and begin their attempts again."""
    return _carried_out(call, "requeue")


@operation("Discard letters", "letters", problems=(COUNT_DIFFERS,))
def discard_letters(call: Call[Nothing, Nothing, OrderShape]) -> LetterOrderAnswer:
    """Discard open letters for good; their events stay accounted for as dead-lettered."""
    return _carried_out(call, "discard")


def _carried_out(call: Call[Nothing, Nothing, OrderShape], move: OrderedMove) -> LetterOrderAnswer:
    own, body = app(), call.body
    order = LetterOrder(move, chosen_of(body), body.expected_count, Mover(call.who, body.reason))
    done = carry_out(order, own.listing, own.keeper)
    if isinstance(done, CountDiffers):
        said = f"{done.found} letters can be moved now, not {body.expected_count}; nothing was changed"
        raise Problem(COUNT_DIFFERS, said, more={"count": done.found})
    own.letter_counts.forget()
    facts = {"matched": done.matched, "moved": len(done.report.moved), "left": done.left}
    log.info("letters moved", extra={"action": move, "who": call.who, "why": clipped(body.reason), **facts})
    return _answer(done)


class Choosing(Protocol):
    """A body that chooses letters by one of both."""

    letters: list[LetterName] | None
    filter: LetterChoice | None


def chosen_of(body: Choosing) -> LetterFilter | Selection:
    """Read the letters that a body chooses."""
    if body.letters is not None:
        named = [_position(one, f"letters[{at}].sequence_number") for at, one in enumerate(body.letters)]
        return tuple(dict.fromkeys(named))
    return filter_of(body.filter or LetterChoice(), "filter.")


def _position(name: LetterName, field: str) -> LetterPosition:
    return LetterPosition(PartitionId(name.partition_id), number_of(name.sequence_number, field))


def _answer(done: OrderReport) -> LetterOrderAnswer:
    unmoved = done.report.unmoved
    return LetterOrderAnswer(
        matched=done.matched,
        moved=len(done.report.moved),
        left=done.left,
        unmoved_count=len(unmoved),
        unmoved=[_unmoved(one) for one in unmoved[:MOST_UNMOVED]],
    )


def _unmoved(one: Unmoved) -> UnmovedAnswer:
    position = one.position
    return UnmovedAnswer(
        partition_id=position.partition_id, sequence_number=str(position.sequence_number), status=one.status
    )

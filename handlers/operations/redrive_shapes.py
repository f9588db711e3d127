"""The shapes of requests about redrives, and of their answers."""

from typing import Annotated, Any, Literal

import msgspec

from core.letters.redrive import RedriveOutcome, RedriveResult
from core.model.letters import LetterPosition
from core.model.shapes import Answered, NumberText, PartitionText, Reason, Shape, shape_of
from core.tasks.task import TaskAnswer
from handlers.operations.letters import HidingChoice, LetterAnswer, LetterChoice
from handlers.operations.task_shapes import TaskShape

MOST_SELECTED = 3_000  # letters in one selection: more do not fit into a body
MOST_SHOWN = 100  # selected letters in an answer
MOST_COUNTED, MOST_COUNTED_OF_MANY = 20_000, 1_000  # letters in the outcome of one redrive, and of each in a list
RedriveMove = Literal["retry", "discard"]


class PreviewQuery(HidingChoice, kw_only=True):
    """The letters that fit every given field, and the move that a redrive would make."""

    move: RedriveMove


class LetterName(Shape):
    """A letter, by its position."""

    partition_id: PartitionText
    sequence_number: NumberText


class RedriveShape(TaskShape, tag="redrive"):
    """The move; the letters, by exactly one of `letters` and `filter` ({} is all); the number of them that can be
    moved, as the person saw it; why; and the limit of letters per second, if there is one."""

    ONE_OF = ("letters", "filter")

    move: RedriveMove
    expected_count: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    reason: Reason
    letters: Annotated[list[LetterName], msgspec.Meta(min_length=1, max_length=MOST_SELECTED)] | None = None
    filter: LetterChoice | None = None
    per_second: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None


class CauseAnswer(Answered):
    """The letters of a cause."""

    fingerprint: str
    error_class: str
    error_type: str
    letters: int


class PreviewAnswer(Answered):
    """The letters that a redrive would move now: their number, the largest causes, and the ones that failed first."""

    count: int
    causes: list[CauseAnswer]
    sample: list[LetterAnswer]


_Selected: Any = shape_of(LetterPosition)


class SelectedAnswer(_Selected):
    """A selected letter."""


_Outcome: Any = shape_of(RedriveOutcome)


class OutcomeAnswer(_Outcome):
    """What became of the letters that a retry moved, at the first try since. It counts at most 20,000 letters, 1,000 in
    a list, and none that was purged. `same_cause` counts those that failed again for the cause that they had before.
    `words` says the counts."""

    result: RedriveResult
    words: str


class RedriveAnswer(TaskAnswer, tag_field="kind", tag="redrive"):
    """A redrive. `filter` holds the given fields, a partition key hidden; of a selection, `letters` are the first
    hundred. `total` letters could be moved at the request; those that had changed when the task came to them are
    `unmoved`. `done` counts both. A discard,
    and a retry that has moved nothing, have no `outcome`."""

    move: RedriveMove
    filter: dict[str, str] | None
    letters: list[SelectedAnswer] | None
    moved: int
    unmoved: int
    outcome: OutcomeAnswer | None

"""The shapes of requests about redrives, and of their answers."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from core.api.operation import Answered, Cursor, Reason, Shape
from core.api.shown import shape_of
from core.letters.redrive import RedrivenLetter
from core.model.jobs import JobStatus
from core.model.letters import LetterPosition
from handlers.operations.letter_orders import LetterName
from handlers.operations.letters import HidingChoice, LetterAnswer, LetterChoice
from handlers.operations.replay_shapes import JobText, Limit, MoveAnswer

PAGE, LETTERS_PAGE, MOST_OF_A_PAGE = 20, 100, 500
MOST_SELECTED = 3_000  # letters in one selection: more do not fit into a body
MOST_SHOWN = 100  # selected letters in an answer
RedriveMove = Literal["retry", "discard"]
LettersLimit = Annotated[int, msgspec.Meta(ge=1, le=MOST_OF_A_PAGE)]


class PreviewQuery(HidingChoice, kw_only=True):
    """The letters that fit every given field, and the move that a redrive would make."""

    move: RedriveMove


class RedriveShape(Shape):
    """The move; the letters, by exactly one of `letters` and `filter` ({} is all); the number of them that can be
    moved, as the person saw it; why; and the limit of letters per second, if there is one."""

    ONE_OF = ("letters", "filter")

    move: RedriveMove
    expected_count: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    reason: Reason
    letters: Annotated[list[LetterName], msgspec.Meta(min_length=1, max_length=MOST_SELECTED)] | None = None
    filter: LetterChoice | None = None
    per_second: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None


class RedrivePath(Shape):
    """A redrive."""

    redrive_id: JobText


class RedrivesQuery(Shape):
    """A page of redrives, the newest first."""

    limit: Limit = PAGE
    cursor: Cursor | None = None


class RedrivenQuery(Shape):
    """A page of letters that a redrive moved, in the order of its pieces."""

    limit: LettersLimit = LETTERS_PAGE
    cursor: Cursor | None = None


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


class RedriveAnswer(Answered):
    """A redrive. `filter` holds the given fields, a partition key hidden; of a selection, `letters` are the first
    hundred. `total` letters could be moved at the request; those that had changed when the job came to them are
    `unmoved`. `fault` is the fault that holds the job up now, or that ended it."""

    redrive_id: str
    move: RedriveMove
    status: JobStatus
    filter: dict[str, str] | None
    letters: list[SelectedAnswer] | None
    total: int
    looked_at: int
    moved: int
    unmoved: int
    per_second: int | None
    requested_by: str
    reason: str
    requested_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    updated_at: datetime
    fault: str | None
    history: list[MoveAnswer]


class RedrivesAnswer(Answered):
    """A page of redrives."""

    redrives: list[RedriveAnswer]
    next: str | None


_Redriven: Any = shape_of(RedrivenLetter, hidden=("piece", "place"))


class RedrivenAnswer(_Redriven):
    """A letter that a redrive moved, with its status now; null where the letter is gone."""


class RedrivenLettersAnswer(Answered):
    """A page of letters that a redrive moved."""

    letters: list[RedrivenAnswer]
    next: str | None

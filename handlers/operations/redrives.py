"""Preview a redrive: the letters that it would move, by cause and with a sample."""

from datetime import datetime

from core.api.operation import Call, operation
from core.letters.listing import LetterChoice, LetterListing, filter_of
from core.letters.redrive import MOVED, RedriveMove, until_request
from core.model.letters import MOVES
from core.model.shapes import Answered, Nothing, written
from handlers.app import app
from handlers.operations.letters import LetterAnswer, letter_answer

SAMPLED, CAUSES = 5, 100


class PreviewQuery(LetterChoice, kw_only=True):
    """The letters that fit every given field, and the move that a redrive would make."""

    move: RedriveMove


class CauseAnswer(Answered):
    """The letters of a cause."""

    fingerprint: str
    error_class: str
    error_type: str
    letters: int


class PreviewAnswer(Answered):
    """The letters that a redrive would move now: their number, the largest causes, and the ones that failed first. An
    order whose filter has this `failed_before` takes them, and none that failed since."""

    count: int
    failed_before: datetime
    causes: list[CauseAnswer]
    sample: list[LetterAnswer]


@operation("The letters that a redrive would move", "tasks")
def preview_redrive(call: Call[Nothing, PreviewQuery, Nothing]) -> PreviewAnswer:
    """Count the letters by cause, with a sample. Nothing changes."""
    own = app()
    listing, now = LetterListing(own.stream), own.clock.now()
    wanted = until_request(filter_of(call.query), now)
    statuses = MOVES[MOVED[call.query.move]].sources
    causes = [
        written(CauseAnswer, one, error_class=one.sample.error_class, error_type=one.sample.error_type)
        for one in listing.cause_matching(wanted, statuses, CAUSES)
    ]
    sample = [letter_answer(one) for one in listing.sample_matching(wanted, statuses, SAMPLED)]
    count = listing.count_matching(wanted, statuses)
    return PreviewAnswer(count=count, failed_before=wanted.failed_before or now, causes=causes, sample=sample)

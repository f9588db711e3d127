"""Show letters, numbers, stops and runs with the texts that quote events or name people; each answer is logged."""

from core.api.operation import Call, operation
from core.api.problems import CONFLICT, NOT_FOUND
from core.errors import StreamIncarnationChanged
from core.ledger.store import Ledger
from core.letters.listing import LetterListing, ListedLetter
from core.model.events import is_same_instant
from core.model.shapes import Answered, Nothing, Shape
from handlers.app import app
from handlers.operations.ledger import (
    ExplanationAnswer,
    KeyQuery,
    NumberPath,
    PlacesAnswer,
    explanation_of,
    places_of,
)
from handlers.operations.letters import (
    BodyAnswer,
    BodyForm,
    GroupsAnswer,
    LetterPath,
    LettersAnswer,
    RevealedGroupsQuery,
    RevealedLettersQuery,
    WholeLetterAnswer,
    found_letter,
    groups_of,
    page_of_letters,
    shown,
    whole_answer,
)
from handlers.operations.status import StopAnswer, revealed_stops

LARGEST_SHOWN = 256 * 1024  # octets of a body


class LetterQuery(Shape):
    """The form of the body, if it is wanted."""

    body: BodyForm | None = None


class StopsAnswer(Answered):
    """The stops of all partitions, with their details."""

    stops: list[StopAnswer]


@operation("A page of letters with their errors and partition keys", "revealed")
def reveal_letters(call: Call[Nothing, RevealedLettersQuery, Nothing]) -> LettersAnswer:
    """List a page of letters."""
    return page_of_letters(call.query)


@operation("Letters by cause, each with the error of a sample", "revealed")
def reveal_groups(call: Call[Nothing, RevealedGroupsQuery, Nothing]) -> GroupsAnswer:
    """Return the letters by cause, the groups with the most open letters first."""
    return groups_of(call.query)


@operation("One letter with its errors and properties; its body on request", "revealed", problems=(NOT_FOUND, CONFLICT))
def reveal_letter(call: Call[LetterPath, LetterQuery, Nothing]) -> WholeLetterAnswer:
    """Return a letter."""
    whole, form = found_letter(call.path), call.query.body
    return whole_answer(whole, None if form is None else _body(whole.letter, form))


@operation("Where one sequence number went, with its rows", "revealed", problems=(NOT_FOUND,))
def reveal_number(call: Call[NumberPath, Nothing, Nothing]) -> ExplanationAnswer:
    """Explain where a number went."""
    return explanation_of(call)


@operation("The places of a key: its letters, and rows whose subject it is", "revealed")
def reveal_places(call: Call[Nothing, KeyQuery, Nothing]) -> PlacesAnswer:
    """List a page of the places of a key."""
    return places_of(call.query)


@operation("The stopped partitions with the errors that stopped them", "revealed")
def reveal_stops(call: Call[Nothing, Nothing, Nothing]) -> StopsAnswer:
    """List the stops with every detail."""
    found = Ledger(app().stream).read_stops()
    return StopsAnswer(stops=[answer for id, each in found.items() for answer in revealed_stops(id, each)])


def _body(letter: ListedLetter, form: BodyForm) -> BodyAnswer:
    if not letter.body_kept:
        return _fetched(letter, form)
    body = LetterListing(app().stream).read_letter_body(letter.partition_id, letter.sequence_number, LARGEST_SHOWN)
    return shown(body, letter.body_bytes, form)


def _fetched(letter: ListedLetter, form: BodyForm) -> BodyAnswer:
    """Fetch from the hub a body that was not stored. Raises StreamIncarnationChanged for a different event."""
    own = app()
    partition = own.settings.stream.partition(letter.partition_id)
    event = own.stream_hub.find_event(partition, letter.sequence_number)
    if event is not None and not is_same_instant(event.enqueued_at, letter.enqueued_at):
        evidence = f"event {letter.sequence_number} was not enqueued at the time of its letter"
        raise StreamIncarnationChanged(partition, evidence)
    if event is None:
        gone = "it was not stored, and the hub no longer has it"
        return BodyAnswer(form=form, bytes=0, truncated=False, shown=None, fault=gone)
    return shown(event.body[:LARGEST_SHOWN], len(event.body), form)

"""List letters by filter and page, group them by cause, and show one; its body only on request."""

import logging
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import msgspec

from core.letters.listing import (
    BEGINNING,
    END,
    FIRST_PAGE,
    LetterFilter,
    LetterGroup,
    LetterKey,
    ListedLetter,
    WholeLetter,
)
from core.model.commits import ErrorClass, LetterStatus
from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from handlers.app import app
from handlers.web.bodies import BodyAnswer, BodyForm, shown
from handlers.web.cursors import key_of, page_of, query_of
from handlers.web.operation import (
    Answered,
    Call,
    Cursor,
    Instant,
    Nothing,
    NumberText,
    PartitionText,
    Shape,
    number_of,
    operation,
    utc,
)
from handlers.web.problems import NOT_FOUND, not_found

log = logging.getLogger("hubledger.api")
MOST_LETTERS, MOST_GROUPS = 500, 100
LARGEST_SHOWN = 256 * 1024  # octets of a body
MOST_ERROR = 2_000  # characters

Fingerprint = Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z_-]{1,40}$", description="The text of one cause.")]
PartitionKeyText = Annotated[str, msgspec.Meta(max_length=2_000)]


class LetterChoice(Shape):
    """The letters that fit every given field."""

    status: LetterStatus | None = None
    error_class: ErrorClass | None = None
    fingerprint: Fingerprint | None = None
    partition_id: PartitionText | None = None
    partition_key: PartitionKeyText | None = None
    failed_from: Instant | None = None
    failed_before: Instant | None = None


class LettersQuery(LetterChoice):
    """A page of letters, the last to fail first."""

    cursor: Cursor | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_LETTERS)] = 50


class GroupsQuery(LetterChoice):
    """Letters by cause, the groups with the most open letters first."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_GROUPS)] = 50


class LetterPath(Shape):
    """A letter, by its position."""

    partition_id: PartitionText
    sequence_number: NumberText


class LetterQuery(Shape):
    """The form of the body, if it is wanted; the request is logged with the caller's name."""

    body: BodyForm | None = None


class LetterAnswer(Answered):
    """A letter without its body. A held letter waits for `held_behind`, the letter before it of its partition key. New
    statuses and classes may be added."""

    partition_id: str
    sequence_number: str
    enqueued_at: datetime
    partition_key: str | None
    error_class: str
    error_type: str
    error: str
    fingerprint: str
    transform_version: str
    status: str
    attempts: int
    due_at: datetime | None
    failed_at: datetime
    settled_at: datetime | None
    settled_why: str | None
    body_bytes: int
    body_kept: bool
    held_behind: str | None


class AttemptAnswer(Answered):
    """An attempt to settle a letter, or a person's request: the status after it, by whom, when and why."""

    attempt: int
    kind: str
    status: str
    error_class: str | None
    error_type: str | None
    error: str | None
    transform_version: str
    commit_number: int | None
    done_by: str
    why: str | None
    done_at: datetime


class LettersAnswer(Answered):
    """A page; `next` is the cursor of the page after it, null at the end."""

    letters: list[LetterAnswer]
    next: str | None


class GroupAnswer(Answered):
    """The letters of a cause; `sample` is the last to fail."""

    fingerprint: str
    letters: int
    open: int
    first_failed_at: datetime
    last_failed_at: datetime
    sample: LetterAnswer


class GroupsAnswer(Answered):
    """The groups with the most open letters, then the largest ones."""

    groups: list[GroupAnswer]


class WholeLetterAnswer(Answered):
    """A letter with the rest of its event; the body only in the requested form."""

    letter: LetterAnswer
    offset: str
    properties: dict[str, Any]
    history: list[AttemptAnswer]
    body: BodyAnswer | None


def filter_of(given: LetterChoice, where: str = "") -> LetterFilter:
    """Read the filter of a request; `where` is its place in the body."""
    return LetterFilter(
        fingerprint=given.fingerprint,
        status=given.status,
        error_class=given.error_class,
        partition_id=None if given.partition_id is None else PartitionId(given.partition_id),
        partition_key=given.partition_key,
        failed_from=utc(given.failed_from, f"{where}failed_from") or BEGINNING,
        failed_before=utc(given.failed_before, f"{where}failed_before") or END,
    )


@operation("A page of letters", "letters")
def list_letters(call: Call[Nothing, LettersQuery, Nothing]) -> LettersAnswer:
    """List a page of letters; one letter more is read, to see if there is a next page."""
    query, bound_to = call.query, query_of(call.query)
    after = FIRST_PAGE if query.cursor is None else _key(key_of(bound_to, query.cursor, tuple[datetime, str, int]))
    found = app().listing.list_letters(filter_of(query), after, query.limit + 1)
    page, following = page_of(found, query.limit, bound_to, _parts)
    return LettersAnswer(letters=[letter_answer(one) for one in page], next=following)


def _key(found: tuple[datetime, str, int]) -> LetterKey:
    failed_at, partition_id, number = found
    return LetterKey(failed_at, PartitionId(partition_id), SequenceNumber(number))


def _parts(letter: ListedLetter) -> tuple[datetime, str, int]:
    return letter.key.failed_at, letter.key.partition_id, letter.key.sequence_number


@operation("Letters by cause", "letters")
def group_letters(call: Call[Nothing, GroupsQuery, Nothing]) -> GroupsAnswer:
    """Return the letters by cause, the groups with the most open letters first."""
    found = app().listing.group_letters(filter_of(call.query), call.query.limit)
    return GroupsAnswer(groups=[_group(one) for one in found])


def _group(group: LetterGroup) -> GroupAnswer:
    return GroupAnswer(
        fingerprint=group.fingerprint,
        letters=group.letters,
        open=group.letters - group.settled,
        first_failed_at=group.first_failed_at,
        last_failed_at=group.last_failed_at,
        sample=letter_answer(group.sample),
    )


@operation("One letter; its body on request", "letters", problems=(NOT_FOUND,))
def show_letter(call: Call[LetterPath, LetterQuery, Nothing]) -> WholeLetterAnswer:
    """Return a letter; a request for its body is logged."""
    partition_id = PartitionId(call.path.partition_id)
    number = number_of(call.path.sequence_number, "sequence_number")
    whole = app().listing.read_letter(partition_id, number)
    if whole is None:
        raise not_found("sequence_number", f"partition {partition_id} has no letter {number}")
    return WholeLetterAnswer(
        letter=letter_answer(whole.letter),
        offset=whole.offset,
        properties=dict(whole.properties),
        history=history_of(whole),
        body=None if call.query.body is None else _revealed(call, whole.letter, call.query.body),
    )


def _revealed(call: Call[LetterPath, LetterQuery, Nothing], letter: ListedLetter, form: BodyForm) -> BodyAnswer:
    position = {"partition_id": letter.partition_id, "sequence_number": letter.sequence_number}
    log.info("body revealed", extra={"action": "reveal_body", "who": call.who, **position})
    if not letter.body_kept:
        return _fetched(letter, form)
    body = app().listing.read_letter_body(letter.partition_id, letter.sequence_number, LARGEST_SHOWN)
    return shown(body, letter.body_bytes, form)


def history_of(whole: WholeLetter) -> list[AttemptAnswer]:
    """Write the attempts of a letter as an answer."""
    return [AttemptAnswer(**asdict(attempt)) for attempt in whole.attempts]


def _fetched(letter: ListedLetter, form: BodyForm) -> BodyAnswer:
    """Fetch from the hub a body that was not stored; a different event under its number is one of a different hub."""
    own = app()
    event = own.hub.find_event(own.settings.stream.partition(letter.partition_id), letter.sequence_number)
    if event is None or event.enqueued_at != letter.enqueued_at:
        gone = "it was not stored, and the hub no longer has it"
        return BodyAnswer(form=form, bytes=0, truncated=False, shown=None, fault=gone)
    return shown(event.body[:LARGEST_SHOWN], len(event.body), form)


def letter_answer(letter: ListedLetter) -> LetterAnswer:
    """Write a letter as an answer."""
    return LetterAnswer(
        partition_id=letter.partition_id,
        sequence_number=str(letter.sequence_number),
        error=letter.error[:MOST_ERROR],
        held_behind=None if letter.held_behind is None else str(letter.held_behind),
        **{name: getattr(letter, name) for name in _AS_THEY_ARE},
    )


_AS_THEY_ARE = (
    "enqueued_at", "partition_key", "error_class", "error_type", "fingerprint", "transform_version", "status",
    "attempts", "due_at", "failed_at", "settled_at", "settled_why", "body_bytes", "body_kept",
)  # fmt: skip

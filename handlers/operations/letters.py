"""Letters: by filter and page, by cause, and one whole; its body only when it is asked for."""

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
from handlers.bodies import BodyAnswer, BodyForm, shown
from handlers.cursors import cursor_of, key_of
from handlers.desk import desk
from handlers.operation import (
    Answered,
    Call,
    Cursor,
    Instant,
    Nothing,
    NumberText,
    Operation,
    PartitionText,
    Shape,
    number_of,
    partition_of,
    utc,
)
from handlers.problems import NOT_FOUND, not_found

log = logging.getLogger("hubledger.api")
MOST_LETTERS, MOST_GROUPS = 500, 100
LARGEST_SHOWN = 256 * 1024  # octets of a body
MOST_ERROR = 2_000  # characters

Fingerprint = Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z_-]{1,40}$", description="The mark of one cause.")]
PartitionKeyText = Annotated[str, msgspec.Meta(max_length=2_000)]


class LetterChoice(Shape):
    """Which letters: those that fit all that is given."""

    status: LetterStatus | None = None
    error_class: ErrorClass | None = None
    fingerprint: Fingerprint | None = None
    partition_id: PartitionText | None = None
    partition_key: PartitionKeyText | None = None
    failed_from: Instant | None = None
    failed_before: Instant | None = None


class LettersQuery(LetterChoice):
    """A page of letters, those that failed last first."""

    cursor: Cursor | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_LETTERS)] = 50


class GroupsQuery(LetterChoice):
    """Letters by cause, the largest groups first."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_GROUPS)] = 50


class LetterPath(Shape):
    """One letter, by its position."""

    partition_id: PartitionText
    sequence_number: NumberText


class LetterQuery(Shape):
    """`body` asks for the body in a form, and is logged with the caller's name."""

    body: BodyForm | None = None


class LetterAnswer(Answered):
    """A letter without its body. New statuses and classes may be added."""

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


class AttemptAnswer(Answered):
    """What was tried with a letter, or asked of it: what it became, by whom, when and why."""

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
    """A page; `next` is the cursor of the one behind it, null at the end."""

    letters: list[LetterAnswer]
    next: str | None


class GroupAnswer(Answered):
    """The letters of one cause; `sample` is the one that failed last."""

    fingerprint: str
    letters: int
    open: int
    first_failed_at: datetime
    last_failed_at: datetime
    sample: LetterAnswer


class GroupsAnswer(Answered):
    """The largest groups."""

    groups: list[GroupAnswer]


class WholeLetterAnswer(Answered):
    """A letter with all that its event carried; the body only in the form that was asked for."""

    letter: LetterAnswer
    offset: str
    properties: dict[str, Any]
    history: list[AttemptAnswer]
    body: BodyAnswer | None


def filter_of(given: LetterChoice, where: str = "") -> LetterFilter:
    """The filter of a request; `where` it is in the body."""
    return LetterFilter(
        fingerprint=given.fingerprint,
        status=given.status,
        error_class=given.error_class,
        partition_id=None if given.partition_id is None else partition_of(given.partition_id),
        partition_key=given.partition_key,
        failed_from=utc(given.failed_from, f"{where}failed_from") or BEGINNING,
        failed_before=utc(given.failed_before, f"{where}failed_before") or END,
    )


def list_letters(call: Call[Nothing, LettersQuery, Nothing]) -> LettersAnswer:
    """A page; one letter more is read, to see whether there is a page behind it."""
    query = call.query
    wanted = filter_of(query)
    bound_to = msgspec.structs.replace(query, cursor=None, limit=1)
    behind = FIRST_PAGE if query.cursor is None else _key(key_of(bound_to, query.cursor, tuple[datetime, str, int]))
    found = desk().store.letters.list_letters(wanted, behind, query.limit + 1)
    page = found[: query.limit]
    last = page[-1].key if len(found) > query.limit else None
    following = None if last is None else (last.failed_at, last.partition_id, last.sequence_number)
    return LettersAnswer(
        letters=[letter_answer(one) for one in page],
        next=None if following is None else cursor_of(bound_to, following),
    )


def _key(found: tuple[datetime, str, int]) -> LetterKey:
    failed_at, partition_id, number = found
    return LetterKey(failed_at, PartitionId(partition_id), SequenceNumber(number))


def group_letters(call: Call[Nothing, GroupsQuery, Nothing]) -> GroupsAnswer:
    """The largest groups of one cause."""
    found = desk().store.letters.group_letters(filter_of(call.query), call.query.limit)
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


def show_letter(call: Call[LetterPath, LetterQuery, Nothing]) -> WholeLetterAnswer:
    """One letter; who asks for its body leaves a line in the log."""
    partition_id = partition_of(call.path.partition_id)
    number = number_of(call.path.sequence_number, "sequence_number")
    whole = desk().store.letters.read_letter(partition_id, number)
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
    body = desk().store.letters.read_letter_body(letter.partition_id, letter.sequence_number, LARGEST_SHOWN)
    return shown(body, letter.body_bytes, form)


def history_of(whole: WholeLetter) -> list[AttemptAnswer]:
    """Its attempts as they are answered."""
    return [AttemptAnswer(**asdict(attempt)) for attempt in whole.attempts]


def _fetched(letter: ListedLetter, form: BodyForm) -> BodyAnswer:
    """A body that was not kept, from the hub; another event under its number is that of another hub."""
    keeper = desk().keeper
    event = keeper.find_event(desk().store.stream.of(letter.partition_id), letter.sequence_number)
    if event is None or event.enqueued_at != letter.enqueued_at:
        gone = "it was not kept, and the hub no longer has it"
        return BodyAnswer(form=form, bytes=0, truncated=False, shown=None, fault=gone)
    return shown(event.body[:LARGEST_SHOWN], len(event.body), form)


def letter_answer(letter: ListedLetter) -> LetterAnswer:
    """A letter as it is answered."""
    return LetterAnswer(
        partition_id=letter.partition_id,
        sequence_number=str(letter.sequence_number),
        error=letter.error[:MOST_ERROR],
        **{name: getattr(letter, name) for name in _AS_THEY_ARE},
    )


_AS_THEY_ARE = (
    "enqueued_at", "partition_key", "error_class", "error_type", "fingerprint", "transform_version", "status",
    "attempts", "due_at", "failed_at", "settled_at", "settled_why", "body_bytes", "body_kept",
)  # fmt: skip

OPERATIONS = (
    Operation(
        "list_letters", "A page of letters", list_letters, {200: LettersAnswer}, query=LettersQuery, tag="letters"
    ),
    Operation(
        "group_letters", "Letters by cause", group_letters, {200: GroupsAnswer}, query=GroupsQuery, tag="letters"
    ),
    Operation(
        "show_letter",
        "One letter; its body when it is asked for",
        show_letter,
        {200: WholeLetterAnswer},
        path=LetterPath,
        query=LetterQuery,
        problems=(NOT_FOUND,),
        tag="letters",
    ),
)

"""List letters by filter and page, group them by cause, and show one. Only revealing routes show what quotes events."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import msgspec

from core.api.operation import Call, Moment, Number, key_of, operation, page_of, query_of
from core.api.problems import CONFLICT, ERASED, NOT_FOUND, Problem, not_found
from core.errors import StreamIncarnationChanged
from core.letters.listing import (
    FIRST_PAGE,
    LetterAttempt,
    LetterChoice,
    LetterGroup,
    LetterListing,
    ListedLetter,
    WholeLetter,
    filter_of,
)
from core.model.events import PartitionId, SequenceNumber, is_same_instant
from core.model.letters import LetterKey
from core.model.shapes import (
    Answered,
    Cursor,
    Nothing,
    NumberText,
    PartitionText,
    Shape,
    number_of,
    shape_of,
    written,
)
from core.settle.cause import cause_of
from core.settle.partition_store import Partitions
from handlers.app import app

BodyForm = Literal["text", "json", "hex"]

MOST_INDENTED = 20  # levels: otherwise the answer could be a thousand times as long as the body
_TOKEN = re.compile(r'[\[{]\s*[\]}]|"[^"\\]*(?:\\.[^"\\]*)*"|[^\s\[\]{},:"]+|[\[\]{},:]')


class BodyAnswer(Answered):
    """A body in one form. `shown` is null where the body has no such form, and `fault` says why."""

    form: BodyForm
    bytes: int
    truncated: bool
    shown: str | None
    fault: str | None = None


def shown(body: bytes, length: int, form: BodyForm) -> BodyAnswer:
    """Show the first octets of a body of `length` octets in a form. Octets that are not UTF-8 become U+FFFD."""
    cut = len(body) < length
    text: str | None = body.hex() if form == "hex" else body.decode("utf-8", "replace")
    fault = None
    if form == "json":
        text, fault = _as_json(body, cut)
    return BodyAnswer(form=form, bytes=length, truncated=cut, shown=text, fault=fault)


def _as_json(body: bytes, cut: bool) -> tuple[str | None, str | None]:
    """Return the JSON with each value as it stands: readers change 1e400, half of a surrogate pair, and two values of
    one name."""
    if cut:
        return None, "too long to be shown as JSON"
    try:
        text = body.decode()
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except ValueError as error:
        return None, f"not JSON: {error}"
    except RecursionError:
        return None, "nested too deeply to be shown as JSON"
    return "".join(_indented(text)), None


def _refuse(constant: str) -> None:
    raise ValueError(f"JSON has no {constant}")


def _indented(text: str) -> Iterator[str]:
    """Yield the parts of JSON, with each value on a line of its own."""
    depth = 0
    for token in _TOKEN.findall(text):
        if token in "]}":
            depth -= 1
            yield _line(depth)
        yield token[0] + token[1:].strip() if token[0] in "[{" else token
        depth += token in "[{"
        if token in "[{,":
            yield _line(depth)
        elif token == ":":
            yield " "


def _line(depth: int) -> str:
    return "\n" + "  " * min(depth, MOST_INDENTED)


LARGEST_SHOWN = 256 * 1024  # octets of a body
MOST_LETTERS, MOST_GROUPS = 500, 100
MOST_ERROR, MOST_EXAMPLE = 2_000, 200  # characters
EXAMPLES = 5  # values of a cause

LettersLimit = Annotated[int, msgspec.Meta(ge=1, le=MOST_LETTERS)]
GroupsLimit = Annotated[int, msgspec.Meta(ge=1, le=MOST_GROUPS)]


class LettersQuery(LetterChoice):
    """A page of letters, the last to fail first."""

    cursor: Cursor | None = None
    limit: LettersLimit = 50


class GroupsQuery(LetterChoice):
    """Letters by cause, the groups with the most open letters first. At the revealing address, a `fingerprint` groups
    the letters of one cause by the values of their messages."""

    limit: GroupsLimit = 50


class LetterQuery(Shape):
    """The form of the body, if it is wanted."""

    REVEALING = ("body",)

    body: BodyForm | None = None


class LetterPath(Shape):
    """A letter, by its position."""

    partition_id: PartitionText
    sequence_number: NumberText


_Letter: Any = shape_of(ListedLetter, error=str | None)


class LetterAnswer(_Letter):
    """A letter without its body. A held letter waits for `held_behind`, the letter before it of its partition key. Only
    the revealing routes have `partition_key`, `error`, and after the cause of `fingerprint` a hash of the values of the
    message. New statuses and classes may be added."""

    def quoting(self) -> tuple[str, ...]:
        return ("partition_key", "error")

    def instead(self) -> dict[str, Any]:
        return {**Answered.instead(self), "fingerprint": cause_of(self.fingerprint)}


_Attempt: Any = shape_of(LetterAttempt)


class AttemptAnswer(_Attempt):
    """An attempt to settle a letter, or a person's request: its author, time, reason and resulting status. Only the
    revealing route has `error`."""

    def quoting(self) -> tuple[str, ...]:
        return ("error",)


class LettersAnswer(Answered):
    """A page. `next` is the cursor of the page after it, null at the end."""

    letters: list[LetterAnswer]
    next: str | None


_Group: Any = shape_of(LetterGroup, hidden=("settled",), sample=LetterAnswer, examples=list[str] | None)


class GroupAnswer(_Group):
    """The letters of a cause, or of one value of it. `template` is their message with a gap in place of each value,
    `variants` is the number of different values, and `examples` are some of them. A retry can take
    the `retryable` ones, which are waiting or exhausted. `sample` is the last to fail. Only the revealing route has
    `template` and `examples`."""

    template: str | None
    open: int

    def quoting(self) -> tuple[str, ...]:
        return ("template", "examples")


class GroupsAnswer(Answered):
    """The groups with the most open letters, then the largest ones."""

    groups: list[GroupAnswer]


class WholeLetterAnswer(Answered):
    """A letter with the rest of its event. Only the revealing route has its properties, and the body in a requested
    form."""

    letter: LetterAnswer
    offset: str
    properties: dict[str, Any] | None
    system_properties: dict[str, Any] | None
    history: list[AttemptAnswer]
    body: BodyAnswer | None

    def quoting(self) -> tuple[str, ...]:
        return ("properties", "system_properties")


@operation("A page of letters; only the revealing address shows what quotes events", "letters")
def list_letters(call: Call[Nothing, LettersQuery, Nothing]) -> LettersAnswer:
    """List a page of letters. One more letter is read, to see if there is a next page."""
    query, bound_to, after = call.query, query_of(call.query), FIRST_PAGE
    if query.cursor is not None:
        failed_at, partition_id, number = key_of(bound_to, query.cursor, tuple[Moment, PartitionText, Number])
        after = LetterKey(failed_at, PartitionId(partition_id), SequenceNumber(number))
    found = LetterListing(app().stream).list_letters(filter_of(query), after, query.limit + 1)
    page, following = page_of(
        found, query.limit, bound_to, lambda one: (one.key.failed_at, one.key.partition_id, one.key.sequence_number)
    )
    return LettersAnswer(letters=[letter_answer(one) for one in page], next=following)


@operation("Letters by cause; only the revealing address shows what quotes events", "letters")
def group_letters(call: Call[Nothing, GroupsQuery, Nothing]) -> GroupsAnswer:
    """Return the letters by cause."""
    return _grouped(LetterListing(app().stream).group_letters, call.query)


@operation("Letters by cause, or those of one cause by value", "letters")
def group_values(call: Call[Nothing, GroupsQuery, Nothing]) -> GroupsAnswer:
    """Return the letters by cause, or those of one cause by value."""
    listing = LetterListing(app().stream)
    return _grouped(listing.group_letters if call.query.fingerprint is None else listing.group_values, call.query)


def _grouped(grouped: Callable[[LetterChoice, int], tuple[LetterGroup, ...]], query: GroupsQuery) -> GroupsAnswer:
    return GroupsAnswer(groups=[_group(one) for one in grouped(filter_of(query), query.limit)])


@operation(
    "One letter; only the revealing address shows what quotes its event",
    "letters",
    problems=(NOT_FOUND, CONFLICT, ERASED),
)
def show_letter(call: Call[LetterPath, LetterQuery, Nothing]) -> WholeLetterAnswer:
    """Return a letter with the rest of its event, and its body in a form on request."""
    partition_id, form = PartitionId(call.path.partition_id), call.query.body
    number = number_of(call.path.sequence_number, "sequence_number")
    whole = LetterListing(app().stream).read_letter(partition_id, number)
    if whole is None:
        raise not_found("sequence_number", f"partition {partition_id} has no letter {number}")
    return WholeLetterAnswer(
        letter=letter_answer(whole.letter),
        offset=whole.offset,
        properties=dict(whole.properties),
        system_properties=dict(whole.system_properties),
        history=history_of(whole),
        body=None if form is None else _body(whole.letter, form),
    )


def _body(letter: ListedLetter, form: BodyForm) -> BodyAnswer:
    """Read a body from the store, or from the hub. Raises StreamIncarnationChanged for another event, and Problem for a
    letter that was erased, or whose event in the hub names an erased subject."""
    own = app()
    if letter.erased_by is not None:
        why = f"the erasure {letter.erased_by} blanked the letter, and its body is shown no more"
        raise Problem(ERASED, why, more={"task_id": letter.erased_by})
    if letter.body_kept:
        body = LetterListing(own.stream).read_letter_body(letter.partition_id, letter.sequence_number, LARGEST_SHOWN)
        return shown(body, letter.body_bytes, form)
    partition = own.settings.stream.partition(letter.partition_id)
    event = own.stream_hub.find_event(partition, letter.sequence_number)
    if event is None:
        gone = "it was not stored, and the hub no longer has it"
        return BodyAnswer(form=form, bytes=0, truncated=False, shown=None, fault=gone)
    if not is_same_instant(event.enqueued_at, letter.enqueued_at):
        evidence = f"event {letter.sequence_number} was not enqueued at the time of its letter"
        raise StreamIncarnationChanged(partition, evidence)
    partitions = Partitions(own.brief, key=own.settings.erasure)
    erased = partitions.read_erased(partitions.read_partition(partition), event.enqueued_at)
    if erased.around(own.transform).mentions_erased(event):
        raise Problem(ERASED, "the event in the hub names a subject that was erased, and it is shown no more")
    return shown(event.body[:LARGEST_SHOWN], len(event.body), form)


def _group(group: LetterGroup) -> GroupAnswer:
    return written(
        GroupAnswer,
        group,
        open=group.letters - group.settled,
        sample=letter_answer(group.sample),
        template=group.template[:MOST_ERROR],
        examples=[one[:MOST_EXAMPLE] for one in group.examples[:EXAMPLES]],
    )


def history_of(whole: WholeLetter) -> list[AttemptAnswer]:
    """Write the attempts of a letter as an answer."""
    return [written(AttemptAnswer, attempt) for attempt in whole.attempts]


def letter_answer(letter: ListedLetter) -> LetterAnswer:
    """Write a letter as an answer."""
    return written(LetterAnswer, letter, error=letter.error[:MOST_ERROR])

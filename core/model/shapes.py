"""The shapes of requests and answers, and an answer made from a value.

A sequence number has 64 bits, so it is shown as a string. A word of a closed set is shown as a string too, because new
words may be added.
"""

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from threading import Lock  # noqa: TID251 - it only guards msgspec
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET

from core.errors import RequestRefused
from core.model.events import SequenceNumber

_describing = Lock()

VISIBLE = r"\S[\s\S]*\Z"  # a text with something to read in it

# The texts of requests, each with its limit. Sequence numbers are strings: they have 64 bits, and JavaScript's numbers
# have 53. Patterns end in \Z, because $ also matches before a newline at the end.
ID, DIGITS = r"^[0-9A-Za-z_.$-]{1,40}\Z", r"^[0-9]{1,19}\Z"
PartitionText = Annotated[str, msgspec.Meta(pattern=ID, description="The id of a partition.")]
NumberText = Annotated[str, msgspec.Meta(pattern=DIGITS, description="A sequence number, in digits.")]
Cursor = Annotated[str, msgspec.Meta(max_length=1000, description="`next` of the page before this one, unchanged.")]
Instant = Annotated[datetime, msgspec.Meta(tz=True, description="RFC 3339, with its zone; answers are in UTC.")]
Reason = Annotated[
    str, msgspec.Meta(min_length=3, max_length=400, pattern=VISIBLE, description="The reason, which is stored.")
]

# What a text that is refused should have been, by its pattern; for the others, the description of the API has the form.
MEANT = {
    ID: "the id of a partition has 1 to 40 letters, digits and _ . $ -, such as 0 or 12",
    DIGITS: "a sequence number has 1 to 19 digits and nothing else, such as 4711",
    VISIBLE: "this text has nothing to read in it",
}


class Shape(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The shape of a part of a request. Fields that it does not name are refused. A request must set exactly one of the
    fields in ONE_OF. In a query, only a revealing route takes those in REVEALING, and in a body only a caller who may
    reveal gives them."""

    ONE_OF: ClassVar[tuple[str, ...]] = ()
    REVEALING: ClassVar[tuple[str, ...]] = ()
    MARKED: ClassVar[Mapping[str, str]] = {}  # fields that also reveal something when their text has this mark

    def revealing(self) -> list[str]:
        """Return the given fields that need the role of revealing."""
        marked = [name for name, mark in self.MARKED.items() if mark in (getattr(self, name) or "")]
        return [name for name in self.REVEALING if getattr(self, name) is not None] + marked


class Answered(msgspec.Struct, kw_only=True):
    """The shape of an answer."""

    def quoting(self) -> tuple[str, ...]:
        """Return the fields whose values quote an event or name a person: only a revealing route shows them."""
        return ()

    def instead(self) -> dict[str, Any]:
        """Return the values that other routes show in place of such fields."""
        return dict.fromkeys(self.quoting())


@cache
def reader_of(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return the reader of a type from JSON. msgspec describes a class at its first use, and a second thread that used
    it meanwhile would end the process: so one thread describes at a time."""
    with _describing:
        return msgspec.json.Decoder(kind)


def converted(value: object, kind: Any, **how: Any) -> Any:
    """Return a value converted to a type. One thread describes the type before (`reader_of`)."""
    reader_of(kind)
    return msgspec.convert(value, kind, **how)


def hidden(shown: Any) -> Any:
    """Return an answer without values that quote an event or name a person, also in the answers that it holds."""
    if isinstance(shown, list):
        return [hidden(one) for one in shown]
    if not isinstance(shown, Answered):
        return shown
    held = {name: hidden(getattr(shown, name)) for name in shown.__struct_fields__}
    return type(shown)(**held | shown.instead())


AnswerShape = TypeVar("AnswerShape", bound=Answered)


class Nothing(Shape):
    """No path values, no parameters, or no body."""


PAGE, MOST_OF_A_PAGE = 20, 100
Limit = Annotated[int, msgspec.Meta(ge=1, le=MOST_OF_A_PAGE)]


def shape_of(value_class: type, hidden: tuple[str, ...] = (), **types: Any) -> Any:
    """Return the base of an answer with the fields of a dataclass but for hidden ones, some with types of their own."""
    hints = get_type_hints(value_class)
    names = [one.name for one in fields(value_class) if one.name not in hidden]
    shown = [(name, types.get(name, _shown_type(hints[name]))) for name in names]
    return msgspec.defstruct(f"{value_class.__name__}Shape", shown, bases=(Answered,), kw_only=True)


def written(shape: type[AnswerShape], value: object, **given: Any) -> AnswerShape:
    """Return an answer that shows the fields and properties of a value. `given` are the fields that differ from it, or
    that it does not have."""
    own = {name: getattr(value, name, UNSET) for name in shape.__struct_fields__ if name not in given}
    value_class: Any = type(value)
    for name in _sequence_numbers(value_class) & own.keys():
        own[name] = None if own[name] is None else str(own[name])
    return shape(**{name: one for name, one in own.items() if one is not UNSET}, **given)


@cache
def _sequence_numbers(value_class: Any) -> frozenset[str]:
    return frozenset(name for name, hint in get_type_hints(value_class).items() if SequenceNumber in _members(hint))


def _shown_type(hint: Any) -> Any:
    """Return the type under which an answer shows a type."""
    return Union[tuple(map(_shown_member, _members(hint)))]  # noqa: UP007 - it is computed


def _shown_member(hint: Any) -> Any:
    if hint is SequenceNumber or get_origin(hint) is Literal:
        return str
    if get_origin(hint) is not None:
        return hint if get_origin(hint) is not tuple else list[_shown_type(get_args(hint)[0])]  # type: ignore[misc]
    return getattr(hint, "__supertype__", hint)


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


LARGEST_NUMBER = 2**63 - 1


def number_of(text: str, field_name: str) -> SequenceNumber:
    """Read a sequence number of a request. More than 63 bits are a problem."""
    number = int(text)
    if number > LARGEST_NUMBER:
        raise RequestRefused(field_name, f"the largest sequence number is {LARGEST_NUMBER}")
    return SequenceNumber(number)


def utc(moment: datetime | None, field_name: str) -> datetime | None:
    """Convert an instant of a request to UTC."""
    if moment is None:
        return None
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise RequestRefused(field_name, "this instant does not exist in UTC") from None

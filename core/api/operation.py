"""An operation of the API: one declaration that validates requests, writes answers, and describes both."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Generic, TypeVar, get_args, get_type_hints

import msgspec

from core.api.problems import ProblemType, invalid
from core.api.room_store import RoomMeans
from core.api.route import Route
from core.model.spans import SequenceNumber

LARGEST_NUMBER = 2**63 - 1
JSON = "application/json"
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
    """The shape of a part of a request; fields that it does not name are refused. A request must set exactly one of the
    fields in ONE_OF."""

    ONE_OF: ClassVar[tuple[str, ...]] = ()


class Answered(msgspec.Struct, kw_only=True):
    """The shape of an answer."""


class Nothing(Shape):
    """No path values, no parameters, or no body."""


Path = TypeVar("Path", bound=Shape)
Query = TypeVar("Query", bound=Shape)
Body = TypeVar("Body", bound=Shape)


@dataclass(frozen=True, slots=True)
class Call(Generic[Path, Query, Body]):
    """A valid request: its values, who sent it, and when it came. `operations` has all of the API by route, and `room`
    gives the means of a room's operations."""

    path: Path
    query: Query
    body: Body
    who: str
    at: datetime
    operations: Mapping[Route, "Operation"]
    room: Callable[[], RoomMeans]


@dataclass(frozen=True, slots=True)
class Answer:
    """A body, with its status, headers and media type. Octets are sent unchanged."""

    body: Answered | bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media: str = JSON


Run = Callable[[Any], Answered | Answer]
Answers = Mapping[int, Any]  # a shape, a union of shapes, or a media type


@dataclass(frozen=True, slots=True, eq=False)  # an operation equals only itself, so it is a key
class Operation:
    """One operation, with the name of its function. `answers` holds its bodies by status, or the media type of octets;
    `problems` are its own, besides those of every route."""

    name: str
    summary: str
    tag: str
    run: Run
    path: type[Shape]
    query: type[Shape]
    body: type[Shape]
    answers: Answers
    problems: tuple[ProblemType, ...]


def operation(
    summary: str, tag: str, answers: Answers | None = None, problems: tuple[ProblemType, ...] = ()
) -> Callable[[Run], Operation]:
    """Make an operation of the decorated function.

    The shapes of the request are those in the function's `Call[Path, Query, Body]`; without `answers` it answers 200
    with the shape that it returns.
    """

    def declare(run: Run) -> Operation:
        types = get_type_hints(run)
        path, query, body = get_args(types["call"])
        given = answers or {200: types["return"]}
        return Operation(run.__name__, summary, tag, run, path, query, body, given, problems)

    return declare


def number_of(text: str, field_name: str) -> SequenceNumber:
    """Read a sequence number of a request; more than 63 bits are a problem."""
    number = int(text)
    if number > LARGEST_NUMBER:
        raise invalid(field_name, f"the largest sequence number is {LARGEST_NUMBER}")
    return SequenceNumber(number)


def utc(moment: datetime | None, field_name: str) -> datetime | None:
    """Convert an instant of a request to UTC."""
    if moment is None:
        return None
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise invalid(field_name, "this instant does not exist in UTC") from None

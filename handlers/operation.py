"""What an operation of the API is: one declaration that validates requests, makes answers, and describes both."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import msgspec

from core.model.events import PartitionId
from core.model.spans import SequenceNumber
from handlers.problems import ProblemType, invalid

LARGEST_NUMBER = 2**63 - 1
JSON = "application/json"

# The texts that requests are made of, each with its limit. Sequence numbers are strings: they have 64 bits, and
# JavaScript's numbers have 53.
PartitionText = Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z_.$-]{1,40}$", description="The id of a partition.")]
NumberText = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,19}$", description="A sequence number, in digits.")]
Cursor = Annotated[str, msgspec.Meta(max_length=1000, description="`next` of the page before this one, unchanged.")]
Instant = Annotated[datetime, msgspec.Meta(tz=True, description="RFC 3339, with its zone; answers are in UTC.")]
Reason = Annotated[str, msgspec.Meta(min_length=3, max_length=400, description="Why, for those who ask later.")]
IdempotencyKey = Annotated[str, msgspec.Meta(pattern=r"^[!-~]{1,100}$")]


class Shape(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What requests are read into: nothing that it does not name gets through. Of the fields in ONE_OF, exactly one has
    to be given."""

    ONE_OF: ClassVar[tuple[str, ...]] = ()


class Answered(msgspec.Struct, kw_only=True):
    """What answers are written from."""


class Nothing(Shape):
    """No path values, no parameters, or no body."""


Path = TypeVar("Path", bound=Shape)
Query = TypeVar("Query", bound=Shape)
Body = TypeVar("Body", bound=Shape)


@dataclass(frozen=True, slots=True)
class Call(Generic[Path, Query, Body]):
    """A request that is valid: its values, who sent it, and when it came."""

    path: Path
    query: Query
    body: Body
    who: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Answer:
    """What an operation answers: a body, and what differs from 200 with JSON. Octets are sent as they are."""

    body: Answered | bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media: str = JSON


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation, named as its function is. `answers` are its bodies by status, or the media type of octets;
    `problems` are those it may raise besides the ones that every route has."""

    name: str
    summary: str
    run: Callable[[Any], Answered | Answer]
    answers: Mapping[int, type[Answered] | str]
    path: type[Shape] = Nothing
    query: type[Shape] = Nothing
    body: type[Shape] = Nothing
    problems: tuple[ProblemType, ...] = ()
    tag: str = ""


def number_of(text: str, field_name: str) -> SequenceNumber:
    """A sequence number of a request; a problem when it has more than 63 bits."""
    number = int(text)
    if number > LARGEST_NUMBER:
        raise invalid(field_name, f"a sequence number is at most {LARGEST_NUMBER}")
    return SequenceNumber(number)


def partition_of(text: str) -> PartitionId:
    """The id of a partition of a request."""
    return PartitionId(text)


def utc(moment: datetime | None, field_name: str) -> datetime | None:
    """An instant of a request in UTC."""
    if moment is None:
        return None
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise invalid(field_name, "no such instant in UTC") from None

"""Operations of the API: a request parsed by its shapes, the answer, and the cursor of a list's next page.

A cursor is not secret, and anybody may write one. So its key has typed fields with limits, and is verified like every
other value of a request.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any, Generic, TypeVar, get_args, get_type_hints

import msgspec

from core.api.problems import ProblemType, invalid
from core.api.room_operations import RoomMeans
from core.api.route import Route
from core.model.shapes import (
    Answered,
    Shape,
    reader_of,
)

Entry = TypeVar("Entry")
Key = TypeVar("Key", bound=tuple[object, ...])
_MARK = 12  # characters of the query's hash
_DAMAGED = "this is not the `next` of any page"

# The fields of keys.
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class _Bound(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    mark: str
    key: msgspec.Raw


def page_of(
    found: Sequence[Entry], limit: int, query: object, key: Callable[[Entry], Sequence[object]]
) -> tuple[Sequence[Entry], str | None]:
    """Return a page, and the cursor of the next one or None. `found` has one entry more if there is a next page."""
    page = found[:limit]
    return page, cursor_of(query, key(page[-1])) if len(found) > limit else None


def query_of(given: msgspec.Struct) -> msgspec.Struct:
    """Return the part of a query that a cursor is bound to: all but the length of a page, which may change."""
    return msgspec.structs.replace(given, cursor=None, limit=1)


def cursor_of(query: object, key: Sequence[object]) -> str:
    """Return the cursor of a page of `query` whose last entry has this key."""
    text = msgspec.json.encode(_Bound(_mark(query), msgspec.Raw(msgspec.json.encode(list(key)))))
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def key_of(query: object, cursor: str, key: type[Key]) -> Key:
    """Return the key in a cursor. Raise a problem for a damaged cursor, or for the cursor of a different query.

    `key` is a type of tuples whose fields have limits. All its instants are in UTC, as in the cursors that we make.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found = reader_of(_Bound).decode(base64.b64decode(padded, altchars=b"-_", validate=True))
        read: Key = reader_of(key).decode(found.key)
    except (binascii.Error, ValueError, RecursionError, msgspec.DecodeError):
        raise invalid("cursor", _DAMAGED) from None
    if any(one.utcoffset() != timedelta() for one in read if isinstance(one, datetime)):
        raise invalid("cursor", _DAMAGED)
    if found.mark != _mark(query):
        raise invalid("cursor", "it belongs to a different query: start without a cursor when the filter changes")
    return read


def _mark(query: object) -> str:
    return sha256(msgspec.json.encode(query)).hexdigest()[:_MARK]


JSON = "application/json"

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
    """One operation, with the name of its function. `answers` holds its bodies by status, or the media type of octets.

    `problems` are its own, besides those of every route.
    """

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

    The shapes of the request are those in the function's `Call[Path, Query, Body]`. Without `answers`, it answers 200
    with the shape that it returns.
    """

    def declare(run: Run) -> Operation:
        types = get_type_hints(run)
        path, query, body = get_args(types["call"])
        given = answers or {200: types["return"]}
        return Operation(run.__name__, summary, tag, run, path, query, body, given, problems)

    return declare

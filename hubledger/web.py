"""The names of a room's routes and pages. docs/your-own-events.md shows a room with both.

A name is loaded when a module imports it: the routes of a room are read before the first request.
"""

from typing import TYPE_CHECKING

from hubledger import loader

if TYPE_CHECKING:
    from core.api.cursors import key_of, page_of, query_of
    from core.api.links import Signer
    from core.api.operation import Answer, Answered, Call, Cursor, Instant, Nothing, Shape, operation, utc
    from core.api.pages import page
    from core.api.problems import CONFLICT, NOT_FOUND, Problem, invalid, not_found
    from core.api.room_store import RoomMeans, RoomStore, Windows
    from core.api.route import LINKING, OPEN, READING, REVEALING, Link, OperatorPage, Route, linked

__all__ = (
    "CONFLICT",
    "LINKING",
    "NOT_FOUND",
    "OPEN",
    "READING",
    "REVEALING",
    "Answer",
    "Answered",
    "Call",
    "Cursor",
    "Instant",
    "Link",
    "Nothing",
    "OperatorPage",
    "Problem",
    "RoomMeans",
    "RoomStore",
    "Route",
    "Shape",
    "Signer",
    "Windows",
    "invalid",
    "key_of",
    "linked",
    "not_found",
    "operation",
    "page",
    "page_of",
    "query_of",
    "utc",
)
_PLACES = ("api.route", "api.operation", "api.problems", "api.pages", "api.cursors", "api.links", "api.room_store")

if not TYPE_CHECKING:  # for a type checker a name that is not above is a fault
    __getattr__ = loader(__name__, __all__, _PLACES)

"""The names of a room's routes and pages. docs/your-own-events.md shows a room with both.

A name is loaded when a module imports it: the routes of a room are read before the first request.
"""

from typing import TYPE_CHECKING

from hubledger import loader

if TYPE_CHECKING:
    from core.api.operation import Answer, Call, key_of, operation, page_of, query_of
    from core.api.pages import page
    from core.api.problems import CONFLICT, NOT_FOUND, Problem, invalid, not_found
    from core.api.room_operations import RoomMeans, RoomStore, Signer, Windows
    from core.api.route import LINKING, OPEN, READING, REVEALING, Link, OperatorPage, Route, linked
    from core.model.shapes import Answered, Cursor, Instant, Nothing, Shape, utc

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
_PLACES = ("api.route", "model.shapes", "api.operation", "api.problems", "api.pages", "api.room_operations")

if not TYPE_CHECKING:  # for a type checker a name that is not above is a fault
    __getattr__ = loader(__name__, __all__, _PLACES)

"""The names of a room's routes and pages. docs/your-own-events.md shows a room with both.

A name is loaded when a module imports it: the routes of a room are read before the first request.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.api.cursors import key_of, page_of, query_of
    from core.api.links import Signer
    from core.api.operation import Answer, Answered, Call, Cursor, Instant, Nothing, Shape, operation, utc
    from core.api.pages import page
    from core.api.problems import CONFLICT, NOT_FOUND, Problem, invalid, not_found
    from core.api.room_store import RoomMeans, RoomStore, Windows
    from core.api.route import LINKING, OPEN, READING, REVEALING, Link, OperatorPage, Route, linked

_PLACES = {
    "cursors": ("key_of", "page_of", "query_of"),
    "links": ("Signer",),
    "operation": ("Answer", "Answered", "Call", "Cursor", "Instant", "Nothing", "Shape", "operation", "utc"),
    "pages": ("page",),
    "problems": ("CONFLICT", "NOT_FOUND", "Problem", "invalid", "not_found"),
    "room_store": ("RoomMeans", "RoomStore", "Windows"),
    "route": ("LINKING", "OPEN", "READING", "REVEALING", "Link", "OperatorPage", "Route", "linked"),
}
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

if not TYPE_CHECKING:  # for a type checker a name that is not above is a fault

    def __getattr__(name: str) -> object:
        for place, names in _PLACES.items():
            if name in names:
                return getattr(import_module(f"core.api.{place}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

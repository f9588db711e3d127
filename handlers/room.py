"""The room of the app's transform: its routes and its pages, known before the first request."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from core.api.route import OperatorPage, Route
from core.errors import InvalidTransform
from core.model.room import DEFAULT_TRANSFORM

ROUTES = "routes"  # the module of a room


@dataclass(frozen=True, slots=True)
class RoomRoutes:
    """The routes of a room, its pages within the operator's page, and the folder of its files."""

    routes: tuple[Route, ...] = ()
    pages: tuple[OperatorPage, ...] = ()
    folder: Path | None = None

    def files(self) -> dict[str, Path]:
        """Return the files of the room's pages by name."""
        return {path.name: path for path in self.folder.iterdir()} if self.folder and self.folder.is_dir() else {}


@cache
def own_room() -> RoomRoutes:
    """Return what the room of TRANSFORM brings."""
    return routes_of(os.environ.get("TRANSFORM") or DEFAULT_TRANSFORM)


def routes_of(transform: str) -> RoomRoutes:
    """Return what the room of a transform brings; nothing without a module `routes`."""
    try:
        spec = find_spec(f"{transform}.{ROUTES}")
    except (ImportError, ValueError):  # no package of this name
        spec = None
    if spec is None or spec.origin is None:
        return RoomRoutes()
    try:
        module = import_module(spec.name)
        routes: Sequence[Route] = module.ROUTES
    except Exception as error:
        raise InvalidTransform(f"{spec.origin}: the routes of the room cannot be read: {error!r}") from error
    pages: Sequence[OperatorPage] = getattr(module, "OPERATOR_PAGES", ())
    return RoomRoutes(tuple(routes), tuple(pages), Path(spec.origin).with_name("pages"))


def with_room(own: tuple[Route, ...], room: RoomRoutes) -> tuple[Route, ...]:
    """Return the routes of the app and of its room. InvalidTransform names each route of the room that the app has."""
    names = {one.name: one for one in own} | {(one.method, one.template): one for one in own}
    faults = [
        f"the route {one.method} /api/{one.template} of the room ({one.operation}) has the {what} of one of the app"
        f" ({names[key].operation})"
        for one in room.routes
        for what, key in (("name", one.name), ("address", (one.method, one.template)))
        if key in names
    ]
    if faults:
        raise InvalidTransform(*faults)
    return (*own, *room.routes)

"""The room of the app's transform: its routes and its pages, known before the first request."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from core.api.route import OperatorPage, Route
from core.errors import InvalidTransform
from core.model.release import DEFAULT_TRANSFORM

Kind = TypeVar("Kind")
ROUTES = "routes"  # the module of a room
CATCH_ALL = "zz_no_such_route"  # the host tries functions in the order of their names, and this one must be the last
OUR_PAGES = Path(__file__).with_name("pages")


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
    """Return the routes and pages of the room that TRANSFORM names."""
    return routes_of(os.environ.get("TRANSFORM") or DEFAULT_TRANSFORM)


def routes_of(transform: str) -> RoomRoutes:
    """Return the routes and pages of a transform's room. A room without a module `routes` has none.

    InvalidTransform for a module that cannot be read, and for files of its pages that are missing or have our names.
    """
    package = transform.removesuffix(".transform")
    if not all(part.isidentifier() for part in package.split(".")):
        return RoomRoutes()  # loading the transform says so
    try:
        spec = find_spec(f"{package}.{ROUTES}")
        if spec is None or spec.origin is None:
            return RoomRoutes()
        module = import_module(spec.name)
        routes, pages = _all_of(Route, module.ROUTES), _all_of(OperatorPage, getattr(module, "OPERATOR_PAGES", ()))
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and f"{package}.{ROUTES}.".startswith(f"{error.name}."):
            return RoomRoutes()  # there is no such package: loading the transform says so
        raise InvalidTransform(f"{package}.{ROUTES}: the routes of the room cannot be read: {error!r}") from error
    room = RoomRoutes(routes, pages, Path(spec.origin).with_name("pages"))
    files, ours = room.files(), {path.name for path in OUR_PAGES.iterdir()}
    faults = [
        *(f"the page {one.name} has no file pages/{one.file}" for one in room.pages if one.file not in files),
        *(f"the page {one.name} has the name of a page of ours" for one in room.pages if f"{one.name}.js" in ours),
        *(f"pages/{name} has the name of a file of ours" for name in files if name in ours),
    ]
    if faults:
        raise InvalidTransform(*(f"{package}: {fault}" for fault in faults))
    return room


def with_room(own: tuple[Route, ...], room: RoomRoutes) -> tuple[Route, ...]:
    """Return the routes of the app and of its room.

    InvalidTransform for a route of the room that could take a request of the app, or that has the name or the address
    of another one.
    """
    faults = []
    for place, one in enumerate(room.routes):
        told = f"the route {one.method} /api/{one.template} of the room ({one.operation})"
        before = room.routes[:place]
        taken = [each for each in own if each.method == one.method and _overlap(each.template, one.template)]
        taken += [each for each in before if each.method == one.method and _form(each) == _form(one)]
        faults += [f"{told} takes requests of {each.method} /api/{each.template} ({each.operation})" for each in taken]
        faults += [f"{told} has the name of {each.operation}" for each in (*own, *before) if each.name == one.name]
        if "*" in one.template:
            faults.append(f"{told} takes addresses of any length: name each part")
        if one.name >= CATCH_ALL:
            faults.append(f"{told} has a name that sorts after {CATCH_ALL}, so it would never be called")
    if faults:
        raise InvalidTransform(*faults)
    return (*own, *room.routes)


def _all_of(kind: type[Kind], given: Iterable[object]) -> tuple[Kind, ...]:
    entries = tuple(given)
    found = tuple(one for one in entries if isinstance(one, kind))
    if len(found) != len(entries):
        raise TypeError(f"each entry must be of the type {kind.__name__}")
    return found


def _overlap(one: str, other: str) -> bool:
    """Return True if an address can have both forms. The host compares addresses without regard to case."""
    first, second = one.lower().split("/"), other.lower().split("/")
    return len(first) == len(second) and all(
        a == b or a.startswith("{") or b.startswith("{") for a, b in zip(first, second, strict=True)
    )


def _form(route: Route) -> list[str]:
    return ["{}" if part.startswith("{") else part for part in route.template.lower().split("/")]

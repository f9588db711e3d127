"""handlers/room.py: a room brings its routes and pages, and a fault in them is told at the start."""

import sys
from pathlib import Path

import pytest

from core.api.route import OPEN, READING, OperatorPage, Route
from core.errors import InvalidTransform
from handlers.room import RoomRoutes, routes_of, with_room

OWN = (Route("GET", "status", OPEN, "status.status"), Route("GET", "letters", READING, "letters.list_letters"))


def test_the_room_of_the_transform_brings_its_routes_pages_and_files() -> None:
    room = routes_of("examples.home_security")
    assert [one.template for one in room.routes][:2] == ["homes", "homes/{home_id}/activity"]
    assert room.pages == (OperatorPage("homes", "Homes", "homes.js"),)
    assert {"home.html", "home.js", "homes.js"} <= set(room.files())


@pytest.mark.parametrize("transform", ["examples.flight_info", "local.dangerous", "no.such.room", ""])
def test_a_transform_without_routes_brings_none(transform: str) -> None:
    assert routes_of(transform) == RoomRoutes()
    assert RoomRoutes().files() == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ROUTES = ", "SyntaxError"),
        ("import no_such_module", "No module named 'no_such_module'"),
        ("", "has no attribute 'ROUTES'"),
    ],
)
def test_routes_that_cannot_be_read_are_a_fault_that_names_the_file(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_room").mkdir()
    for name in ("__init__.py", "routes.py"):
        (tmp_path / "broken_room" / name).write_text(text if name == "routes.py" else "")
    with pytest.raises(
        InvalidTransform, match=r"broken_room.routes\.py: the routes of the room cannot be read"
    ) as caught:
        routes_of("broken_room")
    assert said in str(caught.value)
    for name in ("broken_room", "broken_room.routes"):
        sys.modules.pop(name, None)


def test_a_room_may_not_take_a_name_or_an_address_of_the_app() -> None:
    room = RoomRoutes(
        (Route("GET", "letters", OPEN, "apps.shop.views.letters"), Route("GET", "x", OPEN, "apps.shop.status"))
    )
    with pytest.raises(InvalidTransform) as caught:
        with_room(OWN, room)
    assert caught.value.faults == (
        "the route GET /api/letters of the room (apps.shop.views.letters) has the address of one of the app"
        " (letters.list_letters)",
        "the route GET /api/x of the room (apps.shop.status) has the name of one of the app (status.status)",
    )
    fine = RoomRoutes((Route("GET", "orders", READING, "apps.shop.views.orders"),))
    assert with_room(OWN, fine) == (*OWN, *fine.routes)

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.api.route import OPEN, READING, OperatorPage, Route
from core.errors import InvalidTransform
from handlers.api import OWN
from handlers.room_routes import RoomRoutes, routes_of, with_room

Made = Callable[..., str]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    monkeypatch.syspath_prepend(tmp_path)

    def make(routes: str, init: str = "", pages: tuple[str, ...] = ("orders.js",)) -> str:
        imports = "from hubledger.web import OPEN, OperatorPage, Route\n"
        files = {"__init__.py": init, "routes.py": imports + routes, **{f"pages/{name}": "" for name in pages}}
        (tmp_path / "shop_room" / "pages").mkdir(parents=True)
        for name, text in files.items():
            (tmp_path / "shop_room" / name).write_text(text)
        return "shop_room"

    yield make
    for name in ("shop_room", "shop_room.routes"):
        sys.modules.pop(name, None)


def refusal_of(package: str) -> tuple[str, ...]:
    with pytest.raises(InvalidTransform) as caught:
        routes_of(package)
    return caught.value.faults


def test_the_room_of_the_transform_brings_its_routes_pages_and_files(made: Made) -> None:
    for transform in ("examples.home_security", "examples.home_security.transform"):
        room = routes_of(transform)
        assert [one.template for one in room.routes][:2] == ["homes", "homes/{home_id}/activity"]
        assert room.pages == (OperatorPage("homes", "Homes", "homes.js"),)
        assert {"home.html", "home.js", "homes.js"} <= set(room.files())
    package = made("ROUTES = (one for one in [Route('GET', 'orders', OPEN, 'shop_room.views.list_orders')])")
    assert [one.name for one in routes_of(package).routes] == ["list_orders"]
    for transform in ("examples.flight_info", "local.feed.dangers", "no.such.room", "", "a..b", "no room"):
        assert routes_of(transform) == RoomRoutes()
    assert RoomRoutes().files() == {}


@pytest.mark.parametrize(
    ("routes", "init", "said"),
    [
        ("ROUTES = ", "", "SyntaxError"),
        ("import no_such_module", "", "No module named 'no_such_module'"),
        ("", "", "has no attribute 'ROUTES'"),
        ("ROUTES = 3", "", "'int' object is not iterable"),
        ("ROUTES = ('x',)", "", "each entry must be of the type Route"),
        ("ROUTES = ()\nOPERATOR_PAGES = (OPEN,)", "", "each entry must be of the type OperatorPage"),
        ("raise ValueError('a slip')", "", "a slip"),
        ("ROUTES = ()", "ROOM = ", "SyntaxError"),
        ("ROUTES = ()", "raise ValueError('a slip')", "a slip"),
    ],
)
def test_routes_that_cannot_be_read_are_a_fault_with_its_module(routes: str, init: str, said: str, made: Made) -> None:
    (fault,) = refusal_of(made(routes, init))
    assert fault.startswith("shop_room.routes: the routes of the room cannot be read: ")
    assert said in fault


@pytest.mark.parametrize(
    ("page", "files", "said"),
    [
        ("'orders', 'Orders', 'lost.js'", ("orders.js",), "the page orders has no file pages/lost.js"),
        ("'letters', 'Orders', 'orders.js'", ("orders.js",), "the page letters has the name of a page of ours"),
        ("'orders', 'Orders', 'orders.js'", ("orders.js", "dom.js"), "pages/dom.js has the name of a file of ours"),
    ],
)
def test_pages_need_their_files_and_their_own_names(page: str, files: tuple[str, ...], said: str, made: Made) -> None:
    package = made(f"ROUTES = ()\nOPERATOR_PAGES = (OperatorPage({page}),)", pages=files)
    assert refusal_of(package) == (f"shop_room: {said}",)


SHOP = "apps.shop.views"
LISTED = Route("GET", "customers/{customer}/orders", READING, f"{SHOP}.list_orders")


@pytest.mark.parametrize(
    ("route", "said"),
    [
        (("GET", "status", "x"), f"GET /api/status of the room ({SHOP}.x) takes requests of GET /api/status"),
        (("GET", "Status", "x"), f"GET /api/Status of the room ({SHOP}.x) takes requests of GET /api/status"),
        (("GET", "ledger/{a}/{b}", "x"), "takes requests of GET /api/ledger/{partition_id}/{sequence_number}"),
        (("GET", "tasks/mine", "x"), "takes requests of GET /api/tasks/{task_id}"),
        (("GET", "{first}/ready", "x"), "takes requests of GET /api/health/ready"),
        (("GET", "{*path}", "x"), "takes addresses of any length"),
        (("GET", "shops/{*rest}", "x"), "takes addresses of any length"),
        (("GET", "y", "list_letters"), f"({SHOP}.list_letters) has the name of letters.list_letters"),
        (("GET", "customers/{id}/orders", "x"), "takes requests of GET /api/customers/{customer}/orders"),
        (("GET", "y", "list_orders"), f"({SHOP}.list_orders) has the name of {SHOP}.list_orders"),
        (("GET", "y", "zz_top"), "has a name that sorts after zz_no_such_route"),
    ],
)
def test_a_route_of_a_room_takes_no_request_and_no_name_of_another(route: tuple[str, str, str], said: str) -> None:
    method, template, name = route
    with pytest.raises(InvalidTransform) as caught:
        with_room(OWN, RoomRoutes((LISTED, Route(method, template, OPEN, f"{SHOP}.{name}"))))
    assert said in str(caught.value)
    for method, template in (("POST", "status"), ("GET", "customers/first/orders"), ("GET", "a/{b}/{c}/{d}")):
        room = RoomRoutes((LISTED, Route(method, template, READING, f"{SHOP}.x")))
        assert with_room(OWN, room) == (*OWN, *room.routes)

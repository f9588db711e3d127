"""The app of a user's room over HTTP, on a database that has no table of an example."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from core.transforms.loading import Room
from tests.acceptance.api.served import Served
from tests.fakes.orders_room import ORDERS, write_app

SECRET = "s" * 32


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The app with the room, which alone has tables beside ours."""
    folder = tmp_path_factory.mktemp("room")
    root = write_app(folder / "app")
    rooms = (Room(ORDERS, root / "apps" / "orders"),)
    made = Served(folder, (root, rooms), TRANSFORM=ORDERS, RESIDENT_LINK_SECRET=SECRET)
    yield made
    made.close()


def test_the_store_has_the_tables_of_the_room_and_of_no_example(served: Served) -> None:
    with closing(sqlite3.connect(served.path)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {"customer", "order_line"} <= tables
    assert not {"home", "home_alert", "sensor_reading", "flight_status", "home_activity"} & tables


def test_every_part_that_is_no_home_answers_for_the_room_alone(served: Served) -> None:
    for path in ("ops", "status/history", "ledger/audit", "dead-letters", "tasks", "health/ledger", "openapi.json"):
        assert served.get(path).status == 200, path
    assert (served.get("status").json["room_pages"], served.get("aggregations").json["job"]) == ([], "turnover")


def test_the_app_has_no_route_of_a_different_room(served: Served) -> None:
    for path in ("homes", "homes/h1", "homes/h1/activity"):
        answer = served.get(path)
        assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")
        assert answer.json["detail"] == "the app has no route at this address; /api/openapi.json lists all"
    assert served.post("homes/h1/links", {}).status == 404

"""handlers/operations/homes.py: the routes of homes where the transform registers none."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from handlers.app import app
from handlers.web.links import sign_link
from tests.unit.handlers.running import CONTEXT, HOME, Reply, Running, functions, reply_of, request

SECRET = "a secret of at least 32 characters"
PLACE = {"home_id": "home-1"}


@pytest.fixture
def flights(running: Running) -> Running:
    """The app of an example that has no homes."""
    running.restart(TRANSFORM="examples.flight_info", RESIDENT_LINK_SECRET=SECRET)
    return running


def opened(of: Running) -> Reply:
    """Open the page of a home with a link for it."""
    headers = {"x-home-link": sign_link("home-1", datetime.now(UTC) + timedelta(hours=1), SECRET)}
    asked: Any = request("GET", route_params=PLACE, headers=headers)
    return reply_of(functions()["show_own_activity"](asked, CONTEXT))


def test_every_route_of_homes_says_why_it_has_no_answer(flights: Running) -> None:
    replies = [
        flights.get("find_homes"),
        flights.get("show_activity", PLACE),
        flights.post("make_home_link", b"", PLACE),
        opened(flights),
        flights.get("home_page", PLACE),
    ]
    assert [(one.status, one.media) for one in replies] == [(404, "application/problem+json")] * 5
    said = "TRANSFORM=examples.flight_info has no row class examples.home_security.transform.Home"
    assert {one.body["detail"] for one in replies} == {f"{said}, so this app has no homes"}
    assert flights.get("status").body["has_homes"] is False


def test_a_transform_that_writes_homes_of_the_example_has_them(running: Running) -> None:
    running.restart(TRANSFORM="local.dangerous")
    running.ingest([0], [HOME])
    assert [one["home_id"] for one in running.get("find_homes").body["homes"]] == ["home-1"]


def test_the_page_of_a_home_is_served_while_the_settings_are_wrong(running: Running) -> None:
    running.without("EVENTHUB_NAME")
    page = functions()["home_page"](request("GET", route_params=PLACE), CONTEXT)
    assert (page.status_code, page.mimetype) == (200, "text/html")
    assert app.value is None

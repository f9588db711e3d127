"""examples/home_security/views.py: the page of a home, a room's own."""

from handlers.app import app
from tests.handlers.running import CONTEXT, Running, functions, request

SECRET = "a secret of at least 32 characters"
PLACE = {"home_id": "home-1"}


def test_the_page_of_a_home_is_served_while_the_settings_are_wrong(running: Running) -> None:
    running.without("EVENTHUB_NAME")
    page = functions()["home_page"](request("GET", route_params=PLACE), CONTEXT)
    assert (page.status_code, page.mimetype) == (200, "text/html")
    assert app.value is None

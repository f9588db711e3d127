"""examples/home_security: the raw readings of a home without sums, the limit of its alerts, and its page."""

from examples.home_security.shown_activity import MOST_ALERTS
from handlers.app import app
from tests.handlers.running import CONTEXT, HOME, MOTION, Running, functions, request

ASKED = {"home_id": "home-1"}


def test_a_home_whose_readings_are_not_summed_shows_them_as_they_came(running: Running) -> None:
    running.ingest([0, 1, 2], [HOME, MOTION, MOTION.replace(b"idle", b"active")])
    body = running.get("show_activity", ASKED).body
    assert (body["day"]["kinds"], body["week"]["kinds"], body["as_of"]["committed_at"]) == ([], [], None)
    plain = {"sensor_id": "h", "kind": "motion", "ppm": None, "observed_at": "2026-01-01T12:00:00Z"}
    assert body["readings"] == [plain | {"state": "active"}, plain | {"state": "idle"}]
    assert running.get("show_activity", ASKED, until="2026-01-02T00:00:00Z").body["readings"] == []


def test_only_more_alerts_than_an_answer_holds_are_left_out(running: Running) -> None:
    active = MOTION.replace(b"idle", b"active")
    running.ingest([*range(MOST_ALERTS + 1)], [HOME, *[active] * MOST_ALERTS])
    body = running.get("show_activity", ASKED).body
    assert (len(body["alerts"]), body["more_alerts"]) == (MOST_ALERTS, False)
    running.ingest([MOST_ALERTS + 1], [active])
    body = running.get("show_activity", ASKED).body
    assert (len(body["alerts"]), body["more_alerts"]) == (MOST_ALERTS, True)


def test_the_page_of_a_home_is_served_while_the_settings_are_wrong(running: Running) -> None:
    running.without("EVENTHUB_NAME")
    page = functions()["home_page"](request("GET", route_params=ASKED), CONTEXT)
    assert (page.status_code, page.mimetype, app.value) == (200, "text/html", None)

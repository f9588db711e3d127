"""examples/home_security/shown_activity.py: the raw readings of a home without sums, and the limit of its alerts."""

from examples.home_security.shown_activity import MOST_ALERTS
from tests.handlers.running import HOME, MOTION, Running

ASKED = {"home_id": "home-1"}


def test_a_home_whose_readings_are_not_summed_shows_them_as_they_came(running: Running) -> None:
    running.ingest([0, 1, 2], [HOME, MOTION, MOTION.replace(b"idle", b"active")])
    body = running.get("show_activity", ASKED).body
    assert (body["day"]["kinds"], body["week"]["kinds"], body["as_of"]["committed_at"]) == ([], [], None)
    plain = {"sensor_id": "h", "kind": "motion", "ppm": None, "observed_at": "2026-01-01T12:00:00Z"}
    assert body["readings"] == [plain | {"state": "active"}, plain | {"state": "idle"}]


def test_an_earlier_period_has_no_raw_readings(running: Running) -> None:
    running.ingest([0, 1], [HOME, MOTION])
    assert running.get("show_activity", ASKED, until="2026-01-02T00:00:00Z").body["readings"] == []


def test_only_more_alerts_than_an_answer_holds_are_left_out(running: Running) -> None:
    active = MOTION.replace(b"idle", b"active")
    running.ingest([*range(MOST_ALERTS + 1)], [HOME, *[active] * MOST_ALERTS])
    body = running.get("show_activity", ASKED).body
    assert (len(body["alerts"]), body["more_alerts"]) == (MOST_ALERTS, False)
    running.ingest([MOST_ALERTS + 1], [active])
    body = running.get("show_activity", ASKED).body
    assert (len(body["alerts"]), body["more_alerts"]) == (MOST_ALERTS, True)

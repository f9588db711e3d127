"""The watch in the log of a running host, over a real hub: a calm stream, letters and absent events."""

from tests.acceptance.gaps.apps import BATCH, GROUP, HUB, App
from tests.infra.test_alerts import FACTS


def newest(app: App) -> dict:
    """Return the facts of the newest watch, by the names of the page."""
    lines = app.lines("watch")
    return {name: lines[-1][name] for name in FACTS} if lines else {}


def test_every_tick_is_one_line_with_the_facts_of_the_alerts(app: App) -> None:
    app.start(WATCH_SCHEDULE="* * * * * *", HUB_RETENTION_HOURS="24")
    app.publish(100)
    app.until_all_accounted()
    calm = {
        "ledger_balanced": True,
        "lag_seconds": 0.0,
        "partitions_stopped": 0,
        "standing": "",
        "stops_recorded": 0,
        "tasks_held_up": 0,
        "letters_open": 0,
    }
    none = {"oldest_letter_seconds": 0.0, "absent_new": 0, "events_lost": 0}
    none |= {"letters_expiring_hours": 24.0, "loss_hours": 24.0}
    aggregation = {"aggregation_lag_seconds": 0.0, "aggregation_failures": 0, "aggregation_faults": 0}
    wanted = {"event_hub": f"localhost/{HUB}", "consumer_group": GROUP, **calm, **none, **aggregation}
    app.until(lambda: newest(app) == wanted)
    app.publish_skipped()
    app.emulator.expire_before(HUB, "0", 150)
    app.publish(BATCH)
    app.until_all_accounted()
    app.until(lambda: newest(app)["absent_new"] == 50)
    app.send("0", [b"poison"])
    app.until(lambda: newest(app)["letters_open"] == 1)
    app.until(lambda: newest(app)["oldest_letter_seconds"] > 1)
    app.until(lambda: 23 < newest(app)["letters_expiring_hours"] < 24)
    assert (newest(app)["ledger_balanced"], newest(app)["loss_hours"]) == (True, 24.0)

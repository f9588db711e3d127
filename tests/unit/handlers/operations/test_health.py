"""handlers/operations/health.py: each cause makes the health bad, and a result is remembered for seconds."""

from handlers.operations import health
from tests.unit.handlers.running import HOME, MOTION, Running


def test_books_that_do_not_balance_are_unhealthy_although_no_partition_is_stopped(running: Running) -> None:
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    running.sqlite.sql("DELETE FROM batch_ledger")
    found = running.get("health_ledger")
    assert (found.status, found.body["healthy"], found.body["stops"]) == (503, False, [])
    assert (found.body["dead_lettered"], found.body["letters_open"]) == (1, 1)


def test_the_health_of_the_books_is_read_once_in_five_seconds(running: Running) -> None:
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    before = running.get("health_ledger")
    running.ingest([3], [MOTION])
    assert (before.status, running.get("health_ledger").body) == (200, before.body)
    health.BOOKS.forget()
    assert running.get("health_ledger").body["numbers"] == before.body["numbers"] + 1


def test_an_app_that_cannot_read_its_settings_is_alive_and_not_ready(running: Running) -> None:
    running.restart(OPERATOR_ROLE="Mine")
    assert running.get("health_live").status == 200
    ready = running.get("health_ready")
    assert (ready.status, ready.body) == (503, {"healthy": False, "fault": "SettingsRefused"})

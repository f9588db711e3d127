"""handlers/timers.py and handlers/operations/status.py: the watch stores minutes, and a route shows them."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.errors import HubUnreachable, StoreUnavailable
from core.ingest.stalled_partitions import PartitionStanding, Unhealed
from core.ledger.store import Ledger
from core.ledger.totals import Minute
from core.model.events import PartitionId
from handlers.app import HUB_ENDS, app
from handlers.remembered import Remembered
from handlers.timers import note
from tests.fakes.builders import partition
from tests.handlers.running import HOME, MOTION, Running, functions


def give_ends(ends: Mapping[str, int]) -> None:
    """Let the hub answer with these last numbers."""
    found = {PartitionId(id): end for id, end in ends.items()}
    app.value = replace(app(), hub_ends=Remembered(lambda: found, HUB_ENDS))


@pytest.fixture
def watched(running: Running) -> Iterator[Running]:
    """Three numbers of partition 1 are accounted for; the hub has two more there."""
    running.restart(HUB_RETENTION_HOURS="5")
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    give_ends({"1": 4, "3": -1})
    running.sqlite.sql("UPDATE event_hub_checkpoint SET enqueued_at = ?", f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z")
    yield running


def test_a_watch_stores_the_lag_of_its_minute_and_the_route_shows_it(watched: Running) -> None:
    functions()["watch"](None)
    functions()["watch"](None)
    assert [line["action"] for line in watched.lines[-2:]] == ["watch", "watch"]
    shown = watched.get("status_history", minutes="5")
    assert shown.status == 200
    for one in shown.body["minutes"]:
        assert datetime.now(UTC) - datetime.fromisoformat(one.pop("at")) < timedelta(minutes=1)
        assert (one["lag"], one["accounted"]) == (2, 3)
    assert shown.body["minutes"][0]["rate"] is None


def test_a_letter_that_was_lost_is_an_imbalance_of_the_watch_although_the_status_counts_it_as_settled(
    watched: Running,
) -> None:
    functions()["watch"](None)
    watched.sqlite.sql("DELETE FROM event_hub_dead_letter")
    functions()["watch"](None)
    assert [line["ledger_balanced"] for line in watched.lines[-2:]] == [True, False]
    shown = watched.get("status").body["letters"]
    assert (shown["open"], shown["settled"], shown["dead_lettered"]) == (0, 1, 1)


def test_the_facts_are_logged_although_the_minute_cannot_be_stored(watched: Running) -> None:
    watched.sqlite.sql("DROP TABLE stream_minute")
    with pytest.raises(StoreUnavailable):
        functions()["watch"](None)
    facts, failed = watched.lines[-2:]
    assert (facts["action"], facts["event_hub"], facts["loss_hours"]) == ("watch", "localhost/telemetry", 5.0)
    assert (failed["action"], failed["levelname"]) == ("minute_failed", "ERROR")
    assert "stream_minute" in failed["error"]


def test_the_history_is_of_the_last_minutes_that_were_asked_for_and_holds_counts_only(running: Running) -> None:
    running.ingest([0], [HOME])
    now = datetime.now(UTC)
    for ago in range(200, 0, -1):
        Ledger(app().stream).store_minute(Minute(now - timedelta(minutes=ago), ago, 1_000_000 - 60 * ago))
    by_default, few = running.get("status_history").body["minutes"], running.get("status_history", minutes="7")
    assert [one["lag"] for one in few.body["minutes"]] in ([*range(7, 0, -1)], [*range(6, 0, -1)])
    assert len(by_default) in (179, 180)
    assert {one["rate"] for one in by_default[1:]} == {1.0}
    assert {name for one in by_default for name in one} == {"at", "lag", "accounted", "rate"}


WORDS = "the trigger of partition 1 stands at 1,410 since 12:03 UTC; 10,129 events went by the app's own reader"


def test_a_trigger_that_stands_has_a_line_of_its_own_and_a_fault_has_its_own(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "hubledger.timers")
    note(PartitionStanding(partition("1"), WORDS))
    note(Unhealed(partition("1"), HubUnreachable("no answer")))
    lines = [(line.getMessage(), line.levelname, line.__dict__["action"]) for line in caplog.records]
    assert lines == [("trigger stands", "WARNING", "trigger"), ("gap not healed", "ERROR", "gap")]
    assert caplog.records[0].__dict__["detail"] == WORDS

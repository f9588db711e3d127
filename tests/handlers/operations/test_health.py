import logging
import re
import resource
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.errors import HubUnreachable, InfrastructureFault, OutageSuspected, StoreUnavailable
from core.ingest.stalled_partitions import PartitionStanding, Unhealed
from core.ledger.store import Ledger
from core.ledger.totals import Minute
from core.model.events import Partition, PartitionId
from core.model.release import VERSION
from examples.home_security.transform import HomeAlert
from handlers.app import HUB_ENDS, app
from handlers.operations import status as health
from handlers.remembered import Remembered
from handlers.timers import note
from tests.fakes.builders import EPOCH, NOON, commit, partition, settled
from tests.handlers.running import HOME, MOTION, Running, forget_health, functions


def give_ends(ends: Mapping[str, int], seconds: Callable[[], float] = time.monotonic) -> None:
    found = {PartitionId(id): end for id, end in ends.items()}
    app.value = replace(app(), hub_ends=Remembered(lambda: found, HUB_ENDS, seconds))


@pytest.fixture
def watched(running: Running) -> Running:
    """Three numbers of partition 1 are accounted for. The hub has two more there."""
    running.restart(HUB_RETENTION_HOURS="5")
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    give_ends({"1": 4, "3": -1})
    running.sqlite.sql("UPDATE event_hub_checkpoint SET enqueued_at = ?", f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z")
    return running


def test_the_health_of_the_books_is_read_once_in_five_seconds_and_bad_when_they_are_uneven(watched: Running) -> None:
    before = watched.get("health_ledger")
    watched.sqlite.sql("DELETE FROM batch_ledger")
    assert (before.status, watched.get("health_ledger").body) == (200, before.body)
    health.BOOKS.forget()
    found = watched.get("health_ledger")
    assert (found.status, found.body["healthy"], found.body["stops"]) == (503, False, [])
    assert (found.body["dead_lettered"], found.body["letters_open"]) == (1, 1)


def test_an_app_that_cannot_read_its_settings_is_alive_and_not_ready(running: Running) -> None:
    running.restart(OPERATOR_ROLE="Mine")
    assert running.get("health_live").status == 200
    ready = running.get("health_ready")
    assert (ready.status, ready.body) == (503, {"healthy": False, "fault": "SettingsRefused"})


READY = {"healthy": True, "fault": None}
NOT_READY = (503, {"healthy": False, "fault": "StoreUnavailable"})


def test_a_database_that_can_be_read_and_not_written_is_not_ready(running: Running) -> None:
    running.ingest([0], [HOME])
    before = running.sqlite.sql("SELECT * FROM replay_diff")
    assert running.get("health_ready").body == READY
    with closing(sqlite3.connect(running.sqlite.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        health.READINESS.forget()
        assert running.get("health_ready").status == 200, "a write is tried every thirty seconds"
        forget_health()
        found = running.get("health_ready")
        assert (found.status, found.body) == NOT_READY
        other.execute("ROLLBACK")
    forget_health()
    assert running.get("health_ready").body == READY
    assert running.sqlite.sql("SELECT * FROM replay_diff") == before


def test_a_database_on_a_full_disk_is_not_ready(running: Running) -> None:
    running.ingest([0], [HOME])
    assert running.get("health_ready").status == 200
    forget_health()
    log = running.sqlite.path.with_name(f"{running.sqlite.path.name}-wal")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, hard))  # no file of this process grows beyond it
    try:
        found = running.get("health_ready")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (found.status, found.body) == NOT_READY
    forget_health()
    assert running.get("health_ready").status == 200


def test_a_partition_that_stands_is_named_with_its_fault_by_health_and_status(running: Running) -> None:
    running.ingest([0, 1], [HOME, MOTION])
    long_ago = "2026-01-01T00:00:00.000000Z"
    running.sqlite.sql("UPDATE event_hub_checkpoint SET enqueued_at = ?", long_ago)
    running.sqlite.sql("UPDATE batch_ledger SET committed_at = ?", long_ago)
    with closing(sqlite3.connect(running.sqlite.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InfrastructureFault):
            running.ingest([2], [MOTION])
        other.execute("ROLLBACK")
    running.give_hub(*[MOTION] * 5)
    give_ends({"1": 4})
    found, status = running.get("health_ledger"), running.get("status").body
    assert (found.status, found.body["healthy"], found.body["stops"]) == (503, False, [])
    assert found.body["standing"] == [
        {"partition_id": "1", "since": "2026-11-21T02:15:00.295942Z", "fault": "StoreUnavailable"}
    ]
    assert status["standing"] == found.body["standing"]
    running.ingest([2, 3, 4], [MOTION] * 3)
    forget_health()
    assert (running.get("health_ledger").body["standing"], running.get("status").body["standing"]) == ([], [])
    assert app().batch_log.faults == {}


def test_the_status_shows_the_books_of_each_partition_of_its_stream(running: Running) -> None:
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    running.ingest([0], [HOME], partition_id="10")
    for number in (0, 1):
        running.ingest([number], [HOME], partition_id="2")
    running.sqlite.sql("UPDATE event_hub_checkpoint SET sequence_number = ? WHERE partition_id = '2'", 2**62)
    reply = running.get("status")
    body = reply.body
    assert (reply.status, reply.headers["Cache-Control"], body["version"]) == (200, "no-store", VERSION)
    assert (body["hub_fault"].startswith("the hub did not answer: telemetry, "), body["lag"]) == (True, None)
    assert (body["accounted"], body["written"], body["dead_lettered"], body["ledger_balanced"]) == (6, 5, 1, False)
    first, second, third = body["partitions"]
    place = [first[name] for name in ("hub_end", "lag", "first", "checkpoint", "enqueued_at")]
    assert place == [None, None, "0", "2", "2026-11-21T02:15:00.295942Z"]
    assert (first["balanced"], first["commits"], first["numbers"], first["written"]) == (True, 1, 3, 2)
    assert (second["partition_id"], second["balanced"], second["checkpoint"]) == ("2", False, str(2**62))
    assert (third["partition_id"], third["checkpoint"]) == ("10", "0")
    running.restart(EVENTHUB_CONSUMER_GROUP="other")
    body = running.get("status").body
    assert (body["consumer_group"], body["accounted"], body["partitions"]) == ("other", 0, [])


def test_the_status_sums_the_events_of_each_unknown_field_the_largest_first(running: Running) -> None:
    for place, counts in (("1", '{"gift": 2, "": 1}'), ("2", '{"coupon": 11998}'), ("10", '{"coupon": 2}')):
        running.ingest([0], [HOME], partition_id=place)
        running.sqlite.sql("UPDATE event_hub_checkpoint SET unknown_fields = ? WHERE partition_id = ?", counts, place)
    found = [(one["name"], one["events"]) for one in running.get("status").body["unknown_fields"]]
    assert found == [("coupon", 12_000), ("gift", 2), ("", 1)]


def stop(reason: str, id: str = "1") -> None:
    store, own = app().core.ingestion.store, app().settings.stream
    state = store.read_partition(Partition(own.event_hub, own.consumer_group, PartitionId(id)))
    store.note_stop(state, reason, f"why {reason}", NOON)  # type: ignore[arg-type]


def test_the_status_and_the_health_show_every_stop_of_every_reason(running: Running) -> None:
    running.ingest([0], [HOME])
    for reason, id in (("outage", "1"), ("incarnation", "1"), ("incarnation", "1"), ("held", "7")):
        stop(reason, id)
    body = running.get("status").body
    at = "2026-01-02T00:00:00Z"
    shown = [(one["partition_id"], one["stops"]) for one in body["partitions"]]
    assert (body["stops"], body["incarnation"], body["ledger_balanced"]) == (3, 1, True)
    bare = {"stopped_at": at, "patience": None, "failure": None, "failed": None, "tried": None, "letters": 0}
    first = [
        {"partition_id": "1", "reason": reason, "detail": detail, "attempts": attempts, **bare, "patience": patience}
        for reason, detail, attempts, patience in (("incarnation", "why incarnation", 2, None), ("outage", None, 1, 10))
    ]
    seventh = [{"partition_id": "7", "reason": "held", "detail": "why held", "attempts": 1, **bare}]
    assert shown == [("1", first), ("7", seventh)]
    health = running.get("health_ledger")
    assert (health.status, health.body["healthy"], health.body["stops"]) == (503, False, [*first, *seventh])


def test_an_outage_names_its_error_its_attempts_and_the_letters_that_its_events_become(running: Running) -> None:
    running.restart(FUSE_FLOOR="3", FUSE_PATIENCE="2")
    running.ingest([0], [b"{"])

    def found() -> list[object]:
        (stop,) = running.get("status").body["partitions"][0]["stops"]
        names = ("attempts", "patience", "failed", "tried", "letters", "detail")
        assert re.fullmatch(r"MissingReference at transform\.py:\d+", stop["failure"]), stop
        return [stop[name] for name in names]

    for attempt in (1, 2):
        with pytest.raises(OutageSuspected):
            running.ingest([1, 2, 3, 4], [MOTION, MOTION, MOTION, HOME])
        assert found() == [attempt, 2, 3, 4, 0, None]
    running.ingest([1, 2, 3, 4], [MOTION, MOTION, MOTION, HOME])
    running.ingest([5, 6, 7], [MOTION.replace(b"home-1", b"home-2")] * 3)
    assert found() == [2, 2, 3, 4, 6, None], "the letter from before the stop does not count"


def test_a_whole_number_that_javascript_would_round_is_a_text(running: Running) -> None:
    own, largest = app(), 2**53 - 1  # that JavaScript keeps
    state = own.core.ingestion.store.read_partition(own.settings.stream.partition(PartitionId("1")))
    alerts = [HomeAlert("h", "s", "motion", ppm, EPOCH) for ppm in (largest, largest + 1, -largest - 1)]
    own.core.ingestion.store.commit_batch(commit(state, 0, 0, settled({0: alerts})))
    rows = running.get("reveal_number", {"partition_id": "1", "sequence_number": "0"}).body["rows"]
    assert [row["columns"]["ppm"] for row in rows] == [largest, str(largest + 1), str(-largest - 1)]


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

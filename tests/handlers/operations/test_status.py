"""handlers/operations/status.py: the books, also while the hub does not answer."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, repeat

from core.model.events import Partition, PartitionId
from core.model.release import VERSION
from handlers.app import HUB_ENDS, app
from handlers.remembered import Remembered
from tests.fakes.builders import EPOCH, NOON
from tests.handlers.running import HOME, MOTION, Running


def test_the_status_of_an_empty_store_is_balanced(running: Running) -> None:
    reply = running.get("status")
    assert (reply.status, reply.media, reply.headers["Cache-Control"]) == (200, "application/json", "no-store")
    assert reply.body.pop("hub_fault").startswith("the hub did not answer: telemetry, ")
    letters = reply.body.pop("letters")
    assert (letters["open"], letters["dead_lettered"], bool(letters["counted_at"])) == (0, 0, True)
    assert reply.body.pop("at")
    assert reply.body.pop("version") == VERSION
    assert reply.body == {
        "event_hub": "telemetry",
        "consumer_group": "cg",
        "incarnation": None,
        "hub_created_at": None,
        "hub_read_at": None,
        "ledger_balanced": True,
        "numbers": 0,
        "accounted": 0,
        "written": 0,
        "filtered": 0,
        "dead_lettered": 0,
        "held": 0,
        "absent": 0,
        "lag": None,
        "open_gaps": 0,
        "stops": 0,
        "standing": [],
        "oldest_open_letter": None,
        "hub_forgets": {"letters_expiring_hours": -1.0, "loss_hours": -1.0, "events_lost": 0},
        "unknown_fields": [],
        "room_pages": [{"name": "homes", "title": "Homes", "file": "homes.js"}],
        "partitions": [],
    }


def test_the_status_shows_the_books_of_each_partition_although_the_hub_does_not_answer(running: Running) -> None:
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    running.ingest([0], [HOME], partition_id="10")
    for number in (0, 1):
        running.ingest([number], [HOME], partition_id="2")
    running.sqlite.sql("UPDATE event_hub_checkpoint SET sequence_number = ? WHERE partition_id = '2'", 2**62)
    body = running.get("status").body
    assert (body["accounted"], body["written"], body["dead_lettered"], body["ledger_balanced"]) == (6, 5, 1, False)
    first, second, third = body["partitions"]
    assert first == {
        "partition_id": "1",
        "hub_end": None,
        "checkpoint": "2",
        "first": "0",
        "enqueued_at": "2026-11-21T02:15:00.295942Z",
        "lag": None,
        "lag_seconds": None,
        "balanced": True,
        "commits": 1,
        "open_gaps": 0,
        "numbers": 3,
        "accounted": 3,
        "written": 2,
        "filtered": 0,
        "dead_lettered": 1,
        "held": 0,
        "absent": 0,
        "stops": [],
    }
    assert (second["partition_id"], second["balanced"], second["checkpoint"]) == ("2", False, str(2**62))
    assert (third["partition_id"], third["checkpoint"]) == ("10", "0")


def test_the_status_sums_the_events_of_each_unknown_field_the_largest_first(running: Running) -> None:
    for place, counts in (("1", '{"gift": 2, "": 1}'), ("2", '{"coupon": 11998}'), ("10", '{"coupon": 2}')):
        running.ingest([0], [HOME], partition_id=place)
        running.sqlite.sql("UPDATE event_hub_checkpoint SET unknown_fields = ? WHERE partition_id = ?", counts, place)
    assert running.get("status").body["unknown_fields"] == [
        {"name": "coupon", "events": 12_000},
        {"name": "gift", "events": 2},
        {"name": "", "events": 1},
    ]


def test_the_status_shows_the_stream_of_the_settings_only(running: Running) -> None:
    running.ingest([0], [HOME])
    running.restart(EVENTHUB_CONSUMER_GROUP="other")
    body = running.get("status").body
    assert (body["consumer_group"], body["accounted"], body["partitions"]) == ("other", 0, [])


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
    first = [
        {"partition_id": "1", "reason": reason, "detail": detail, "stopped_at": at, "attempts": attempts}
        for reason, detail, attempts in (("incarnation", "why incarnation", 2), ("outage", None, 1))
    ]
    seventh = [{"partition_id": "7", "reason": "held", "detail": "why held", "stopped_at": at, "attempts": 1}]
    assert shown == [("1", first), ("7", seventh)]
    health = running.get("health_ledger")
    assert (health.status, health.body["healthy"], health.body["stops"]) == (503, False, [*first, *seventh])


def test_the_status_shows_when_the_hub_of_the_stream_was_created(running: Running) -> None:
    own = app()
    own.core.ingestion.store.adopt_hub(own.core.ingestion.store.read_incarnation(own.settings.stream), EPOCH)
    assert running.get("status").body["hub_created_at"] == "2026-01-01T00:00:00Z"


def test_the_status_shows_when_the_ends_of_the_hub_were_read(running: Running) -> None:
    running.ingest([0, 1], [HOME, MOTION])
    seconds = chain((100.0, 100.0), repeat(101.5))
    ends = Remembered[Mapping[PartitionId, int]](lambda: {PartitionId("1"): 0}, HUB_ENDS, lambda: next(seconds))
    app.value = replace(app(), hub_ends=ends)
    ends.get()
    body = running.get("status").body
    waited = datetime.fromisoformat(body["at"]) - datetime.fromisoformat(body["hub_read_at"])
    assert waited == timedelta(seconds=1.5)
    assert (body["partitions"][0]["hub_end"], body["partitions"][0]["checkpoint"]) == ("0", "1")

"""handlers/operations/status.py: the books, also while the hub does not answer."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain, repeat

from core.model.events import Partition, PartitionId
from core.model.release import VERSION
from examples.home_security.transform import HomeAlert
from handlers.app import HUB_ENDS, app
from handlers.remembered import Remembered
from tests.fakes.builders import EPOCH, NOON, commit, settled
from tests.handlers.running import HOME, MOTION, Running


def test_the_status_says_that_the_hub_did_not_answer(running: Running) -> None:
    reply = running.get("status")
    assert (reply.status, reply.headers["Cache-Control"], reply.body["version"]) == (200, "no-store", VERSION)
    assert reply.body["hub_fault"].startswith("the hub did not answer: telemetry, ")
    assert (reply.body["ledger_balanced"], reply.body["lag"], reply.body["partitions"]) == (True, None, [])


def test_the_status_shows_the_books_of_each_partition_although_the_hub_does_not_answer(running: Running) -> None:
    running.ingest([0, 1, 2], [HOME, MOTION, b"{"])
    running.ingest([0], [HOME], partition_id="10")
    for number in (0, 1):
        running.ingest([number], [HOME], partition_id="2")
    running.sqlite.sql("UPDATE event_hub_checkpoint SET sequence_number = ? WHERE partition_id = '2'", 2**62)
    body = running.get("status").body
    assert (body["accounted"], body["written"], body["dead_lettered"], body["ledger_balanced"]) == (6, 5, 1, False)
    first, second, third = body["partitions"]
    place = {name: first[name] for name in ("hub_end", "lag", "first", "checkpoint", "enqueued_at")}
    assert list(place.values()) == [None, None, "0", "2", "2026-11-21T02:15:00.295942Z"]
    assert (first["balanced"], first["commits"], first["numbers"], first["written"]) == (True, 1, 3, 2)
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


def test_a_whole_number_that_javascript_would_round_is_a_text(running: Running) -> None:
    own, largest = app(), 2**53 - 1  # that JavaScript keeps
    state = own.core.ingestion.store.read_partition(own.settings.stream.partition(PartitionId("1")))
    alerts = [HomeAlert("h", "s", "motion", ppm, EPOCH) for ppm in (largest, largest + 1, -largest - 1)]
    own.core.ingestion.store.commit_batch(commit(state, 0, 0, settled({0: alerts})))
    rows = running.get("reveal_number", {"partition_id": "1", "sequence_number": "0"}).body["rows"]
    assert [row["columns"]["ppm"] for row in rows] == [largest, str(largest + 1), str(-largest - 1)]

"""The host loses batches, as the real one does when a worker dies: the app fetches them from the hub, and proves it.

Changes under traffic: a hub that is recreated, and the move from the trigger to workers.
"""

import json
import signal
import subprocess
import sys
from collections import defaultdict
from typing import Any
from urllib.error import HTTPError

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from core.model.events import Stream
from examples.home_security.transform import SensorReading
from local.event_hubs import Emulator, HubSettings
from local.programs import APP
from local.stack.app_totals import count_gaps, read_books
from tests.acceptance.started import BATCH, DEADLINE, GROUP, HUB, OFTEN, READERS, SELDOM, STREAM, App
from tests.infra.test_alerts import FACTS
from tests.patience import allowed


@pytest.mark.proof("gap")
def test_batches_lost_at_the_very_beginning_and_in_the_middle_are_fetched_back(app: App) -> None:
    app.start(**SELDOM)
    for lost in (True, False, False, True, False):
        if lost:
            app.publish_skipped()
            continue
        app.publish(BATCH)
        app.until_all_accounted()
    # each line of a batch follows its commit
    app.until(lambda: sum(line["written"] for line in app.lines("ingest")) == sum(app.published.values()))
    app.until(lambda: len(app.lines("gap")) == 4)
    app.end()
    app.assert_each_number_once()
    gaps = {(line["partition"][-1], line["first"], line["last"], line["healed"]) for line in app.lines("gap")}
    assert gaps == {(id, *found) for id in "01" for found in ((0, 99, 100), (300, 399, 100))}
    assert sum(line["healed"] for line in app.lines("ingest")) == 2 * 200
    assert {gap.status for gap in app.engine.gaps()} == {"healed"}


def test_batches_that_no_event_follows_are_fetched_back_but_not_from_a_recreated_hub(app: App) -> None:
    app.start(**OFTEN)
    for publish in (app.publish_skipped, lambda: app.publish(BATCH), app.publish_skipped):
        publish()
        app.until_all_accounted()
    app.until(lambda: sum(line["healed"] for line in app.lines("gap")) == 2 * 2 * BATCH)
    app.end()
    app.assert_each_number_once()
    before = app.engine.ledger()
    app.recreate_hub()
    app.publish(BATCH)
    app.start_host(**OFTEN)  # the hub refuses its link: the checkpoint is after the hub's end
    app.until(lambda: any("StreamIncarnationChanged" in line.get("error", "") for line in app.lines("gap")))
    app.end()
    assert app.engine.ledger() == before


def test_a_gap_waits_while_the_reader_is_refused_and_what_retention_cuts_out_of_a_last_gap_is_absent(app: App) -> None:
    app.start(HUB_READER_CONSUMER_GROUP="nobody", **OFTEN)
    app.publish(BATCH)
    app.until_all_accounted()
    app.publish_skipped()
    app.publish(BATCH)
    app.until(lambda: "HUB_READER_CONSUMER_GROUP" in (app.folder / "host.log").read_text())
    assert set(app.accounted().values()) == {BATCH}
    app.start(**SELDOM)
    app.until_all_accounted()
    app.assert_each_number_once()
    app.publish_skipped()
    app.end_host()
    app.emulator.expire_before(HUB, "0", 4 * BATCH)
    app.start(**OFTEN)
    app.until_all_accounted()
    app.publish(BATCH)
    app.until_all_accounted()
    app.assert_each_number_once({"0": set(range(3 * BATCH, 4 * BATCH))})


def test_exactly_the_numbers_that_retention_cut_out_of_a_gap_are_absent_and_a_replay_changes_nothing_of_them(
    app: App,
) -> None:
    gone = {"0": 170, "1": 220}  # numbers that left the hub at the beginning of each partition
    absent = {id: set(range(120, first)) for id, first in gone.items()}
    app.start(**SELDOM)
    app.publish(120)
    app.until_all_accounted()
    app.publish_skipped()
    for id, first in gone.items():
        app.emulator.expire_before(HUB, id, first)
    app.publish(30)
    app.until_all_accounted()
    app.until(lambda: read_books(app.address).in_hub == 500)  # the app remembers the ends of the hub for some seconds
    books = read_books(app.address)
    assert (books.in_hub, books.accounted, books.written, books.balanced) == (500, 500, 350, True)
    assert count_gaps(app.engine.path) == {"healed": 50, "absent": 150}
    app.assert_each_number_once(absent)
    found = {(line["partition"][-1], line["healed"], line["absent"]) for line in app.lines("gap")}
    assert found == {("0", 50, 50), ("1", 0, 100)}

    def rows_of_gone() -> list[object]:
        return [kept for kept in app.engine.rows(SensorReading) if kept.sequence_number < gone[kept.partition_id]]

    before = (app.engine.ledger(), app.engine.gaps(), app.accounted(), rows_of_gone())
    newest = {kept.partition_id: kept.commit_number for kept in app.engine.ledger()}
    for dry_run, rewritten in ((True, 0), (False, 110)):
        job = app.ended(app.open_task("replay", reason="look", dry_run=dry_run))
        assert (job["status"], job["fault"]) == ("done", None)
        listed = {one["partition_id"]: (one["gone"], one["counts"]["gone"]) for one in job["partitions"]}
        assert listed == {id: ([{"first": "0", "last": str(first - 1)}], first) for id, first in gone.items()}
        assert job["counts"]["events"] == job["counts"]["written"] == 250 - 170 + 250 - 220
        assert (app.engine.ledger(), app.engine.gaps(), app.accounted(), rows_of_gone()) == before
        app.assert_each_number_once(absent)
        again = [one for one in app.engine.rows(SensorReading) if one.commit_number > newest[one.partition_id]]
        assert len(again) == rewritten, "only a real replay writes the events of the hub again"


def test_every_tick_is_one_line_with_the_facts_of_the_alerts(app: App) -> None:
    def newest() -> dict:
        lines = app.lines("watch")
        return {name: lines[-1][name] for name in FACTS} if lines else {}

    app.start(WATCH_SCHEDULE="* * * * * *", HUB_RETENTION_HOURS="24")
    app.publish(100)
    app.until_all_accounted()
    calm = dict.fromkeys(FACTS, 0) | {
        "standing": "",
        "stale": "",
        "ledger_balanced": True,
        "event_hub": f"localhost/{HUB}",
    }
    calm |= {"consumer_group": GROUP, "letters_expiring_hours": 24.0, "loss_hours": 24.0}
    app.until(lambda: newest() == calm)
    app.publish_skipped()
    app.emulator.expire_before(HUB, "0", 150)
    app.publish(BATCH)
    app.until_all_accounted()
    app.until(lambda: newest()["absent_new"] == 50)
    app.send("0", [b"poison"])
    app.until(lambda: newest()["letters_open"] == 1 and newest()["oldest_letter_seconds"] > 1)
    app.until(lambda: 23 < newest()["letters_expiring_hours"] < 24)
    assert (newest()["ledger_balanced"], newest()["loss_hours"]) == (True, 24.0)


BEFORE = 300
LONG_AGO = "2026-01-01T00:00:00.000000Z"


def publish_to(connection: str, hub: str, bodies: list[bytes]) -> None:
    with EventHubProducerClient.from_connection_string(connection, eventhub_name=hub) as producer:
        producer.send_batch([EventData(body) for body in bodies], partition_id="0")


def stops(app: App) -> set[tuple[str, str]]:
    """Return partition and reason of every stop."""
    return set(app.engine.sql("SELECT partition_id, reason FROM partition_stop"))


def command(app: App, **body: Any) -> Any:
    """Run the command of the next incarnation over the app's hub and store, without its API."""
    words = [sys.executable, "-m", "handlers.commands", "next-incarnation", json.dumps(body)]
    own = app.settings(PATH="/usr/bin:/bin", HOME=str(app.folder), USER="ada")
    return json.loads(subprocess.check_output(words, cwd=APP, env=own, timeout=allowed(60)))


def assert_nothing_mixed(app: App, *counts: int) -> None:
    """Check that each stream has exactly the rows of its own numbers, the oldest stream first."""
    found = defaultdict(list)
    for row in app.engine.rows(SensorReading):
        home = row.row.home_id  # type: ignore[attr-defined]
        found[row.stream_id, row.partition_id, home].append(row.sequence_number)
    streams = sorted({stream for stream, _, _ in found})
    homes = ["old", *["new"] * (len(counts) - 1)]
    assert {place: sorted(numbers) for place, numbers in found.items()} == {
        (stream, id, home): list(range(count))
        for stream, home, count in zip(streams, homes, counts, strict=True)
        for id in app.published
    }


@pytest.mark.parametrize(
    ("renewed", "is_up"), [(500, False), (100, True)], ids=["more events-the host down", "fewer events-the host up"]
)
def test_a_recreated_hub_stops_its_partitions_until_the_next_incarnation_is_opened(
    app: App, renewed: int, is_up: bool
) -> None:
    app.start(**OFTEN)
    app.publish(BEFORE, b"reading old")
    app.until_all_accounted()
    if not is_up:
        app.end_host()
    app.recreate_hub()
    app.publish(renewed, b"reading new")
    if not is_up:
        app.start_host(**OFTEN)
    app.until(lambda: stops(app) == {("0", "incarnation"), ("1", "incarnation")})
    with pytest.raises(HTTPError, match="503"):
        app.request("api/health/ledger")
    assert_nothing_mixed(app, BEFORE)
    said = command(app, expected_incarnation=1, reason="recreated")
    assert (said["outcome"], said["incarnation"], said["numbers"]) == ("dry_run", 2, 2 * renewed)
    order = {"reason": "the hub was recreated", "expected_incarnation": 1, "dry_run": False}
    done = app.request("api/streams/next-incarnation", {**order, "expected_hub_created_at": said["hub_created_at"]})
    assert done["outcome"] == "opened"
    app.until_all_accounted()
    app.until(lambda: [one["stops"] for one in app.request("api/status")["partitions"]] == [[], []])
    app.publish(BATCH, b"reading new")
    app.until_all_accounted()
    assert_nothing_mixed(app, BEFORE, renewed + BATCH)
    assert app.request("api/status")["ledger_balanced"] is True


@pytest.mark.proof("incarnation")
def test_a_worker_stops_every_partition_of_a_recreated_hub_and_reads_each_incarnation_from_its_beginning(
    place: App,
) -> None:
    counts = [60]
    place.start_worker()
    place.publish(60, b"reading old")
    place.until_all_accounted()
    for at, renewed in enumerate((120, 30), 1):  # numbers that fit, and fewer
        place.recreate_hub()
        place.publish(renewed, b"reading new")
        if renewed > counts[-1]:
            place.until(lambda: stops(place) == {(id, "incarnation") for id in place.published})
        assert_nothing_mixed(place, *counts)
        created_at = command(place, expected_incarnation=at, reason="recreated")["hub_created_at"]
        order = {"expected_incarnation": at, "expected_hub_created_at": created_at, "dry_run": False}
        assert command(place, **order, reason="recreated")["outcome"] == "opened"
        place.until_all_accounted()
        counts.append(renewed)
        assert_nothing_mixed(place, *counts)


def test_an_iot_hub_that_fails_over_is_a_new_stream_beside_the_books_of_the_old_one(place: App) -> None:
    """Its endpoint has a new host and a new name then. The new connection string alone is refused."""
    place.start_worker()
    place.publish(20, b"reading old")
    place.until_all_accounted()
    place.workers[0].kill()
    former = place.store.read_ledgers(STREAM)
    new = Stream("127.0.0.1/built-in-2", GROUP)
    emulator = Emulator([HubSettings("built-in-2", 1, (GROUP, READERS))])
    with emulator.running():
        endpoint = emulator.connection_string.replace("localhost", "127.0.0.1")
        failed_over = {"EVENTHUB": f"{endpoint};EntityPath=built-in-2"}
        assert place.start_worker(**failed_over).wait(allowed(DEADLINE)) == 1
        place.start_worker(**failed_over, EVENTHUB_NAME="built-in-2")
        publish_to(endpoint, "built-in-2", [b"reading new"] * 7)
        place.until(lambda: [(one.checkpoint, one.written) for one in place.store.read_ledgers(new)] == [(6, 7)])
        place.workers[-1].kill()
    assert place.store.read_ledgers(STREAM) == former
    assert [place.store.read_incarnation(one).number for one in (STREAM, new)] == [1, 1]
    assert place.engine.sql("SELECT COUNT(*) FROM partition_stop") == [(0,)]


def test_a_letter_without_its_body_waits_while_the_hub_is_a_different_one(place: App) -> None:
    def letter() -> tuple[str, int, str | None]:
        found = place.engine.sql("SELECT status, attempts, due_at FROM event_hub_dead_letter")
        return found[0] if found else ("", 0, None)

    place.start_worker(KEEP_BODIES="false", DEAD_LETTER_LOOK_SECONDS="0.2")
    place.producer.send_batch([EventData(b"look nobody")])
    place.until(lambda: letter()[0] == "waiting")
    place.emulator.recreate(HUB)
    place.engine.sql("UPDATE event_hub_dead_letter SET due_at = ?", LONG_AGO)
    place.until(lambda: letter()[0] == "waiting" and letter()[2] != LONG_AGO)  # it was claimed, and given back
    assert letter()[1] == 1


def test_the_app_moves_to_a_worker_and_back_while_events_arrive(app: App) -> None:
    app.start(**SELDOM)
    app.publish(300)
    app.until(lambda: sum(app.accounted().values()) > 0)
    app.start_host(**{"AzureWebJobs.ingest.Disabled": "true"}, **SELDOM)
    app.until(lambda: app.emulator.reader_count(HUB) == 0)
    app.publish(100)
    worker = app.start_worker()
    for _ in range(2):
        app.until_all_accounted()
        app.publish(100)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(allowed(DEADLINE)) == 0
    app.publish(100)
    app.start_host(**SELDOM)
    app.until_all_accounted()
    app.assert_each_number_once()

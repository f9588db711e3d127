"""The host loses batches, as the real one does when a worker dies: the app fetches them from the hub, and proves it."""

import pytest

from examples.home_security.transform import SensorReading
from local.stack.app_totals import count_gaps, read_books
from tests.acceptance.started import BATCH, GROUP, HUB, OFTEN, SELDOM, App
from tests.infra.test_alerts import FACTS


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

"""The host loses batches, as the real one does when a worker dies: the app notices, fetches them back and proves it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.books import count_gaps, read_books
from tests.acceptance.gaps.apps import HUB, App, new_hub
from tests.fakes.engines import SqliteEngine

pytestmark = pytest.mark.slow

SELDOM = {"GAP_CHECK_SCHEDULE": "0 0 0 1 1 *"}  # the timer does not come within the test
OFTEN = {"GAP_CHECK_SCHEDULE": "* * * * * *", "GAP_GRACE_SECONDS": "1"}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    emulator = new_hub()
    with emulator.running():
        started = App(emulator, tmp_path, SqliteEngine(tmp_path / "store.db"))
        yield started
        started.end()


def test_batches_lost_at_the_very_beginning_and_in_the_middle_are_fetched_back(app: App) -> None:
    app.start(**SELDOM)
    app.publish_skipped()
    app.publish(30)
    app.until_all_accounted()
    app.publish(120)
    app.until_all_accounted()
    app.publish_skipped()
    app.publish(30)
    app.until_all_accounted()
    app.end()
    app.assert_each_number_once()
    gaps = {(line["partition"][-1], line["first"], line["last"], line["healed"]) for line in app.lines("gap")}
    assert gaps == {(id, *found) for id in "01" for found in ((0, 99, 100), (250, 349, 100))}
    ingested = app.lines("ingest")
    assert sum(line["healed"] for line in ingested) == 2 * 200
    assert sum(line["written"] for line in ingested) == sum(app.published.values())
    assert {gap.status for gap in app.engine.gaps()} == {"healed"}


def test_batches_lost_at_the_end_are_fetched_back_although_no_event_follows(app: App) -> None:
    app.start(**OFTEN)
    app.publish(120)
    app.until_all_accounted()
    app.publish_skipped()
    app.until_all_accounted()
    app.end()
    app.assert_each_number_once()
    assert sum(line["healed"] for line in app.lines("gap")) == 2 * 100


def test_a_partition_that_lost_all_it_ever_had_is_fetched_back_in_silence(app: App) -> None:
    app.start(**OFTEN)
    app.publish_skipped()
    app.until_all_accounted()
    app.end()
    app.assert_each_number_once()


def test_exactly_what_retention_cut_out_of_a_gap_is_absent(app: App) -> None:
    app.start(**SELDOM)
    app.publish(120)
    app.until_all_accounted()
    app.publish_skipped()
    app.emulator.expire_before(HUB, "0", 170)
    app.emulator.expire_before(HUB, "1", 220)
    app.publish(30)
    app.until_all_accounted()
    books = read_books(app.address)
    assert (books.in_hub, books.accounted, books.written, books.balanced) == (500, 500, 350, True)
    assert count_gaps(app.engine.path) == {"healed": 50, "absent": 50 + 100}
    app.end()
    app.assert_each_number_once({"0": set(range(120, 170)), "1": set(range(120, 220))})
    assert {(line["partition"][-1], line["healed"], line["absent"]) for line in app.lines("gap")} == {
        ("0", 50, 50),
        ("1", 0, 100),
    }


def test_what_retention_cut_at_the_end_of_a_silent_partition_is_absent(app: App) -> None:
    app.start(**SELDOM)
    app.publish(120)
    app.until_all_accounted()
    app.publish_skipped()
    app.end()
    app.emulator.expire_before(HUB, "0", 220)
    app.start(**OFTEN)
    app.until_all_accounted()
    app.publish(30)
    app.until_all_accounted()
    app.end()
    app.assert_each_number_once({"0": set(range(120, 220))})


def test_a_gap_waits_while_the_reader_is_refused_and_says_which_setting_is_wrong(app: App) -> None:
    app.start(HUB_READER_CONSUMER_GROUP="nobody", **OFTEN)
    app.publish(120)
    app.until_all_accounted()
    app.publish_skipped()
    app.publish(30)
    app.until(lambda: "HUB_READER_CONSUMER_GROUP" in (app.folder / "host.log").read_text())
    assert set(app.accounted().values()) == {120}
    app.end()
    app.start(**SELDOM)
    app.until_all_accounted()
    app.end()
    app.assert_each_number_once()


def test_a_host_that_is_killed_while_it_heals_leaves_nothing_out_and_nothing_twice(app: App) -> None:
    app.start(**SELDOM)
    app.publish_skipped()
    for _ in range(8):
        app.skip(1)
        app.publish(2_500)
    app.until(lambda: sum(app.accounted().values()) > 1_000)
    assert app.host is not None
    app.host.kill()
    app.host.communicate()
    app.host = None
    app.start(**OFTEN)
    app.publish(30)
    app.until_all_accounted()
    app.end()
    app.assert_each_number_once()


def test_a_hub_that_was_recreated_stops_the_partition(app: App) -> None:
    app.start(**OFTEN)
    app.publish(120)
    app.until_all_accounted()
    before = app.engine.ledger()
    app.end()
    other = new_hub()
    with other.running():
        app.emulator, app.published = other, dict.fromkeys(app.published, 0)
        app.publish(30)
        app.start_host(**OFTEN)  # which is not let in: its checkpoint lies behind the end
        app.until(lambda: any("StreamIncarnationChanged" in line["error"] for line in app.lines("gap")))
        app.end()
    assert app.engine.ledger() == before

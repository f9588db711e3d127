"""The host loses batches, as the real one does when a worker dies: the app fetches them from the hub, and proves it."""

import pytest

from tests.acceptance.gaps.apps import BATCH, HUB, OFTEN, SELDOM, App, new_hub


def written(app: App) -> int:
    """Return the number of written events by the lines of the batches, each of which follows its commit."""
    return sum(line["written"] for line in app.lines("ingest"))


@pytest.mark.proof("gap")
def test_batches_lost_at_the_very_beginning_and_in_the_middle_are_fetched_back(app: App) -> None:
    app.start(**SELDOM)
    app.publish_skipped()
    app.publish(BATCH)
    app.until_all_accounted()
    app.publish(BATCH)
    app.until_all_accounted()
    app.publish_skipped()
    app.publish(BATCH)
    app.until_all_accounted()
    app.until(lambda: written(app) == sum(app.published.values()) and len(app.lines("gap")) == 4)
    app.end()
    app.assert_each_number_once()
    gaps = {(line["partition"][-1], line["first"], line["last"], line["healed"]) for line in app.lines("gap")}
    assert gaps == {(id, *found) for id in "01" for found in ((0, 99, 100), (300, 399, 100))}
    assert sum(line["healed"] for line in app.lines("ingest")) == 2 * 200
    assert {gap.status for gap in app.engine.gaps()} == {"healed"}


def test_batches_that_no_event_follows_are_fetched_back_but_not_from_a_recreated_hub(app: App) -> None:
    app.start(**OFTEN)
    app.publish_skipped()  # the first batch ever
    app.until_all_accounted()
    app.publish(BATCH)
    app.until_all_accounted()
    app.publish_skipped()
    app.until_all_accounted()
    app.until(lambda: sum(line["healed"] for line in app.lines("gap")) == 2 * 2 * BATCH)
    app.end()
    app.assert_each_number_once()
    before = app.engine.ledger()
    other = new_hub()
    with other.running():
        app.emulator, app.published = other, dict.fromkeys(app.published, 0)
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
    app.end()
    app.start(**SELDOM)
    app.until_all_accounted()
    app.assert_each_number_once()
    app.publish_skipped()
    app.end()
    app.emulator.expire_before(HUB, "0", 4 * BATCH)
    app.start(**OFTEN)
    app.until_all_accounted()
    app.publish(BATCH)
    app.until_all_accounted()
    app.assert_each_number_once({"0": set(range(3 * BATCH, 4 * BATCH))})

from datetime import UTC, datetime, timedelta

import pytest

from core.ingest.stalled_partitions import TriggerPosition
from core.model.events import PartitionId, span
from local.event_hubs.sections import APPLICATION_PROPERTIES, DATA
from local.feed.dangers import section
from tests.acceptance.game_days.day import MENDED, Day
from tests.acceptance.started import HUB, STREAM, publish_raw

pytestmark = pytest.mark.soak


def look(day: Day, reason: str) -> str:
    """Look at the stops as the page says, and return what the terminal shows."""
    day.until_it_fires("stop-recorded")
    (shown,) = day.follow("stop-recorded")
    assert shown.code == 1, shown
    assert f"by {reason}" in shown.output, shown
    return shown.output


def test_a_recreated_hub_is_read_again_after_the_next_incarnation_is_opened(day: Day) -> None:
    day.start()
    day.app.publish(30)
    day.until_quiet()
    day.app.recreate_hub()
    day.app.publish(20)
    look(day, "incarnation")
    assert day.health() == 503
    dry, _, opened = day.follow("incarnation")
    assert (dry.code, opened.code) == (0, 0), (dry, opened)
    assert "dry run: nothing was changed" in dry.output
    day.until_healthy()
    assert day.follow("First")[0].code == 0


def test_a_deployment_that_fails_on_every_event_is_held_by_the_fuse_and_loses_none(day: Day) -> None:
    day.start(FUSE_PATIENCE="1000")
    day.publish("0", *[b"bug"] * 40)
    day.publish("1", *[b"reading home"] * 40)
    assert "KeyError" in look(day, "outage") or "'bug'" in day.operator.seen
    day.follow("outage", "azd")
    day.until_healthy()
    assert day.follow("First")[0].code == 0
    assert day.app.engine.letters() == []


def test_a_database_that_refuses_a_partition_is_mended_and_the_stop_ends_by_itself(day: Day) -> None:
    day.app.engine.sql(
        "CREATE TRIGGER quota BEFORE INSERT ON batch_ledger WHEN NEW.partition_id = '0'"
        " BEGIN SELECT RAISE(ABORT, 'the quota of the table is used up'); END"
    )
    day.start(STORE_PATIENCE_SECONDS="0")
    day.app.publish(20)
    assert "the quota of the table is used up" in look(day, "store")
    assert day.follow("store", "health")[0].code == 1
    day.app.engine.sql("DROP TRIGGER quota")  # the database's administrator ends what blocks it
    day.until_healthy()
    assert [ran.code for ran in (*day.follow("store"), *day.follow("First"))] == [0, 0]


def test_a_partition_that_holds_too_many_letters_goes_on_when_their_first_is_settled(day: Day) -> None:
    day.start(ORDER_POLICY="hold_key", HELD_LIMIT="5")
    day.publish_keyed("home-1", b"poison", *[b"reading home"] * 20)
    look(day, "held")
    day.follow("held", "list", PARTITION=r"partition (\d+) stopped")
    listed = {"PARTITION": r"(\d+) +0 +exhausted", "NUMBER": r"\d+ +(0) +exhausted"}
    day.follow("held", "show", **listed)
    assert "poison" in day.operator.seen
    day.start(TRANSFORM=MENDED)
    assert day.follow("held", "letters retry", **listed)[0].code == 0
    day.until_healthy()
    assert day.follow("First")[0].code == 0


def test_a_trigger_that_stands_for_long_is_carried_by_the_own_reader_and_a_restart_ends_its_stop(day: Day) -> None:
    day.start()
    day.app.publish(20)
    day.until_quiet()
    day.app.end_host()
    # An earlier process recorded the stop: it needs two minutes, and this trigger stood for ten.
    since, state = (
        datetime.now(UTC) - timedelta(minutes=10),
        day.app.store.read_partition(STREAM.partition(PartitionId("0"))),
    )
    sentence = TriggerPosition(19, since, since).sentence(state)
    day.app.store.note_stop(state, "trigger", sentence, since, span(20, state.next_number - 1))
    day.start()
    map_property = section(APPLICATION_PROPERTIES, {"map": {}}) + section(DATA, b"reading home")
    publish_raw(day.app.producer, [map_property])
    day.app.published["0"] += 1
    day.until_quiet()
    lifted = "by the app's own reader; its checkpoint was lifted"
    day.until(lambda: lifted in str(day.app.request("api/revealed/stops")), "the trigger is lifted")
    detail = " ".join(look(day, "trigger").split())  # the terminal wraps it
    assert "the trigger of partition 0 stands at 19 since " in detail
    assert "one property is a map" in detail
    assert day.health() == 503
    assert "restart" in day.follow("trigger", "az")[0].command
    day.until(lambda: day.app.emulator.reader_count(HUB) >= 2, "the trigger reads again")

    def has_ended() -> bool:
        """Publish events until the trigger is faster than the own reader, whose check comes each second."""
        stops = [stop for one in day.app.request("api/status")["partitions"] for stop in one["stops"]]
        if stops and day.app.accounted() == day.app.published:
            day.publish("0", b"reading home")
        return not stops

    day.until(has_ended, "the trigger commits")
    day.until_healthy()
    assert day.follow("First")[0].code == 0

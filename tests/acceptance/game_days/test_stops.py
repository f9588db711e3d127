"""Game days of the alarm stop-recorded: each reason is played, and the runbook ends it."""

import pytest

from tests.acceptance.game_days.day import MENDED, Day

pytestmark = pytest.mark.slow


def stops(day: Day) -> set[tuple[str, str]]:
    """Return partition and reason of every stop that the status shows."""
    partitions = day.app.request("api/status")["partitions"]
    return {(one["partition_id"], stop["reason"]) for one in partitions for stop in one["stops"]}


def test_a_recreated_hub_is_read_again_after_the_next_incarnation_is_opened(day: Day) -> None:
    day.start()
    day.app.publish(30)
    day.until_quiet()
    day.app.recreate_hub()
    day.app.publish(20)
    day.until_it_fires("stop-recorded")
    day.until(lambda: stops(day) == {("0", "incarnation"), ("1", "incarnation")})
    assert day.health() == 503


def test_a_deployment_that_fails_on_every_event_is_held_by_the_fuse_and_loses_none(day: Day) -> None:
    day.start(FUSE_PATIENCE="1000")
    day.publish("0", *[b"bug"] * 40)
    day.publish("1", *[b"reading home"] * 40)
    day.until_it_fires("stop-recorded")
    assert stops(day) == {("0", "outage")}
    day.start(TRANSFORM=MENDED)
    day.until_healthy()


def test_a_database_that_refuses_a_partition_is_mended_and_the_stop_ends_by_itself(day: Day) -> None:
    day.app.engine.sql(
        "CREATE TRIGGER quota BEFORE INSERT ON batch_ledger WHEN NEW.partition_id = '0'"
        " BEGIN SELECT RAISE(ABORT, 'the quota of the table is used up'); END"
    )
    day.start(STORE_PATIENCE_SECONDS="0")
    day.app.publish(20)
    day.until_it_fires("stop-recorded")
    assert stops(day) == {("0", "store")}
    day.app.engine.sql("DROP TRIGGER quota")
    day.until_healthy()


def test_a_partition_that_holds_too_many_letters_goes_on_when_their_first_is_settled(day: Day) -> None:
    day.start(ORDER_POLICY="hold_key", HELD_LIMIT="5")
    day.publish("0", b"poison", *[b"reading home"] * 20, key="home-1")
    day.until_it_fires("stop-recorded")
    assert {reason for _, reason in stops(day)} == {"held"}

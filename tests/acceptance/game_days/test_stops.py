"""Game days of the alarm stop-recorded: each reason is played, and the runbook ends it."""

import pytest

from tests.acceptance.game_days.day import Day

pytestmark = pytest.mark.slow


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
    dry, _, opened, _ = day.follow("incarnation")
    assert (dry.code, opened.code) == (0, 0), (dry, opened)
    assert "dry run: nothing was changed" in dry.output
    day.until_healthy()
    assert day.follow("incarnation", "status")[0].code == 0


def test_a_deployment_that_fails_on_every_event_is_held_by_the_fuse_and_loses_none(day: Day) -> None:
    day.start(FUSE_PATIENCE="1000")
    day.publish("0", *[b"bug"] * 40)
    day.publish("1", *[b"reading home"] * 40)
    assert "KeyError" in look(day, "outage") or "'bug'" in day.operator.seen
    day.follow("outage", "azd")
    day.until_healthy()
    assert day.follow("outage", "status")[0].code == 0
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
    assert [ran.code for ran in day.follow("store")] == [0, 0]


@pytest.mark.parametrize("move", ["retry", "discard"])
def test_a_partition_that_holds_too_many_letters_goes_on_when_their_first_is_settled(day: Day, move: str) -> None:
    day.start(ORDER_POLICY="hold_key", HELD_LIMIT="5")
    day.publish("0", b"poison", *[b"reading home"] * 20, key="home-1")
    look(day, "held")
    day.follow("held", "list", PARTITION=r"partition (\d+) stopped")
    listed = {"PARTITION": r"(\d+) +0 +exhausted", "NUMBER": r"\d+ +(0) +exhausted"}
    day.follow("held", "show", **listed)
    assert "poison" in day.operator.seen
    (partition,) = {one.partition_id for one in day.app.engine.letters()}
    day.end_the_cause(move)
    assert day.follow("held", f"letters {move}", **listed)[0].code == 0
    day.lost = {partition: {0} if move == "discard" else set()}
    day.until_healthy()
    assert day.follow("held", "status")[0].code == 0

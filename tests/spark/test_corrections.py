"""Rows that come to old positions: letters that are resolved, and replays that take rows away."""

from datetime import timedelta

from core.aggregation import HOME_ACTIVITY
from core.transforms.home_security import SensorReading
from tests.spark.readings import NOON, gas, switch
from tests.spark.world import Fate, World

# The form in which a replay leaves what it took away; the table itself comes with replays.
RETRACTED = """
CREATE TABLE retracted_row (
    stream_id INTEGER, partition_id TEXT, commit_number INTEGER, table_name TEXT, "row" TEXT
)
"""


def retract(world: World, number: int, reading: SensorReading) -> None:
    at = reading.observed_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    row = f'{{"home_id":"{reading.home_id}","kind":"{reading.kind}","observed_at":"{at}"}}'
    world.sqlite.sql("INSERT INTO retracted_row VALUES (1, '0', ?, 'sensor_reading', ?)", number, row)


def test_a_letter_that_is_resolved_after_its_window_was_aggregated_is_added_to_it(world: World) -> None:
    first = world.commit([gas(ppm=5), switch()], letters=2)
    world.settle()
    world.commit([switch()])
    world.correct("retry", {first + 2: gas(ppm=3), first + 3: gas(at=NOON - timedelta(days=9))}, (first + 2, first + 3))
    world.settle()
    assert [one.readings for one in world.activity()] == [1, 2, 2]
    world.prove()


def test_letters_resolved_within_the_run_of_their_batch_are_counted_once(world: World) -> None:
    world.commit([switch()], letters=1)
    world.correct("retry", {1: gas()}, (1, 1))
    world.commit([switch()], letters=1)
    world.correct("retry", {3: gas()}, (0, 3))
    world.settle()
    assert world.store.read_runs(HOME_ACTIVITY, 10, 1)[0].readings == 4
    world.prove()


def test_a_letter_resolved_while_a_run_is_open_is_left_to_the_next_one(world: World) -> None:
    world.commit([switch()], letters=1)
    world.engine.fates = [Fate.KILLED_BEFORE]
    world.tick()
    world.correct("retry", {1: gas()}, (1, 1))
    world.settle()
    second, first = world.store.read_runs(HOME_ACTIVITY, 10, 2)
    assert (first.readings, second.readings) == (1, 1)
    world.prove()


def test_a_retry_over_a_wide_range_reads_only_where_letters_are(world: World) -> None:
    first = world.commit([switch(), gas()], letters=1)
    world.commit([switch(), gas()], letters=1)
    world.settle()
    world.correct("retry", {first + 2: gas(ppm=1), first + 5: gas(ppm=2)}, (first, first + 5))
    world.settle()
    assert world.store.read_runs(HOME_ACTIVITY, 10, 1)[0].readings == 2
    world.prove()


def test_a_replay_that_changes_rows_recomputes_the_windows_that_won_and_lost_them(world: World) -> None:
    world.sqlite.sql(RETRACTED)
    kept, moved, gone = gas(ppm=900), gas(ppm=100), gas("home-9")
    first = world.commit([kept, moved, gone, switch()])
    world.settle()
    later = gas(at=NOON + timedelta(hours=2), ppm=4)
    number = world.correct("replay", {first + 1: later}, (first, first + 2))
    world.sqlite.sql("DELETE FROM sensor_reading WHERE home_id = 'home-9'")
    for row in (moved, gone):
        retract(world, number, row)
    world.commit([gas(ppm=950), switch()])
    world.engine.fates = [Fate.KILLED_DURING, Fate.WELL]
    world.settle()
    assert world.recounted()[0].most_ppm_hundredths == 95_000
    assert [one.home_id for one in world.activity()] == ["home-1"] * 3
    world.prove()


def test_a_replay_of_readings_that_no_run_has_seen_yet_counts_them_once(world: World) -> None:
    world.sqlite.sql(RETRACTED)
    before = gas(ppm=5)
    first = world.commit([before, switch()])
    number = world.correct("replay", {first: gas(ppm=6)}, (first, first))
    retract(world, number, before)
    world.settle()
    world.prove()


def test_a_replay_that_comes_while_a_run_is_open_is_put_right_by_the_next_run(world: World) -> None:
    world.sqlite.sql(RETRACTED)
    before = gas(ppm=5)
    first = world.commit([before, gas(ppm=8)])
    world.engine.fates = [Fate.KILLED_BEFORE]
    world.tick()
    number = world.correct("replay", {first: gas(ppm=6)}, (first, first))
    retract(world, number, before)
    world.settle()
    world.prove()

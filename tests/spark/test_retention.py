"""A level with a retention: its old windows are left out of a run, so that none ever holds a part of its readings."""

from datetime import datetime, timedelta

from core.aggregation.tick import remove_old_windows
from tests.fakes.kept_activity import KEEP, KEPT_ACTIVITY, OF, KeptActivity, create_tables
from tests.spark.readings import NOON, switch
from tests.spark.world import FAR, World

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
OLDEST = NOON - timedelta(hours=12) - KEEP


def run_at(world: World, now: datetime) -> int | None:
    """Commit a run that is planned at a time. Return the number of readings that it read."""
    world.run_once(KEPT_ACTIVITY, now)
    return world.store.read_runs(KEPT_ACTIVITY, 10**9, 1)[0].readings


def stored(world: World, level: type[KeptActivity] = KeptActivity) -> list[tuple[datetime, int]]:
    return [(one.window_start, one.readings) for one in world.store.read_windows(level, "home-1", NOON - 99 * DAY, FAR)]


def test_a_late_reading_is_added_to_the_levels_that_keep_its_window_and_opens_none_of_the_others(world: World) -> None:
    create_tables(world.sqlite)
    day = OF.rollups[0].of
    world.commit([switch(at=OLDEST - MINUTE), switch(at=OLDEST), switch(at=NOON), switch(at=NOON)])
    assert run_at(world, NOON) == 4
    assert stored(world) == [(OLDEST, 1), (NOON, 2)]
    assert stored(world, day) == [(OLDEST - DAY, 1), (OLDEST, 1), (OLDEST + KEEP, 2)]
    tomorrow = NOON + DAY
    assert remove_old_windows(world.store, KEPT_ACTIVITY, lambda: tomorrow) == {"kept_activity": 1}
    world.commit([switch(at=OLDEST + MINUTE), switch(at=NOON)])
    assert run_at(world, tomorrow) == 2
    assert stored(world) == [(NOON, 3)]
    assert stored(world, day) == [(OLDEST - DAY, 1), (OLDEST, 2), (OLDEST + KEEP, 3)]

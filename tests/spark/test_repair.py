"""A repair mends the windows of its days and no other, and a backfill begins an aggregate, whatever dies on the way."""

from dataclasses import replace

import pytest

from core.aggregation.runs import ALL_DAYS, Days
from core.aggregation.tick import aggregate
from core.errors import StoreUnavailable
from core.model.aggregates import aggregate_table
from examples.home_security.aggregates.home_activity import HomeActivity
from jobs.rebuild_aggregate import rebuild
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.spark.readings import NOON, gas, switch
from tests.spark.repairing import DAY, HOMES, DyingStore, days_of, fill, of_days, order, spoil
from tests.spark.world import Fate, World

OF = aggregate_table(HomeActivity)
OF_NOON = days_of(NOON, NOON)


def touched(world: World) -> dict[int, int]:
    """Return the number of the windows that each run touched last."""
    return dict(world.sqlite.sql("SELECT run_number, COUNT(*) FROM home_activity GROUP BY run_number"))


def test_a_repair_mends_the_windows_of_its_days_and_increments_go_on_before_and_after(world: World) -> None:
    fill(world)
    world.settle()
    spoil(world)
    world.commit([gas("home-1"), switch("home-5", at=NOON + DAY)])
    world.settle()
    assert rebuild(world.tables, OF).differing == 4
    order(world, "repair", OF_NOON)
    world.commit([gas(home, ppm=50) for home in HOMES])
    world.settle()
    repair = world.store.read_runs(HOME_ACTIVITY, 4, 1)[0]
    assert (repair.kind, repair.status, repair.windows, repair.cut_from == repair.cut_to) == (
        "repair",
        "committed",
        2 * len(HOMES) + 1,
        True,
    )
    assert world.store.read_standing(HOME_ACTIVITY).number == 4
    assert touched(world) == {1: 32, 2: 1, 3: 8, 4: 8}
    world.prove()


def test_a_repair_outlives_its_job_its_tick_and_the_commits_beside_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world)
    world.settle()
    spoil(world)
    monkeypatch.setattr("core.aggregation.tick.PORTION", 1)
    order(world, "repair")
    world.engine.fates = [Fate.KILLED_BEFORE, Fate.KILLED_DURING, Fate.TWICE]
    for _ in range(3):
        world.commit([gas(home, ppm=70) for home in HOMES])
        world.tick()
    for portions in (2, 3):
        with pytest.raises(StoreUnavailable):
            aggregate(replace(world.own, store=DyingStore(world.store, portions)), HOME_ACTIVITY)
        world.commit([gas("home-1", ppm=80)])
        assert world.store.read_standing(HOME_ACTIVITY).open_run is not None
    world.settle()
    kinds = [(run.kind, run.status) for run in world.store.read_runs(HOME_ACTIVITY, 10, 10)]
    assert kinds == [("increment", "committed"), ("repair", "committed"), ("increment", "committed")]
    world.prove()


def test_a_repair_that_gives_up_halfway_leaves_right_windows_and_increments_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world)
    world.settle()
    spoil(world)
    monkeypatch.setattr("core.aggregation.tick.PORTION", 1)
    order(world, "repair")
    world.tick()
    with pytest.raises(StoreUnavailable):
        aggregate(replace(world.own, store=DyingStore(world.store, 2)), HOME_ACTIVITY)
    run = world.store.read_standing(HOME_ACTIVITY).open_run
    assert run is not None
    assert run.committed_slices > 0
    assert world.store.fail_run(run, "given up", world.clock.now())
    world.clock.advance(3_600)
    world.commit([gas("home-1", ppm=80)])
    world.settle()
    order(world, "repair")
    world.settle()
    world.prove()


@pytest.mark.parametrize("days", [ALL_DAYS, Days(since=NOON.date())])
def test_a_backfill_equals_a_recount_of_its_days_and_increments_after_it_are_exact(world: World, days: Days) -> None:
    fill(world)
    order(world, "backfill", days)
    world.engine.fates = [Fate.KILLED_DURING, Fate.WELL]
    world.tick()
    world.commit([gas("home-1", ppm=5), switch("home-6")], of="5")
    world.settle()
    second, first = world.store.read_runs(HOME_ACTIVITY, 10, 2)
    assert (first.kind, first.cut_from, second.kind, second.cut_from) == ("backfill", "{}", "increment", first.cut_to)
    since, until = days.since or NOON.date() - 9 * DAY, days.until or NOON.date() + 9 * DAY
    assert world.activity() == of_days(world.recounted(), since, until)
    assert second.readings == 2
    found = rebuild(world.tables, OF, days)
    assert (found.differing, found.moved) == (0, 0)
    order(world, "repair")
    world.settle()
    world.prove()


def test_a_backfill_of_an_aggregate_with_leftover_windows_removes_them(world: World) -> None:
    fill(world)
    world.settle()
    world.sqlite.sql("UPDATE aggregation_cut SET cut = '{}'")
    spoil(world)
    order(world, "backfill")
    world.settle()
    world.prove()

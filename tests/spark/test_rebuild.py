"""A rebuild names every window that was changed, deleted or added by hand, while runs go on beside it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from core.aggregation.runs import Days
from core.aggregation.tick import aggregate
from core.errors import StoreUnavailable
from core.model.aggregates import aggregate_table
from examples.home_security.aggregates.home_activity import HomeActivity
from jobs.rebuild_aggregate import LOOKS, main, rebuild
from tests.fakes.aggregation_engines import HOME_ACTIVITY, slice_of
from tests.fakes.replaying import order as replay_order
from tests.spark.readings import NOON, gas, switch
from tests.spark.repairing import DAY, HOMES, DyingStore, LiveTables, fill, spoil
from tests.spark.stream import Stream, gas_event, registered
from tests.spark.world import World

OF = aggregate_table(HomeActivity)


def found(comparison: Any) -> set[tuple[str, str, str]]:
    """Return home, kind and kind of difference of the windows that differ."""
    told = set()
    for look in comparison.looks:
        for one in look.shown:
            side = "lost" if one["stored"] is None else "added" if one["right"] is None else "changed"
            told.add((one["home_id"], one["kind"], side))
    return told


SPOILED = {
    ("home-1", "carbon_monoxide", "changed"),
    ("home-1", "motion", "changed"),
    ("home-2", "motion", "lost"),
    ("home-9", "motion", "added"),
}


def test_each_spoiled_window_is_named_although_runs_are_committed_during_the_comparison(world: World) -> None:
    fill(world)
    world.settle()
    spoil(world)
    times = iter(range(1, LOOKS))

    def commit_a_run() -> None:
        """A run touches half of the homes during the first look, and a new home during the second."""
        turn = next(times)
        if turn < 3:
            world.commit([switch(home, at=NOON + DAY) for home in (HOMES[::2] if turn == 1 else ["home-new"])])
            world.commit([gas(home) for home in HOMES[4:]] if turn == 1 else [gas("home-7")])
            world.settle()

    live = rebuild(LiveTables(world.tables, commit_a_run), OF)
    assert (found(live), live.differing, live.moved, live.exit_code) == (SPOILED, 4, 0, 1)
    assert (len(live.looks), live.days) == (3, ["2026-02-10", "2026-02-10"])
    assert live.compared == len(world.recounted())  # without the window of home-new, and with that of home-9


def test_slices_of_an_open_run_are_compared_at_its_cut_and_its_others_at_the_one_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(world)
    world.settle()
    world.commit([gas(home, ppm=9) for home in HOMES])
    world.tick()
    monkeypatch.setattr("core.aggregation.tick.PORTION", 1)
    with pytest.raises(StoreUnavailable):
        aggregate(replace(world.own, store=DyingStore(world.store, 3)), HOME_ACTIVITY)
    still = rebuild(world.tables, OF)
    assert (still.differing, still.moved, len(still.looks), still.exit_code) == (0, 0, 1, 0)
    assert [one.number for one in still.looks[0].targets] == [2, 1]
    world.sqlite.sql("UPDATE home_activity SET active = active + 1 WHERE kind = 'motion'")
    assert rebuild(world.tables, OF).differing == 3 * len(HOMES)


def test_a_window_that_a_later_run_removed_is_not_lost_and_one_that_always_moves_is_counted(world: World) -> None:
    stream = Stream(world)
    stream.take(registered("home-1"), registered("home-2"), gas_event("home-1", 5), gas_event("home-2", 6))
    world.settle()
    stream.deploy(lambda reading: [], "mended/1")

    def replay_once() -> None:
        if world.store.read_standing("home_activity").number == 1:
            stream.replay(replay_order(["0"], 2, 2))
            world.settle()

    live = rebuild(LiveTables(world.tables, replay_once), OF)
    assert [one.home_id for one in world.activity()] == ["home-2"]
    assert (live.differing, live.moved, live.compared) == (0, 0, 1)

    def commit_always() -> None:
        world.commit([gas("home-2")])
        world.settle()

    busy = rebuild(LiveTables(world.tables, commit_always), OF)
    assert (busy.compared, busy.differing, busy.moved, len(busy.looks), busy.exit_code) == (0, 0, 1, LOOKS, 3)


def test_a_window_whose_number_no_run_has_is_compared_like_any_other(world: World) -> None:
    fill(world, days=1)
    world.settle()
    world.sqlite.sql("UPDATE home_activity SET run_number = 99, readings = 3 WHERE home_id = 'home-1'")
    assert rebuild(world.tables, OF).differing == 2


def test_the_job_prints_figures_by_slice_and_its_code_says_whether_windows_differ(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["home_activity", "--store", f"sqlite:{world.sqlite.path}"]
    assert main(store) == 0
    assert json.loads(capsys.readouterr().out)["home_activity"]["compared"] == 0
    fill(world)
    world.settle()
    assert main(store) == 0
    told = json.loads(capsys.readouterr().out)["home_activity"]
    assert (told["compared"], told["differing"], told["moved"], told["days"]) == (48, 0, 0, [])
    assert told["runs"] == [{"number": 1, "slices": [0, 255]}]
    assert sum(compared for compared, _, _ in told["slices"].values()) == 48
    spoil(world)
    assert main([*store, "--until", "2026-02-09"]) == 0
    capsys.readouterr()
    assert main([*store, "--since", "2026-02-10"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["home_activity"]["slices"][str(slice_of("home-1"))] == [2, 2, 0]
    assert err.count("difference: ") == 4
    assert rebuild(world.tables, OF, Days(until=(NOON - DAY).date())).differing == 0

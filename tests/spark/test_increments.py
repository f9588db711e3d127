"""Increments equal a rebuild to the bit, whatever happens to the jobs on the way."""

from datetime import timedelta
from typing import Any

import pytest

from core.model.aggregates import SLICES, aggregate_table
from examples.home_security.aggregates.home_activity import HomeActivity
from jobs import transforms
from tests.fakes.aggregation_engines import HOME_ACTIVITY, slice_of
from tests.spark.readings import NOON, gas, switch
from tests.spark.world import Fate, World


@pytest.mark.proof("aggregation")
def test_a_first_run_adds_up_what_is_there(world: World) -> None:
    world.commit([gas(ppm=5), gas(at=NOON + timedelta(minutes=14, seconds=59), ppm=7), switch(), switch(state="idle")])
    world.settle()
    gas_window, motion = world.activity()
    assert (gas_window.readings, gas_window.active, gas_window.ppm_hundredths) == (2, 0, 1200)
    assert (gas_window.least_ppm_hundredths, gas_window.most_ppm_hundredths) == (500, 700)
    assert (gas_window.first_observed_at, gas_window.last_observed_at) == (
        NOON,
        NOON + timedelta(minutes=14, seconds=59),
    )
    assert (motion.kind, motion.readings, motion.active, motion.ppm_hundredths) == ("motion", 2, 1, None)
    world.prove_by_rebuild()


def test_a_slice_follows_from_the_first_column_of_the_key_alone_and_never_changes(spark: Any) -> None:
    of, slices = aggregate_table(HomeActivity), {"home-1": 200, "home-2": 114, "é": 62}
    assert (SLICES, slice_of(7)) == (256, 130)
    assert {key: slice_of(key) for key in slices} == slices
    rows = spark.createDataFrame([(key, kind) for key in slices for kind in "ab"], "home_id string, kind string")
    assert {tuple(row) for row in rows.select("home_id", transforms.slice_of(of)).collect()} == set(slices.items())
    number = spark.createDataFrame([(7,)], "home_id bigint")
    assert [tuple(row) for row in number.select(transforms.slice_of(of)).collect()] == [(130,)]


def test_no_fate_of_a_job_changes_the_sums(world: World) -> None:
    world.commit([gas(ppm=5), switch()])
    world.settle()
    killed = [Fate.REFUSED_AT_THE_DOOR, Fate.KILLED_BEFORE, Fate.KILLED_DURING]
    fates = [killed, [Fate.VANISHED, Fate.KILLED_AFTER], [Fate.LOST], [Fate.UNANSWERED], [Fate.TWICE]]
    assert {fate for some in fates for fate in some} == set(Fate) - {Fate.WELL}
    for number, fate in enumerate(fates, start=2):
        world.commit([gas(ppm=9), gas("home-2"), switch(at=NOON - timedelta(days=1))])
        world.engine.fates = list(fate)
        world.settle()
        assert world.engine.fates == []
        run = world.store.read_runs(HOME_ACTIVITY, 10, 1)[0]
        assert (run.number, run.status, run.readings, run.windows) == (number, "committed", 3, 3), fate
        assert world.sqlite.sql("SELECT COUNT(*) FROM home_activity_staged") == [(0,)], fate
        world.prove()


def test_late_events_a_new_partition_and_commits_without_a_reading_are_added_where_they_belong(world: World) -> None:
    week = timedelta(days=7)
    world.commit([switch(), switch(at=NOON - week)])
    world.settle()
    world.commit([switch(at=NOON - week + timedelta(seconds=1)), switch(at=NOON)])
    world.commit([switch("home-2")], of="12")
    world.settle()
    windows = [(one.home_id, one.window_start, one.readings) for one in world.activity()]
    assert windows == [("home-1", NOON - week, 2), ("home-1", NOON, 2), ("home-2", NOON, 1)]
    world.commit([], letters=3)
    world.settle()
    assert world.store.read_standing(HOME_ACTIVITY).cut == '{"1/0":2,"1/12":1}', "they start no run"
    world.commit([switch("home-3")])
    world.settle()
    run = world.store.read_runs(HOME_ACTIVITY, 10, 1)[0]
    assert (run.status, run.readings, run.windows, run.cut_to) == ("committed", 1, 1, '{"1/0":4,"1/12":1}')
    assert world.store.read_standing(HOME_ACTIVITY).cut == run.cut_to
    world.prove()


@pytest.mark.slow
def test_a_home_with_a_million_readings_in_one_window_is_one_row(world: World) -> None:
    world.commit([gas(ppm=1)])
    copies = (
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)"
        " INSERT INTO sensor_reading SELECT 1, '0', n.i, 0, 2, 'home-1', 's', 'carbon_monoxide', NULL, n.i,"
        " '2026-02-10T12:07:00.000001Z' FROM n"
    )
    world.sqlite.sql(copies)
    world.sqlite.sql("UPDATE event_hub_checkpoint SET sequence_number = 1000000, commit_number = 2")
    world.sqlite.sql(
        "INSERT INTO batch_ledger"
        " VALUES (1, '0', 2, 'batch', 1, 1000000, 1000000, 0, 0, 0, 0, 1000000, 1000000, 't', 'i',"
        " '2026-01-01T00:00:00Z', 0, 0, 0, 0, 0, 0)"
    )
    world.settle()
    (window,) = world.activity()
    assert (window.readings, window.ppm_hundredths) == (1_000_001, 100 * (1 + 1_000_000 * 1_000_001 // 2))
    assert (window.least_ppm_hundredths, window.most_ppm_hundredths) == (100, 100_000_000)

"""A backfill, a repair and a rebuild read the rows in the lake, not those of the operational database."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from core.aggregation.lake_publication import hand_over_tables
from core.model.aggregates import aggregate_table
from core.remote.spark.delta import DeltaLake
from examples.home_security.aggregates.home_activity import HomeActivity
from jobs.history import History, open_history
from jobs.lake_files import open_lake
from jobs.rebuild_aggregate import rebuild
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.spark.readings import NOON, gas
from tests.spark.repairing import days_of, fill, order, spoil
from tests.spark.world import World

WITH_LAKE = True

OF = aggregate_table(HomeActivity)
ROWS_JOB = "rows.sensor_reading"


@pytest.fixture
def world(world: World) -> World:
    world.own = replace(world.own, jobs=(HOME_ACTIVITY, ROWS_JOB))
    return world


def lake_history(world: World, lake: DeltaLake, spark: Any) -> History:
    """Return the history in the lake, as the app hands it over to a rebuild."""
    _, location, _, state = hand_over_tables(world.store, lake, (ROWS_JOB,), "reader")
    return open_history(world.tables, "lake", open_lake(spark, location, state))


def test_a_backfill_and_a_repair_are_exact_although_sql_has_lost_the_rows(
    world: World, lake: DeltaLake, folder: Path, spark: Any
) -> None:
    fill(world, days=1)
    order(world, "backfill")
    assert world.tick().did == ("the backfill waits until the lake has rows",)
    world.settle(job=ROWS_JOB)
    world.commit([gas("home-1", ppm=70)])
    right = world.recounted()
    world.settle()
    world.settle(job=ROWS_JOB)
    first = world.store.read_runs(HOME_ACTIVITY, 2, 1)[0]
    assert (first.kind, first.rows_from, first.cut_to) == ("backfill", "lake", '{"1/0":1}')
    assert world.activity() == right
    spoil(world)
    world.sqlite.sql("DELETE FROM sensor_reading")
    assert rebuild(world.tables, OF, history=lake_history(world, lake, spark)).differing == 4
    order(world, "repair", days_of(NOON, NOON))
    world.settle()
    repair = world.store.read_runs(HOME_ACTIVITY, 4, 1)[0]
    assert (repair.kind, repair.rows_from, repair.status) == ("repair", "lake", "committed")
    assert world.activity() == right
    found = pl.read_delta(str(folder / "gold" / "home_activity"))
    windows = sorted(found.select("home_id", "kind", "readings").rows())
    assert windows == sorted((one.home_id, one.kind, one.readings) for one in right)


def test_a_rebuild_compares_at_the_newest_run_that_the_lake_covers(world: World, lake: DeltaLake, spark: Any) -> None:
    fill(world, days=1)
    world.settle()
    world.settle(job=ROWS_JOB)
    world.commit([gas("home-1", ppm=70)])
    world.settle()
    world.sqlite.sql("UPDATE home_activity SET readings = 9 WHERE home_id IN ('home-1', 'home-2') AND kind <> 'motion'")
    found = rebuild(world.tables, OF, history=lake_history(world, lake, spark))
    assert (found.differing, found.moved, found.exit_code) == (1, 1, 1)
    assert [[one.number for one in look.targets] for look in found.looks] == [[1]]

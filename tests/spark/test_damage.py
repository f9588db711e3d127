"""A damaged lake: no run of SQL stops, a table of an aggregate heals, and a command makes any table anew."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from core.aggregation.lake_upkeep import remake_table
from core.aggregation.orders import Pipelines
from core.errors import AggregationConflict
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.spark.readings import NOON, gas
from tests.spark.stream import Stream, as_they_are, fewer, gas_event, registered
from tests.spark.test_lake import GOLD, in_lake, in_sql
from tests.spark.world import World

WITH_LAKE = True
JOB, ROWS = "rows.sensor_reading", "silver/sensor_reading"


def garbled(path: Path) -> None:
    path.write_bytes(b"garbage" * 9)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def log_of(place: Path) -> Path:
    return sorted((place / "_delta_log").glob("*.json"))[-1]


def remake(world: World, table: str, accepts_loss: bool = False) -> str:
    """Order a table anew, as the command does."""
    orders = Pipelines(world.store.database)
    return remake_table(world.own, orders, table, accepts_loss, ("somebody", world.clock.now()))


def rows_in_lake(folder: Path) -> list[tuple[object, ...]]:
    return sorted(pl.read_delta(str(folder / ROWS)).select("observed_at", "sequence_number", "ppm").rows())


def rows_in_sql(world: World) -> list[tuple[object, ...]]:
    found = world.sqlite.sql("SELECT observed_at, sequence_number, ppm FROM sensor_reading")
    return sorted((datetime.fromisoformat(at), *row) for at, *row in found)


@pytest.fixture
def world(world: World) -> World:
    world.own = replace(world.own, jobs=(HOME_ACTIVITY, JOB))
    return world


def file_of(place: Path) -> Path:
    return Path(DeltaTable(str(place)).file_uris()[0])


def test_files_of_an_aggregate_that_are_garbled_or_gone_are_written_anew_by_the_next_run_that_needs_them(
    world: World, folder: Path
) -> None:
    harms: tuple[Callable[[Path], None], ...] = (garbled, Path.unlink, lambda path: shutil.rmtree(path.parents[1]))
    for number, harm in enumerate(harms):
        world.commit([gas(ppm=number + 1), gas("home-2", at=NOON)])
        world.settle()
        harm(file_of(folder / GOLD))
        world.commit([gas(ppm=5), gas("home-2")])
        world.settle()
        assert world.store.read_runs(HOME_ACTIVITY, 99, 1)[0].attempt == 1
        assert in_lake(folder) == in_sql(world) != []
    world.prove()
    assert Pipelines(world.store.database).read_stale() == {}
    with pytest.raises(AggregationConflict, match="is no table of the lake: the table is one of gold/home_activity"):
        remake(world, "gold/else")


def test_a_damaged_log_keeps_no_other_level_back_and_the_command_makes_its_table_anew(
    world: World, folder: Path
) -> None:
    world.commit([gas()])
    world.settle()
    hour = f"{GOLD}_hour"
    before = pl.read_delta(str(folder / hour))
    garbled(log_of(folder / hour))
    world.commit([gas(ppm=9, at=NOON - timedelta(days=1))])
    world.settle()
    assert in_lake(folder) == in_sql(world)
    stale = Pipelines(world.store.database).read_stale
    assert list(stale()) == [hour]
    assert remake(world, hour) == f"{hour}: the next run of home_activity makes it anew"
    world.settle()
    assert stale() == {}
    assert len(pl.read_delta(str(folder / hour))) == 2 == len(before) + 1
    world.prove()


def test_rows_are_made_anew_from_sql_and_from_readable_files_and_none_is_lost_unasked(
    world: World, folder: Path
) -> None:
    stream = Stream(world)
    stale = Pipelines(world.store.database).read_stale
    stream.deploy(as_they_are, "test/1")
    days = [NOON - timedelta(days=number) for number in range(3)]
    for day in days:
        stream.take(registered("home-1"), gas_event("home-1", 60, day), gas_event("home-1", 5, day))
        world.settle(job=JOB)
    stream.deploy(fewer, "test/2")
    stream.replay()
    world.settle(job=JOB)
    right = rows_in_lake(folder)
    assert right == rows_in_sql(world)
    place = folder / ROWS
    for harm, entry in ((garbled, 1), (emptied, 0)):  # SQL has all rows: the log is not needed
        harm(sorted((place / "_delta_log").glob("*.json"))[entry])
        world.tick(job=JOB)
        assert list(stale()) == [ROWS]
        remake(world, ROWS)
        world.settle(job=JOB)
        assert (rows_in_lake(folder), stale()) == (right, {})
    shutil.rmtree(place)  # SQL has all rows: the next run needs no order
    stream.take(gas_event("home-1", 70, days[2]))
    world.settle(job=JOB)
    assert (rows_in_lake(folder), stale()) == (right := rows_in_sql(world), {})
    world.sqlite.sql("DELETE FROM sensor_reading WHERE observed_at < ?", f"{days[0]:%Y-%m-%d}")  # by the operator
    lost = next(one for one in DeltaTable(str(place)).file_uris() if f"{days[1]:%Y-%m-%d}" in one)
    garbled(Path(lost))
    remake(world, ROWS)
    world.tick(job=JOB)
    world.tick(job=JOB)
    standing = world.store.read_standing(JOB)
    assert standing.pause is not None and standing.pause.who == "the app"
    named = f"{ROWS}: neither SQL nor a readable file has all rows of {days[1]:%Y-%m-%d} (1)"
    assert standing.pause.reason == named
    remake(world, ROWS, accepts_loss=True)
    world.settle(job=JOB)
    assert rows_in_lake(folder) == [row for row in right if row[0] != days[1]]  # the third day is from its file
    assert stale() == {}
    shutil.rmtree(place)  # now neither SQL nor a file has the third day
    remake(world, ROWS)
    world.tick(job=JOB)
    world.tick(job=JOB)
    pause = world.store.read_standing(JOB).pause
    assert pause is not None
    assert pause.reason.startswith(f"{ROWS}: neither SQL nor a readable file has all rows of commits of ")
    remake(world, ROWS, accepts_loss=True)
    world.settle(job=JOB)
    assert rows_in_lake(folder) == rows_in_sql(world) != []

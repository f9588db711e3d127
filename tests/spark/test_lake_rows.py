"""Silver: the rows in the lake."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from core.aggregation.lake_publication import hand_over
from core.transforms.loading import find_aggregate
from jobs.lake_files import open_lake
from jobs.lake_rows import rows_as_of
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.spark.readings import NOON
from tests.spark.stream import Stream, as_they_are, fewer, gas_event, motion_event, moved, registered
from tests.spark.world import World

WITH_LAKE = True

OF = find_aggregate(HOME_ACTIVITY)
JOB = "rows.sensor_reading"


COLUMNS = "stream_id, partition_id, sequence_number, ordinal, commit_number, home_id, sensor_id, kind, state, ppm"


def in_lake(folder: Path) -> list[tuple[Any, ...]]:
    found = pl.read_delta(str(folder / "silver" / "sensor_reading"))
    return sorted(found.select(COLUMNS.split(", ")).rows())


def in_sql(world: World) -> list[tuple[Any, ...]]:
    return sorted(world.sqlite.sql(f"SELECT {COLUMNS} FROM sensor_reading"))


def as_of(world: World, spark: Any, cut: str, days: Any = None) -> list[tuple[Any, ...]]:
    """Return the rows at a cut, as a job reads them."""
    lake = world.own.lake
    assert lake is not None
    place = hand_over(world.store, lake, world.store.read_runs(JOB, 10**9, 1)[0])[3]
    found = rows_as_of(OF, open_lake(spark, lake.location, place), cut, days)
    return sorted(tuple(row) for row in found.select("sequence_number", "commit_number", "kind", "ppm").collect())


def history(stream: Stream) -> Iterator[None]:
    """Take events and replay them with different transforms, in steps."""
    stream.deploy(as_they_are, "test/1")
    stream.take(registered("home-1"), *(gas_event("home-1", ppm) for ppm in (5, 60, 7)))
    yield
    stream.deploy(fewer, "test/2")
    stream.replay()
    yield
    stream.take(registered("home-2"), motion_event("home-2"), of="1")
    stream.deploy(moved, "test/3")
    yield
    stream.replay()
    yield


def test_the_rows_are_those_of_sql_after_each_run_and_every_earlier_cut_stays_readable(
    world: World, folder: Path, spark: Any
) -> None:
    stream = Stream(world)
    known = []
    for _ in history(stream):
        world.settle(job=JOB)
        assert in_lake(folder) == in_sql(world) != []
        rows = world.sqlite.sql("SELECT sequence_number, commit_number, kind, ppm FROM sensor_reading")
        known.append((world.store.read_standing(JOB).cut, sorted(rows)))
    assert len({tuple(rows) for _, rows in known}) > 2
    for cut, rows in known:
        assert as_of(world, spark, cut) == rows
    day = NOON.date()
    assert as_of(world, spark, known[-1][0], (day, day)) == known[-1][1]
    assert as_of(world, spark, known[-1][0], (day + timedelta(days=1), day + timedelta(days=9))) == []
    with pytest.raises(ValueError, match="before"):
        as_of(world, spark, '{"1/0":99}')


def test_a_history_that_was_replayed_before_its_first_run_is_walked_in_steps(
    world: World, folder: Path, spark: Any
) -> None:
    stream = Stream(world)
    known = []
    for _ in history(stream):
        rows = world.sqlite.sql("SELECT sequence_number, commit_number, kind, ppm FROM sensor_reading")
        known.append((world.store.read_standing(JOB).reached, sorted(rows)))
    world.own = replace(world.own, limits=replace(world.own.limits, rows=1))
    world.tick(job=JOB)
    world.tick(job=JOB)
    first = next(run for run in world.store.read_runs(JOB, 100, 100) if run.status == "committed")
    assert first.cut_to == known[0][0]
    assert [(row[2], row[4], row[7], row[9]) for row in in_lake(folder)] == known[0][1]  # replays came later
    world.settle(job=JOB)
    assert len(world.store.read_runs(JOB, 100, 100)) > 2
    assert in_lake(folder) == in_sql(world) != []
    assert as_of(world, spark, known[0][0]) == known[0][1] != known[-1][1]
    assert as_of(world, spark, known[2][0]) == known[2][1]

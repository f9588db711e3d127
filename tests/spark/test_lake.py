"""Gold: the tables of aggregates in the lake, as polars and Spark read them. They are those of SQL at every run."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable

import core.aggregation.tick
from core.aggregation.orders import Pipelines
from core.aggregation.runs import Order
from core.aggregation.tick import next_portion
from core.transforms.loading import find_aggregate
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.fakes.builders import EPOCH
from tests.spark.readings import NOON, gas, switch
from tests.spark.stream import Stream, fewer, gas_event, motion_event, moved, registered
from tests.spark.world import Fate, World

WITH_LAKE = True

OF = find_aggregate(HOME_ACTIVITY)
GOLD = f"gold/{HOME_ACTIVITY}"


def in_lake(folder: Path) -> list[tuple[Any, ...]]:
    """Return the windows as polars reads them."""
    return pl.read_delta(str(folder / GOLD)).select(OF.columns).sort(OF.key).rows()


def in_sql(world: World) -> list[tuple[Any, ...]]:
    rows = (tuple(getattr(one, name) for name in OF.columns) for one in world.activity())
    return sorted(rows, key=lambda row: row[:3])


def files(folder: Path) -> dict[str, str]:
    """Return the day of each file of the table."""
    found = DeltaTable(str(folder / GOLD)).get_add_actions(flatten=True)
    days = map(str, found.column("partition.window_date").to_pylist())
    return dict(zip(found.column("path").to_pylist(), days, strict=True))


@pytest.fixture
def adaptive(spark: Any) -> Iterator[None]:
    """Plan queries adaptively, as Spark does by default: few rows of a day become one file."""
    name = "spark.sql.adaptive.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, "true")
    yield
    spark.conf.set(name, before)


@pytest.mark.usefixtures("adaptive")
def test_the_table_is_the_aggregate_after_each_run_and_files_of_untouched_windows_stay(
    world: World, folder: Path, spark: Any
) -> None:
    world.commit([gas(), gas("home-2"), gas(at=NOON - timedelta(days=1))])
    world.settle()
    before = files(folder)
    assert sorted(before.values()) == ["2026-02-09", "2026-02-10"]
    world.engine.fates = [Fate.KILLED_AFTER, Fate.TWICE]
    world.commit([gas(), switch(at=NOON + timedelta(hours=1))])
    world.settle()
    assert world.engine.fates == []
    assert in_lake(folder) == in_sql(world) != []
    kept = files(folder).keys() & before.keys()
    assert [before[path] for path in kept] == ["2026-02-09"]
    DeltaTable(str(folder / GOLD)).optimize.z_order(["home_id"])  # somebody writes all files again
    world.commit([gas(ppm=1, at=NOON - timedelta(days=1)), switch(at=NOON - timedelta(days=9))])  # late
    world.settle()
    assert in_lake(folder) == in_sql(world)
    assert kept.isdisjoint(files(folder))
    found = spark.read.parquet(*DeltaTable(str(folder / GOLD)).file_uris()).select(*OF.columns)
    assert sorted(tuple(row) for row in found.collect()) == sorted(
        tuple(row) for row in world.tables.standing(OF, None).select(*OF.columns).collect()
    )


def test_windows_that_a_replay_empties_or_moves_leave_the_table(world: World, folder: Path) -> None:
    stream = Stream(world)
    stream.take(registered("home-1"), *(gas_event("home-1", ppm) for ppm in (5, 7)), motion_event("home-1"))
    world.settle()
    before = in_lake(folder)
    stream.deploy(moved, "test/2")
    stream.replay()
    world.settle()
    stream.deploy(fewer, "test/3")
    stream.replay()
    world.settle()
    assert in_lake(folder) == in_sql(world) != before
    world.prove()


def test_a_lake_that_was_away_is_written_whole_and_counts_slices_of_a_refused_attempt_once(
    world: World, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core.aggregation.tick, "PORTION", 1)
    homes = [f"home-{number}" for number in range(6)]
    folder.touch()  # a file where the folder has to be
    world.commit([gas(home) for home in homes])
    world.settle()
    folder.unlink()
    assert not world.tick().published
    world.commit([gas(home) for home in homes])
    world.tick()
    (run,) = world.store.read_runs(HOME_ACTIVITY, 10, 1)
    staged = world.store.read_staged(run.run_id)
    assert staged is not None
    portion = next_portion(world.store.read_slices(staged), 0, 1)
    assert portion is not None
    assert world.store.commit_portion(run, staged, portion)
    assert world.store.discard_staged(staged)
    world.settle()
    assert in_lake(folder) == in_sql(world) != []
    world.prove()


def test_a_sum_beyond_64_bits_leaves_the_table_as_the_last_committed_run_wrote_it(world: World, folder: Path) -> None:
    half = 2**62 // 100
    world.commit([gas(ppm=half), gas("home-2")])
    world.settle()
    before = in_lake(folder)
    first = world.commit([gas(ppm=half), gas(ppm=half), gas("home-2")])
    for _ in range(3):
        world.tick()
    standing = world.store.read_standing(HOME_ACTIVITY)
    assert standing.last_run is not None
    assert (standing.last_run.status, standing.pause is not None) == ("failed", True)
    assert in_lake(folder) == in_sql(world) == before
    world.remove([first], "0")
    Pipelines(world.store.database).resume(Order(HOME_ACTIVITY, "resume", "somebody", "why", EPOCH))
    world.settle()
    assert in_lake(folder) == in_sql(world) != before

"""The lake: immutable files of each run, and a pointer under which a reader only ever finds whole runs."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import core.aggregation.commit
import core.aggregation.lake
from core.aggregation.commit import portions
from core.aggregation.lake import StoredPointer
from core.aggregation.tick import aggregate
from core.remote.spark.lakes import FolderLake
from core.transforms.aggregates import find_aggregate
from jobs.lake import read_aggregate
from tests.fakes.aggregation_engines import HOME_ACTIVITY, committed
from tests.spark.readings import NOON, gas, switch
from tests.spark.world import Fate, World

OF = find_aggregate(HOME_ACTIVITY)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def world(spark: Any, tmp_path: Path, folder: Path) -> Any:
    made = World(spark, tmp_path, FolderLake(folder))
    yield made
    made.store.close()


def pointer(folder: Path) -> StoredPointer:
    found = FolderLake(folder).read_pointer(HOME_ACTIVITY)
    assert found is not None
    return found


def in_lake(spark: Any, folder: Path) -> list[tuple[Any, ...]]:
    return [
        tuple(row) for row in read_aggregate(spark, OF, str(folder), pointer(folder).pointer).orderBy(*OF.key).collect()
    ]


def in_sql(world: World) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in world.tables.windows(OF).orderBy(*OF.key).collect()]


def test_the_pointer_lists_each_committed_run_and_the_sum_of_their_files_is_the_aggregate(
    world: World, folder: Path, spark: Any
) -> None:
    for fates in ([], [Fate.KILLED_AFTER], [Fate.TWICE]):
        world.engine.fates = list(fates)
        world.commit([gas(), switch(), switch(at=NOON + timedelta(hours=len(fates)))])
        world.settle()
    assert [run.number for run in pointer(folder).pointer.runs] == [1, 2, 3]
    assert pointer(folder).pointer.cut == world.store.read_standing(HOME_ACTIVITY).cut
    assert in_lake(spark, folder) == in_sql(world) != []


def test_half_a_run_and_an_uncommitted_one_are_not_seen(world: World, folder: Path, spark: Any) -> None:
    world.commit([gas()])
    world.settle()
    before = in_lake(spark, folder)
    world.commit([gas(), gas("home-2")])
    world.engine.fates = [Fate.KILLED_AFTER]
    world.tick()  # its files are in the lake, and it died
    world.tick()  # the next attempt staged, and nobody has committed it
    assert len(list(folder.rglob("*.parquet"))) > 1
    assert in_lake(spark, folder) == before
    world.settle()
    assert in_lake(spark, folder) == in_sql(world) != before


def test_a_pointer_that_was_not_swapped_in_time_is_swapped_by_the_next_tick(world: World, folder: Path) -> None:
    world.commit([gas()])
    world.tick()
    (staged,) = world.store.read_runs(HOME_ACTIVITY, 10, 1)
    whole = world.store.read_staged(staged.run_id)
    assert whole is not None
    assert committed(world.store, staged, whole, world.clock.now())  # and the function died before the swap
    assert FolderLake(folder).read_pointer(HOME_ACTIVITY) is None
    assert aggregate(world.own, HOME_ACTIVITY).published
    assert [run.number for run in pointer(folder).pointer.runs] == [1]


def test_another_lake_that_lacks_earlier_runs_gets_a_snapshot_of_everything(
    world: World, folder: Path, spark: Any
) -> None:
    world.commit([gas(), switch()])
    world.settle()
    other = folder.with_name("other")
    world.own = replace(world.own, lake=FolderLake(other))
    assert not world.tick().published
    world.commit([gas()])
    world.settle()
    assert [run.number for run in pointer(other).pointer.runs] == [2]
    assert in_lake(spark, other) == in_sql(world) != []


def test_a_pointer_that_lists_too_much_is_folded_into_one_run(
    world: World, folder: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core.aggregation.lake, "LISTED", 2)
    for _ in range(4):
        world.commit([gas(), switch()])
        world.settle()
    assert [run.number for run in pointer(folder).pointer.runs] == [3, 4]
    assert in_lake(spark, folder) == in_sql(world) != []


def test_a_snapshot_of_a_run_that_has_committed_slices_counts_them_once(
    world: World, folder: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core.aggregation.commit, "PORTION", 1)
    homes = [f"home-{number}" for number in range(6)]
    world.commit([gas(home) for home in homes])
    world.settle()
    other = folder.with_name("other")
    world.own = replace(world.own, lake=FolderLake(other))
    world.commit([gas(home) for home in homes])
    world.tick()
    (run,) = world.store.read_runs(HOME_ACTIVITY, 10, 1)
    staged = world.store.read_staged(run.run_id)
    assert staged is not None
    assert world.store.commit_portion(run, staged, portions(world.store.read_slices(staged), 0)[0])
    assert world.store.discard_staged(staged)
    world.settle()
    assert [one.number for one in pointer(other).pointer.runs] == [2]
    assert in_lake(spark, other) == in_sql(world) != []
    world.prove()

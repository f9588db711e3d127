"""A damaged lake: no run of SQL stops, a table of an aggregate heals, and a command makes any table anew."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from core.aggregation.orders import Pipelines
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.spark.readings import NOON, gas
from tests.spark.test_lake import GOLD, in_lake, in_sql
from tests.spark.world import World

WITH_LAKE = True


def garbled(path: Path) -> None:
    path.write_bytes(b"garbage" * 9)


def log_of(place: Path) -> Path:
    return sorted((place / "_delta_log").glob("*.json"))[-1]


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


@pytest.mark.parametrize("harm", [garbled])
def test_a_damaged_log_keeps_no_other_level_back(world: World, folder: Path, harm: Callable[[Path], None]) -> None:
    world.commit([gas()])
    world.settle()
    harm(log_of(folder / f"{GOLD}_hour"))
    world.commit([gas(ppm=9)])
    world.settle()
    assert in_lake(folder) == in_sql(world)
    assert list(Pipelines(world.store.database).read_stale()) == [f"{GOLD}_hour"]
    world.prove()

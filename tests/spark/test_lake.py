"""Gold: the tables of aggregates in the lake, as polars and Spark read them; they are those of SQL at every run."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from core.remote.spark.delta import DeltaLake
from core.remote.spark.lakes import FolderStorage
from core.transforms.aggregates import find_aggregate
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.spark.readings import NOON, gas, switch
from tests.spark.world import Fate, World

OF = find_aggregate(HOME_ACTIVITY)
GOLD = f"gold/{HOME_ACTIVITY}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def world(spark: Any, tmp_path: Path, folder: Path) -> Any:
    made = World(spark, tmp_path, DeltaLake(FolderStorage(folder)))
    yield made
    made.store.close()


def in_lake(folder: Path) -> list[tuple[Any, ...]]:
    """Return the windows as polars reads them."""
    return pl.read_delta(str(folder / GOLD)).select(OF.columns).sort(OF.key).rows()


def in_sql(world: World) -> list[tuple[Any, ...]]:
    rows = (tuple(getattr(one, name) for name in OF.columns) for one in world.activity())
    return sorted(rows, key=lambda row: row[:3])


def test_the_table_is_the_aggregate_after_each_run(world: World, folder: Path) -> None:
    for fates in ([], [Fate.KILLED_AFTER], [Fate.TWICE]):
        world.engine.fates = list(fates)
        world.commit([gas(), switch(), switch(at=NOON + timedelta(hours=len(fates)))])
        world.settle()
        assert in_lake(folder) == in_sql(world) != []

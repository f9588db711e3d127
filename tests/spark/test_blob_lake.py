"""The lake in blobs: Azurite, where it is installed. Executors upload, delta-rs commits, and polars reads."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from azure.storage.blob import BlobServiceClient

from core.aggregation.lake_publication import states_of
from core.aggregation.lake_tables import NO_TABLE, Mark, TableChange
from core.errors import LakeUnreachable
from core.remote.spark.delta import DeltaLake
from core.remote.spark.lake_storage import BlobStorage
from core.transforms.loading import find_aggregate
from jobs.lake import gold_layout
from jobs.lake_files import CONNECTION, read_files
from local.stack import azurite
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.spark.readings import gas, switch
from tests.spark.world import Fate, World

OF, ROWS = find_aggregate(HOME_ACTIVITY), "rows.sensor_reading"
GOLD = f"gold/{HOME_ACTIVITY}"


@pytest.fixture(scope="module")
def blobs() -> Iterator[tuple[str, str]]:
    """Return the address of a container, and the connection string of its account."""
    if azurite.command() is None:
        pytest.skip("Azurite is not installed: `make azurite` does it, with npm")
    with TemporaryDirectory() as folder, azurite.running(Path(folder)) as connection:
        with BlobServiceClient.from_connection_string(connection) as service:
            service.create_container("lake")
        yield f"{service.url.rstrip('/')}/lake/activity", connection


@pytest.fixture
def storage(blobs: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> BlobStorage:
    monkeypatch.setenv(CONNECTION, blobs[1])
    return BlobStorage(*blobs)


def test_runs_are_uploaded_by_the_executors_and_their_tables_are_those_of_sql(
    spark: Any, tmp_path: Path, storage: BlobStorage
) -> None:
    lake = DeltaLake(storage)
    world = World(spark, tmp_path, lake)
    for fates in ([], [Fate.KILLED_AFTER]):
        world.engine.fates = list(fates)
        world.commit([gas(), switch(), switch("home-2")])
        world.settle()
        world.settle(job=ROWS)
    standing = world.tables.standing(OF, None).select(*OF.columns)
    files = states_of(world.store, lake, HOME_ACTIVITY)[GOLD].files
    in_lake = read_files(spark, lake.location, gold_layout(OF), files).select(*OF.columns)
    assert in_lake.orderBy(*OF.key).collect() == standing.orderBy(*OF.key).collect() != []
    found = pl.read_delta(storage.uri(GOLD), storage_options=storage.options())
    expected = [tuple(getattr(one, name) for name in OF.columns) for one in world.activity()]
    assert found.select(OF.columns).sort(OF.key).rows() == sorted(expected, key=lambda row: row[:3])
    rows = pl.read_delta(storage.uri("silver/sensor_reading"), storage_options=storage.options())
    assert sorted(rows["sequence_number"]) == [
        number for (number,) in world.sqlite.sql("SELECT sequence_number FROM sensor_reading ORDER BY sequence_number")
    ]
    world.store.close()


def test_a_commit_for_a_version_that_has_passed_is_refused(storage: BlobStorage) -> None:
    lake, table = DeltaLake(storage), "gold/other"
    nothing = TableChange({"home_id": "string", "window_date": "date"}, ("window_date",), (), (), False)
    assert lake.commit(table, NO_TABLE, nothing, Mark(HOME_ACTIVITY, 1, {}))
    assert not lake.commit(table, NO_TABLE, nothing, Mark(HOME_ACTIVITY, 1, {}))
    standing = lake.read_table(table, HOME_ACTIVITY)
    assert lake.commit(table, standing, nothing, Mark(HOME_ACTIVITY, 2, {}))
    assert not lake.commit(table, standing, nothing, Mark(HOME_ACTIVITY, 3, {}))
    assert lake.maintain(table) == {"compacted": 0, "removed": 0}


def test_a_lake_that_is_not_there_says_so(blobs: tuple[str, str]) -> None:
    lake = DeltaLake(BlobStorage(blobs[0].replace("/lake/", "/none/"), blobs[1]))
    with pytest.raises(LakeUnreachable, match=r"^LAKE: "):
        lake.write_text("gold/x/state.json", "{}")

"""The lake in blobs: Azurite, where it is installed."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient

from core.aggregation.lake import empty_pointer
from core.errors import LakeUnreachable
from core.remote.spark.lakes import BlobLake
from core.transforms.aggregates import find_aggregate
from jobs.lake import CONNECTION, read_aggregate
from tests.acceptance.storage import azurite
from tests.fakes.aggregation_engines import HOME_ACTIVITY
from tests.spark.readings import gas, switch
from tests.spark.world import Fate, World

OF = find_aggregate(HOME_ACTIVITY)

pytestmark = pytest.mark.slow


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
def lake(blobs: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> BlobLake:
    monkeypatch.setenv(CONNECTION, blobs[1])
    return BlobLake(*blobs)


def test_runs_are_uploaded_by_the_executors_and_listed_by_the_pointer(
    spark: Any, tmp_path: Path, lake: BlobLake
) -> None:
    world = World(spark, tmp_path, lake)
    for fates in ([], [Fate.KILLED_AFTER]):
        world.engine.fates = list(fates)
        world.commit([gas(), switch(), switch("home-2")])
        world.settle()
    stored = lake.read_pointer(HOME_ACTIVITY)
    assert stored is not None
    assert [run.number for run in stored.pointer.runs] == [1, 2]
    found = read_aggregate(spark, OF, lake.location, stored.pointer).orderBy(*OF.key).collect()
    assert found == world.tables.windows(OF).orderBy(*OF.key).collect() != []
    world.store.close()


def test_a_pointer_is_only_swapped_for_the_one_that_was_read(blobs: tuple[str, str], lake: BlobLake) -> None:
    job = "swapping"
    assert lake.read_pointer(job) is None
    assert lake.swap_pointer(empty_pointer(job), None)
    assert not lake.swap_pointer(empty_pointer(job), None)
    first = lake.read_pointer(job)
    assert first is not None
    assert lake.swap_pointer(first.pointer, first.etag)
    assert not lake.swap_pointer(first.pointer, first.etag)


def test_a_lake_that_is_not_there_says_so(blobs: tuple[str, str]) -> None:
    lake = BlobLake(blobs[0].replace("/lake/", "/none/"), blobs[1])
    with pytest.raises(LakeUnreachable, match=r"^LAKE: "):
        lake.swap_pointer(empty_pointer("job"), None)

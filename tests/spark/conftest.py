"""One Spark session for all tests of a process. Without Java or pyspark only test_here.py runs, and reports it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.here import environment, lacking

PYSPARK_OWN = (  # it opens sockets that it leaves to the collector, and compares versions the old way
    "ignore:distutils Version classes are deprecated:DeprecationWarning",
    "ignore:unclosed <socket:ResourceWarning",
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning",
)
collect_ignore_glob = [] if lacking() is None else ["test_[!h]*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore the warnings of pyspark itself."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for warning in PYSPARK_OWN:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Run a session on two threads."""
    from pyspark.sql import SparkSession

    before = dict(os.environ)
    os.environ.update(environment())
    session = SparkSession.builder.master("local[2]").appName("tests").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a lake, which does not exist yet."""
    return tmp_path / "lake"


@pytest.fixture
def lake(request: pytest.FixtureRequest, folder: Path) -> Any:
    """Return the lake of the world, which has none unless a module says WITH_LAKE."""
    from core.remote.spark.delta import DeltaLake
    from core.remote.spark.lake_storage import FolderStorage

    return DeltaLake(FolderStorage(folder)) if getattr(request.module, "WITH_LAKE", False) else None


@pytest.fixture
def world(spark: Any, tmp_path: Path, lake: Any) -> Iterator[Any]:
    """Return an empty ledger with Spark beside it."""
    from tests.spark.world import World

    made = World(spark, tmp_path, lake)
    yield made
    made.store.close()

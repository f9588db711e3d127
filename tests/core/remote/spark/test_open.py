"""core/remote/spark/open.py: the engine, the lake and the arguments of jobs that settings name."""

from pathlib import Path

import pytest

from core.errors import SettingsRefused
from core.remote.spark.http_engines import DatabricksEngine, LivyEngine
from core.remote.spark.job_package import package_version
from core.remote.spark.local_engine import LocalEngine
from core.remote.spark.open import job_arguments, open_engine, open_lake
from core.settings import Settings, read_settings

GOOD = {
    "STORE_CONNECTION": "sqlite:place/store.db",
    "EVENTHUB_NAME": "telemetry",
    "EVENTHUB_CONSUMER_GROUP": "hubledger",
    "EVENTHUB": "Endpoint=sb://localhost",
    "SPARK_JOBS": "abfss://jobs@acc.dfs.core.windows.net/",
    "LIVY_URL": "https://ws.dev.azuresynapse.net/pool",
    "DATABRICKS_URL": "https://adb-1.azuredatabricks.net",
}
SERVER = "Driver={x};Server=tcp:s.database.windows.net,1433;Database=d;UID=app;PWD=hunter2"


def settings(**changed: str) -> Settings:
    return read_settings({**GOOD, **changed})


@pytest.mark.parametrize(
    ("engine", "kind"), [("local", LocalEngine), ("livy", LivyEngine), ("databricks", DatabricksEngine)]
)
def test_the_setting_names_the_engine(engine: str, kind: type) -> None:
    opened = open_engine(settings(SPARK_ENGINE=engine))
    assert opened is not None
    assert (type(opened), opened.name) == (kind, engine)


def test_none_is_no_engine() -> None:
    assert open_engine(settings()) is None


def test_a_local_lake_is_beside_the_store_unless_it_is_named() -> None:
    beside = open_lake(settings(SPARK_ENGINE="local"))
    assert beside is not None
    assert beside.location == str(Path("place/lake").resolve())
    named = open_lake(settings(SPARK_ENGINE="local", LAKE="elsewhere"))
    assert named is not None
    assert named.location == str(Path("elsewhere").resolve())


def test_an_address_is_a_lake_in_blobs_and_without_one_there_is_none_elsewhere() -> None:
    address = "abfss://lake@acc.dfs.core.windows.net/a"
    lake = open_lake(settings(SPARK_ENGINE="livy", LAKE=address))
    assert lake is not None
    assert lake.location == address
    assert open_lake(settings(SPARK_ENGINE="livy")) is None


def test_jobs_elsewhere_are_told_where_the_store_is_and_nothing_secret() -> None:
    *ours, option, address = job_arguments(settings(SPARK_ENGINE="livy", STORE_CONNECTION=SERVER))
    assert tuple(ours) == ("--transform", "examples.home_security")
    assert (option, address.split(";")[0]) == ("--store", "jdbc:sqlserver://s.database.windows.net:1433")
    assert "hunter2" not in address
    assert job_arguments(settings(SPARK_ENGINE="local", STORE_CONNECTION=SERVER)) == tuple(ours)


def test_a_job_elsewhere_cannot_reach_an_embedded_store() -> None:
    with pytest.raises(SettingsRefused, match="STORE_CONNECTION: the connection string names no Server"):
        job_arguments(settings(SPARK_ENGINE="livy"))


@pytest.mark.parametrize("engine", ["livy", "databricks"])
def test_a_remote_engine_finds_the_package_of_our_own_version(engine: str) -> None:
    opened = open_engine(settings(SPARK_ENGINE=engine))
    folder = f"abfss://jobs@acc.dfs.core.windows.net/{package_version()}"
    assert folder in (getattr(opened, "_jobs", None), getattr(getattr(opened, "_jobs", None), "folder", None))

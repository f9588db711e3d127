from pathlib import Path
from typing import Any

import pytest

from core.errors import LakeUnreachable, SettingsRefused
from core.remote.spark.http import own_credential
from core.remote.spark.http_engines import DatabricksEngine, LivyEngine
from core.remote.spark.job_package import jdbc_address, package_version
from core.remote.spark.lake_storage import BlobStorage, FolderStorage, account_options, parse_address
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
LAKE = "abfss://lake@acc.dfs.core.windows.net/a"
AZURITE = "http://127.0.0.1:10000/devstoreaccount1"


def settings(engine: str, **changed: str) -> Settings:
    return read_settings({**GOOD, "SPARK_ENGINE": engine, **changed})


@pytest.mark.parametrize(
    ("engine", "kind"), [("local", LocalEngine), ("livy", LivyEngine), ("databricks", DatabricksEngine)]
)
def test_the_setting_names_the_engine(engine: str, kind: type) -> None:
    opened: Any = open_engine(settings(engine))
    assert (type(opened), opened.name) == (kind, engine)
    if engine != "local":
        folder = f"abfss://jobs@acc.dfs.core.windows.net/{package_version()}"
        assert folder == getattr(opened._jobs, "folder", opened._jobs)


def test_without_a_setting_there_is_no_engine_and_a_local_lake_is_beside_the_store_unless_it_is_named() -> None:
    def location(engine: str, **lake: str) -> str | None:
        return getattr(open_lake(settings(engine, **lake)), "location", None)

    assert open_engine(read_settings(GOOD)) is None
    assert location("local") == str(Path("place/lake").resolve())
    assert location("local", LAKE="elsewhere") == str(Path("elsewhere").resolve())
    assert location("livy", LAKE=LAKE) == LAKE
    assert location("livy") is None


def test_jobs_elsewhere_are_told_where_the_store_is_and_nothing_secret() -> None:
    *ours, option, address = job_arguments(settings("livy", STORE_CONNECTION=SERVER))
    assert tuple(ours) == ("--transform", "examples.home_security")
    assert (option, address.split(";")[0]) == ("--store", "jdbc:sqlserver://s.database.windows.net:1433")
    assert "hunter2" not in address
    assert job_arguments(settings("local", STORE_CONNECTION=SERVER)) == tuple(ours)
    with pytest.raises(SettingsRefused, match="STORE_CONNECTION: the connection string names no Server"):
        job_arguments(settings("livy"))


def test_an_odbc_string_of_azure_sql_is_an_address_without_secrets() -> None:
    here = "jdbc:sqlserver://s.database.windows.net:1433;databaseName=d;encrypt=true;trustServerCertificate=false"
    odbc = "Driver={ODBC Driver 18 for SQL Server};Server=tcp:s.database.windows.net,1433;Database=d;Encrypt=yes"
    assert jdbc_address(odbc) == jdbc_address(f"{odbc};")
    assert (jdbc_address(odbc).url, jdbc_address(odbc).user, jdbc_address(odbc).password) == (here, None, None)
    address = jdbc_address("SERVER=host;DATABASE=d;UID=app;PWD={a;b};TrustServerCertificate=yes;Encrypt=no")
    assert (address.user, address.password) == ("app", "a;b")
    assert address.url == "jdbc:sqlserver://host:1433;databaseName=d;encrypt=false;trustServerCertificate=true"
    for broken in ("DSN=hubledger", "Server=host", "Database=d", "Server=;Database=d", "nonsense"):
        with pytest.raises(ValueError, match="names no Server and Database"):
            jdbc_address(broken)


def test_a_folder_holds_files_by_their_paths(tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path / "lake")
    assert storage.sizes("gold/one") == {}
    for body in (b"{}", b"{1}"):
        storage.write("gold/one/a/state.json", body)
    assert storage.sizes("gold/one") == {"a/state.json": 3}
    assert storage.read("gold/one/a/state.json") == b"{1}"
    assert (storage.uri("gold/one"), storage.options()) == (str(tmp_path / "lake" / "gold" / "one"), None)


def test_delta_rs_gets_the_container_and_the_account_of_an_address_with_its_key_or_signature() -> None:
    connection = "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=a2V5==;EndpointSuffix=core.windows.net"
    storage = BlobStorage(f"{LAKE}/", connection)
    assert (storage.location, storage.uri("gold/one")) == (LAKE, "az://lake/a/gold/one")
    assert storage.options() == {"account_name": "acc", "account_key": "a2V5=="}
    azurite = {"account_name": "devstoreaccount1", "azure_storage_endpoint": AZURITE, "allow_http": "true"}
    assert account_options(AZURITE, "AccountName=devstoreaccount1;AccountKey=k") == azurite | {"account_key": "k"}
    signed = account_options("https://acc.blob.core.windows.net", "BlobEndpoint=x;SharedAccessSignature=sv=1&sig=2")
    assert signed == {"account_name": "acc", "sas_token": "sv=1&sig=2"}
    assert own_credential() is own_credential()  # one identity remembers its tokens


ADDRESSES = {
    "https://acc.blob.core.windows.net/lake": ("https://acc.blob.core.windows.net", "lake", ""),
    "https://acc.blob.core.windows.net/lake/a/b/": ("https://acc.blob.core.windows.net", "lake", "a/b"),
    f"{AZURITE}/lake/a": (AZURITE, "lake", "a"),
    LAKE: ("https://acc.blob.core.windows.net", "lake", "a"),
}


def test_an_address_names_account_container_and_prefix_or_is_refused() -> None:
    assert {address: parse_address(address) for address in ADDRESSES} == ADDRESSES
    for address in ("https://acc.blob.core.windows.net", "ftp://a/b", "abfss://acc.dfs/a", "x"):
        with pytest.raises(LakeUnreachable, match=r"^LAKE: "):
            parse_address(address)

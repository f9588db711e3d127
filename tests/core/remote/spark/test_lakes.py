"""core/remote/spark/lake_storage.py: files in a folder, where addresses lead, and the options of delta-rs."""

from pathlib import Path

import pytest

from core.errors import LakeUnreachable
from core.remote.spark.http import own_credential
from core.remote.spark.lake_storage import BlobStorage, FolderStorage, account_options, parse_address

AZURITE = "http://127.0.0.1:10000/devstoreaccount1"


def test_a_folder_holds_files_by_their_paths(tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path / "lake")
    assert storage.names("gold/one") == []
    storage.write("gold/one/a/state.json", b"{}")
    storage.write("gold/one/a/state.json", b"{1}")
    assert storage.names("gold/one") == ["a/state.json"]
    assert storage.read("gold/one/a/state.json") == b"{1}"
    assert (storage.uri("gold/one"), storage.options()) == (str(tmp_path / "lake" / "gold" / "one"), None)


def test_delta_rs_gets_the_container_and_the_account_of_an_address() -> None:
    connection = "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=a2V5==;EndpointSuffix=core.windows.net"
    storage = BlobStorage("abfss://lake@acc.dfs.core.windows.net/a/", connection)
    assert storage.location == "abfss://lake@acc.dfs.core.windows.net/a"
    assert storage.uri("gold/one") == "az://lake/a/gold/one"
    assert storage.options() == {"account_name": "acc", "account_key": "a2V5=="}


def test_delta_rs_gets_the_endpoint_of_azurite_and_a_signature_where_there_is_no_key() -> None:
    assert account_options(AZURITE, "AccountName=devstoreaccount1;AccountKey=k") == {
        "account_name": "devstoreaccount1",
        "azure_storage_endpoint": AZURITE,
        "allow_http": "true",
        "account_key": "k",
    }
    signed = account_options("https://acc.blob.core.windows.net", "BlobEndpoint=x;SharedAccessSignature=sv=1&sig=2")
    assert signed == {"account_name": "acc", "sas_token": "sv=1&sig=2"}


def test_one_identity_signs_in_for_each_token_so_that_it_remembers_them() -> None:
    assert own_credential() is own_credential()


ADDRESSES = {
    "https://acc.blob.core.windows.net/lake": ("https://acc.blob.core.windows.net", "lake", ""),
    "https://acc.blob.core.windows.net/lake/a/b/": ("https://acc.blob.core.windows.net", "lake", "a/b"),
    "http://127.0.0.1:10000/devstoreaccount1/lake/a": ("http://127.0.0.1:10000/devstoreaccount1", "lake", "a"),
    "abfss://lake@acc.dfs.core.windows.net/a": ("https://acc.blob.core.windows.net", "lake", "a"),
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_names_account_container_and_prefix(address: str) -> None:
    assert parse_address(address) == ADDRESSES[address]


@pytest.mark.parametrize("address", ["https://acc.blob.core.windows.net", "ftp://a/b", "abfss://acc.dfs/a", "x"])
def test_an_address_that_names_no_container_is_refused(address: str) -> None:
    with pytest.raises(LakeUnreachable, match=r"^LAKE: "):
        parse_address(address)

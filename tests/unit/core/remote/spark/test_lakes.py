"""core/remote/spark/lakes.py: a pointer in a folder, and where addresses lead."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.aggregation.lake import empty_pointer
from core.errors import LakeUnreachable
from core.remote.spark.lakes import FolderLake, parse_address


def test_a_pointer_is_only_swapped_for_the_one_that_was_read(tmp_path: Path) -> None:
    lake, pointer = FolderLake(tmp_path / "lake"), empty_pointer("job")
    assert lake.read_pointer("job") is None
    assert lake.swap_pointer(pointer, None)
    first = lake.read_pointer("job")
    assert first is not None
    assert first.pointer == pointer
    assert not lake.swap_pointer(pointer, None)
    assert not lake.swap_pointer(pointer, "another")
    assert lake.swap_pointer(pointer, first.etag)


def test_of_swaps_at_the_same_time_one_wins(tmp_path: Path) -> None:
    lake = FolderLake(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda _: lake.swap_pointer(empty_pointer("job"), None), range(16)))
    assert won.count(True) == 1


def test_a_pointer_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "current.json").write_text('{"half": ')
    with pytest.raises(LakeUnreachable, match="pointer cannot be read"):
        FolderLake(tmp_path).read_pointer("job")


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LakeUnreachable, match=r"^LAKE: "):
        FolderLake(tmp_path / "file").swap_pointer(empty_pointer("job"), None)


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

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import BlobClient, ContainerClient

from local.functions_host.blobs import CONTAINER
from tests.acceptance.functions_host.sample import ingested, serving_sample, write_settings
from tests.local.functions_host.doubles import event

pytestmark = pytest.mark.asyncio

SETTING, NAME = "AzureWebJobsStorage", "localhost/telemetry/$default/checkpoint/0"
AT_7 = {"offset": "448", "sequencenumber": "7"}


@pytest.fixture(autouse=True)
def no_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)


async def asked(call: Callable[[BlobClient], Any], name: str = NAME) -> Any:
    def ask() -> Any:
        with ContainerClient.from_connection_string(os.environ[SETTING], CONTAINER, retry_total=0) as container:
            return call(container.get_blob_client(name))

    return await asyncio.to_thread(ask)


def upload(blob: BlobClient) -> dict[str, Any]:
    return blob.upload_blob(b"", metadata=AT_7, overwrite=False)


def lift(etag: str, number: int) -> Callable[[BlobClient], Any]:
    metadata, match = {"offset": "", "sequencenumber": str(number)}, MatchConditions.IfNotModified
    return lambda blob: blob.set_blob_metadata(metadata, etag=etag, match_condition=match)


async def refused(kind: type[AzureError], call: Callable[[BlobClient], Any], name: str = NAME) -> None:
    with pytest.raises(kind):
        await asked(call, name)


async def test_a_checkpoint_of_the_host_is_a_blob_with_its_position(app: Path) -> None:
    async with serving_sample(app) as sample:
        await refused(ResourceNotFoundError, lambda blob: blob.get_blob_properties())
        await sample.send("0", b"a", b"b")
        await ingested(["a", "b"])
        found = await asked(lambda blob: blob.get_blob_properties())
        assert found.metadata == {"offset": event(1).offset, "sequencenumber": "1"}
    write_settings(app, **{f"{SETTING}__accountName": "own"})
    async with serving_sample(app):
        assert SETTING not in os.environ, "the setting is the app's where it names a storage"


async def test_a_checkpoint_is_made_where_there_is_none_and_written_only_over_the_one_that_was_read(app: Path) -> None:
    async with serving_sample(app):
        await refused(ResourceNotFoundError, lift('"0x1"', 1))
        first = (await asked(upload))["etag"]
        found = await asked(lambda blob: blob.get_blob_properties())
        assert (found.metadata, found.etag) == (AT_7, first)
        await refused(ResourceExistsError, upload)
        second = (await asked(lift(first, 8)))["etag"]
        await refused(ResourceModifiedError, lift(first, 9))
        found = await asked(lambda blob: blob.get_blob_properties())
        assert (found.metadata, found.etag) == ({"offset": "", "sequencenumber": "8"}, second)
        await asked(lambda blob: blob.upload_blob(b"", metadata={**AT_7, "sequencenumber": "9"}, overwrite=True))
        assert (await asked(lambda blob: blob.get_blob_properties())).metadata["sequencenumber"] == "9"
        other = "localhost/other/$default/checkpoint/0"
        await refused(ResourceNotFoundError, lambda blob: blob.get_blob_properties(), other)
        await refused(HttpResponseError, upload, other)
        await refused(HttpResponseError, lambda blob: blob.upload_blob(b"", metadata={"sequencenumber": "x"}))
        await refused(HttpResponseError, lambda blob: blob.delete_blob())

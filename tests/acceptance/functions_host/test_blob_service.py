"""An app's storage client reads and writes the host's checkpoints at the host's own port."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from azure.core import MatchConditions
from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import BlobClient, ContainerClient

from local.functions_host import HostOptions
from local.functions_host.blobs import CONTAINER
from tests.acceptance.functions_host.sample import Hubs, Sample, ingested, serving_sample, write_settings
from tests.local.functions_host.doubles import event, eventually

pytestmark = pytest.mark.asyncio

SETTING, NAME = "AzureWebJobsStorage", "localhost/telemetry/$default/checkpoint/0"
AT_7 = {"offset": "448", "sequencenumber": "7"}


@pytest.fixture(autouse=True)
def no_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SETTING, raising=False)


@pytest_asyncio.fixture
async def sample(app: Path) -> AsyncIterator[Sample]:
    async with serving_sample(app, HostOptions(), Hubs()) as sample:
        yield sample


async def asked(call: Callable[[BlobClient], Any], name: str = NAME) -> Any:
    """Make a call of a client of a blob, with the account that the setting names."""

    def ask() -> Any:
        options = {"retry_total": 0}
        with ContainerClient.from_connection_string(os.environ[SETTING], CONTAINER, **options) as container:
            return call(container.get_blob_client(name))

    return await asyncio.to_thread(ask)


def upload(blob: BlobClient) -> dict[str, Any]:
    return blob.upload_blob(b"", metadata=AT_7, overwrite=False)


async def refused(kind: type[AzureError], call: Callable[[BlobClient], Any], name: str = NAME) -> None:
    with pytest.raises(kind):
        await asked(call, name)


async def test_a_checkpoint_of_the_host_is_a_blob_with_its_position(sample: Sample) -> None:
    await refused(ResourceNotFoundError, lambda blob: blob.get_blob_properties())
    assert not await asked(lambda blob: blob.exists())
    await sample.send("0", b"a", b"b")
    await ingested(["a", "b"])
    found = await asked(lambda blob: blob.get_blob_properties())
    assert found.metadata == {"offset": event(1).offset, "sequencenumber": "1"}


async def test_a_checkpoint_is_created_only_where_there_is_none(sample: Sample) -> None:
    created = await asked(upload)
    found = await asked(lambda blob: blob.get_blob_properties())
    assert (found.metadata, found.etag) == (AT_7, created["etag"])
    await refused(ResourceExistsError, upload)
    await refused(ResourceExistsError, lambda blob: blob.get_blob_properties() and upload(blob))


async def test_metadata_are_written_only_over_the_blob_that_was_read(sample: Sample) -> None:
    def lift(etag: str, number: int) -> Callable[[BlobClient], Any]:
        metadata = {"offset": "", "sequencenumber": str(number)}
        match = MatchConditions.IfNotModified
        return lambda blob: blob.set_blob_metadata(metadata, etag=etag, match_condition=match)

    await refused(ResourceNotFoundError, lift('"0x1"', 1))
    first = (await asked(upload))["etag"]
    second = (await asked(lift(first, 8)))["etag"]
    await refused(ResourceModifiedError, lift(first, 9))
    assert second != first
    found = await asked(lambda blob: blob.get_blob_properties())
    assert (found.metadata, found.etag) == ({"offset": "", "sequencenumber": "8"}, second)


async def test_a_whole_blob_is_overwritten_as_the_real_host_does_it(sample: Sample) -> None:
    await asked(upload)
    await asked(lambda blob: blob.upload_blob(b"", metadata={**AT_7, "sequencenumber": "9"}, overwrite=True))
    assert (await asked(lambda blob: blob.get_blob_properties())).metadata["sequencenumber"] == "9"


async def test_what_is_no_checkpoint_is_refused(sample: Sample) -> None:
    await refused(
        ResourceNotFoundError, lambda blob: blob.get_blob_properties(), "localhost/other/$default/checkpoint/0"
    )
    await refused(HttpResponseError, upload, "localhost/other/$default/checkpoint/0")
    await refused(HttpResponseError, lambda blob: blob.upload_blob(b"", metadata={"sequencenumber": "x"}))
    await refused(HttpResponseError, lambda blob: blob.delete_blob())
    await refused(HttpResponseError, lambda blob: blob.acquire_lease())


async def test_the_setting_is_the_app_s_where_it_names_a_storage(app: Path) -> None:
    write_settings(app, **{f"{SETTING}__accountName": "own"})
    async with serving_sample(app, HostOptions(), Hubs()):
        assert SETTING not in os.environ
    write_settings(app, **{f"{SETTING}": ""})
    async with serving_sample(app, HostOptions(), Hubs()):
        await eventually(lambda: os.environ[SETTING])
    assert SETTING not in os.environ

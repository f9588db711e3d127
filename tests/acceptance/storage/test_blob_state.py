"""The host's checkpoints in a storage account, where and as the real host keeps them."""

from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient

from local.functions_host import HostOptions
from local.functions_host.blobs import CONTAINER, BlobState
from local.functions_host.errors import HostError
from local.functions_host.event_source import HubAddress
from tests.acceptance.functions_host.sample import Hubs, bodies, refused, running, seen
from tests.local.functions_host.doubles import event, eventually


def metadata_of(account: str, blob: str) -> dict[str, str]:
    """The metadata of one blob of the host."""
    with ContainerClient.from_connection_string(account, CONTAINER) as container:
        return dict(container.get_blob_client(blob).get_blob_properties().metadata)


def test_a_checkpoint_is_a_blob_of_the_real_hosts_name_and_metadata_and_outlives_the_host(account: str) -> None:
    address = HubAddress("Layout.servicebus.windows.net", "Telemetry", "$Default")
    for number in (1, 41):
        state = BlobState(None, account)
        state.write_checkpoint(address, "3", event(number).position)
        state.close()
    found = metadata_of(account, "layout.servicebus.windows.net/telemetry/$default/checkpoint/3")
    assert found == {"offset": event(41).offset, "sequencenumber": "41"}
    state = BlobState(None, account)
    assert state.read_checkpoint(address, "3") == event(41).position
    assert state.read_checkpoint(address, "1") is None
    assert state.read_checkpoint(HubAddress("layout.servicebus.windows.net", "telemetry", "other"), "3") is None
    state.close()


@pytest.mark.asyncio
async def test_a_host_with_a_new_folder_goes_on_from_the_blobs(app: Path, account: str) -> None:
    hubs = Hubs()
    for number in range(2):
        async with running(app, HostOptions(open_source=hubs.open, storage=account)):
            await hubs.of("$Default").send("0", b"a%d" % number)
            await eventually(lambda: len(seen("ingest")) > number)  # noqa: B023
    assert bodies() == [["a0"], ["a1"]]
    assert metadata_of(account, "localhost/telemetry/$default/checkpoint/0")["sequencenumber"] == "1"


def test_an_account_that_cannot_be_opened_is_one_clear_line(app: Path) -> None:
    with pytest.raises(HostError, match="--storage: the account cannot be opened"):
        BlobState(None, "no connection string")
    nobody = "AccountName=a;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:9/a"
    said = refused("--app", str(app), "--port", "0", "--storage", nobody)
    assert "--storage: the account cannot be opened" in said

import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient

from core.remote.spark.job_package import ARCHIVE, PACKAGES, package_version, packages_wheel, wheel
from infra.hooks.lake import upload_jobs
from jobs.package import PROGRAMS
from local.functions_host import HostOptions
from local.functions_host.blobs import CONTAINER, BlobState
from local.functions_host.errors import HostError
from local.functions_host.event_source import HubAddress
from local.stack import azurite
from tests.acceptance.functions_host.conftest import app, sample_app
from tests.acceptance.functions_host.sample import Hubs, bodies, refused, running, seen
from tests.local.functions_host.doubles import event, eventually

__all__ = ["app", "sample_app"]


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if azurite.command() is None:
        pytest.skip("Azurite is not installed: `make azurite` does it, with npm")
    with azurite.running(tmp_path_factory.mktemp("azurite")) as connection:
        yield connection


def metadata_of(account: str, blob: str) -> dict[str, str]:
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


def test_the_jobs_and_our_modules_are_uploaded_and_a_second_run_replaces_them(account: str, tmp_path: Path) -> None:
    version = package_version()
    files = (*PROGRAMS, ARCHIVE, PACKAGES, wheel(version), packages_wheel(version))
    names = sorted(f"jobs/{version}/{name}" for name in files)
    with ContainerClient.from_connection_string(account, "lake") as container:
        container.create_container()
        container.upload_blob(f"jobs/{version}/{ARCHIVE}", b"of an older deployment")
        for _ in range(2):
            assert upload_jobs("synapse", lambda: container, time, tmp_path) == names
        assert sorted(container.list_blob_names()) == names
        archive = tmp_path / "got.zip"
        archive.write_bytes(container.download_blob(f"jobs/{version}/{ARCHIVE}").readall())
    with zipfile.ZipFile(archive) as packed:
        assert {"jobs/tables.py", "core/model/rows.py"} <= set(packed.namelist())

"""The hook that uploads jobs, before a real blob service."""

import time
import zipfile
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient

from core.remote.spark.job_package import ARCHIVE, PACKAGES, package_version, packages_wheel, wheel
from infra.hooks.lake import upload_jobs
from jobs.package import PROGRAMS

VERSION = package_version()
FOLDER = f"jobs/{VERSION}"
FILES = (*PROGRAMS, ARCHIVE, PACKAGES, wheel(VERSION), packages_wheel(VERSION))
NAMES = sorted(f"{FOLDER}/{name}" for name in FILES)


@pytest.fixture
def container(account: str, request: pytest.FixtureRequest) -> ContainerClient:
    client = ContainerClient.from_connection_string(account, f"lake-{abs(hash(request.node.name))}")
    client.create_container()
    return client


def test_the_jobs_and_our_modules_are_uploaded_and_a_second_run_replaces_them(
    container: ContainerClient, tmp_path: Path
) -> None:
    container.upload_blob(f"{FOLDER}/{ARCHIVE}", b"of an older deployment")
    for _ in range(2):
        assert upload_jobs("synapse", lambda: container, time, tmp_path) == NAMES
    assert sorted(container.list_blob_names()) == NAMES
    archive = tmp_path / "got.zip"
    archive.write_bytes(container.download_blob(f"{FOLDER}/{ARCHIVE}").readall())
    with zipfile.ZipFile(archive) as packed:
        assert {"jobs/tables.py", "core/model/rows.py"} <= set(packed.namelist())

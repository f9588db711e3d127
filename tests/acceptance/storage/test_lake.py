"""The hook that uploads jobs, before a real blob service."""

import zipfile
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient

from infra.hooks.lake import upload_jobs
from tests.repo.product import ROOT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one job, one module of core, and a query."""
    for name in ("jobs/aggregate.py", "jobs/__pycache__/aggregate.pyc", "core/store/queries.py", "sql/sqlite/a.sql"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# {name}")
    return tmp_path


@pytest.fixture
def container(account: str, request: pytest.FixtureRequest) -> ContainerClient:
    client = ContainerClient.from_connection_string(account, f"lake-{abs(hash(request.node.name))}")
    client.create_container()
    return client


def test_jobs_and_their_dependencies_are_uploaded_and_a_second_run_replaces_them(
    project: Path, container: ContainerClient, tmp_path: Path
) -> None:
    assert upload_jobs(project, container) == ["jobs/aggregate.py", "jobs/dependencies.zip"]
    (project / "jobs" / "aggregate.py").write_text("# new")
    upload_jobs(project, container)
    assert sorted(container.list_blob_names()) == ["jobs/aggregate.py", "jobs/dependencies.zip"]
    assert container.download_blob("jobs/aggregate.py").readall() == b"# new"
    archive = tmp_path / "got.zip"
    archive.write_bytes(container.download_blob("jobs/dependencies.zip").readall())
    with zipfile.ZipFile(archive) as packed:
        assert packed.namelist() == ["core/store/queries.py", "sql/sqlite/a.sql"]


def test_a_project_without_jobs_uploads_nothing_and_says_so(
    container: ContainerClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert upload_jobs(tmp_path, container) == []
    assert "no Spark job was uploaded" in capsys.readouterr().out
    assert list(container.list_blob_names()) == []


def test_our_own_jobs_can_be_uploaded(container: ContainerClient) -> None:
    names = upload_jobs(ROOT, container)
    assert bool(names) == (ROOT / "jobs").exists()

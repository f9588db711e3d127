"""The upload of the Spark jobs to the folder of SPARK_JOBS: the programs, and our modules in archives beside them."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from infra.hooks.errors import HookRefused
from infra.hooks.patience import RIGHTS, Clock, NotYet, patiently
from jobs.package import PackageRefused, write_downloaded

FOLDER = "jobs"


def upload_jobs(engine: str, open_container: Callable[[], Any], clock: Clock, wheels: Path | None = None) -> list[str]:
    """Upload the jobs through a container client of azure-storage-blob. Return the names of the blobs.

    Without an engine there is nothing to upload, and the lake is not opened. A changed package gets a folder of its
    own, so a job that runs keeps its files. The wheels of other packages come from a folder, by default from the
    package index.
    """
    if engine == "none":
        print("no Spark engine: no job to upload")
        return []
    with tempfile.TemporaryDirectory() as folder:
        files = {f"{FOLDER}/{path.relative_to(folder).as_posix()}": path for path in _written(Path(folder), wheels)}
        container = open_container()
        patiently(lambda: _upload(container, files), clock)
    print(f"uploaded {len(files)} files to {FOLDER}/ in the lake")
    return sorted(files)


def _upload(container: Any, files: Mapping[str, Path]) -> None:
    from azure.core.exceptions import AzureError

    try:
        for name, path in files.items():
            with path.open("rb") as content:
                container.upload_blob(name, content, overwrite=True)
    except AzureError as error:
        fault = f"the jobs were not uploaded to the lake: {error.message}"
        if getattr(error, "status_code", None) == 403:
            raise NotYet(
                fault, RIGHTS, "the account needs the role Storage Blob Data Contributor on the container of the jobs"
            ) from error
        raise HookRefused(fault) from error


def _written(folder: Path, wheels: Path | None) -> list[Path]:
    try:
        return write_downloaded(folder, wheels)
    except PackageRefused as refused:
        raise HookRefused(f"the jobs were not uploaded: {refused}") from refused

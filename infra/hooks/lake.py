"""The upload of the Spark jobs to the folder of SPARK_JOBS: the programs, and our modules in archives beside them."""

import tempfile
from pathlib import Path
from typing import Any

from infra.hooks.errors import HookRefused
from jobs.package import PackageRefused, write_downloaded

FOLDER = "jobs"


def upload_jobs(container: Any, wheels: Path | None = None) -> list[str]:
    """Upload the jobs through a container client of azure-storage-blob; return the names of the blobs.

    A changed package gets a folder of its own, so a job that runs keeps its files. The wheels of other packages come
    from a folder, by default from the package index.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = {f"{FOLDER}/{path.relative_to(folder).as_posix()}": path for path in _written(Path(folder), wheels)}
        for name, path in files.items():
            with path.open("rb") as content:
                container.upload_blob(name, content, overwrite=True)
    print(f"uploaded {len(files)} files to {FOLDER}/ in the lake")
    return sorted(files)


def _written(folder: Path, wheels: Path | None) -> list[Path]:
    try:
        return write_downloaded(folder, wheels)
    except PackageRefused as refused:
        raise HookRefused(f"the jobs were not uploaded: {refused}") from refused

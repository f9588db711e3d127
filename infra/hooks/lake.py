"""The upload of the Spark jobs to the folder of SPARK_JOBS: the programs, and our modules in archives beside them."""

import tempfile
from pathlib import Path
from typing import Any

from jobs.package import write_package

FOLDER = "jobs"


def upload_jobs(container: Any) -> list[str]:
    """Upload the jobs through a container client of azure-storage-blob; return the names of the blobs.

    Each deployment overwrites the same names: a job that runs has already read its files.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = {f"{FOLDER}/{path.name}": path for path in write_package(Path(folder))}
        for name, path in files.items():
            with path.open("rb") as content:
                container.upload_blob(name, content, overwrite=True)
    print(f"uploaded {len(files)} files to {FOLDER}/ in the lake")
    return sorted(files)

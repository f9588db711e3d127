"""Put the Spark jobs into the lake: the programs, and our modules in archives beside them, as SPARK_JOBS has them."""

import tempfile
from pathlib import Path
from typing import Any

from jobs.package import write_package

FOLDER = "jobs"


def upload_jobs(container: Any) -> list[str]:
    """Upload to a container client of azure-storage-blob; return the names of the blobs.

    The same names are written again on each deployment: a job that is running has read its files already.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = {f"{FOLDER}/{path.name}": path for path in write_package(Path(folder))}
        for name, path in files.items():
            with path.open("rb") as content:
                container.upload_blob(name, content, overwrite=True)
    print(f"uploaded {len(files)} files to {FOLDER}/ of the lake")
    return sorted(files)

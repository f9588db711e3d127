"""Put the Spark jobs and what they import into the lake: the files of jobs/, and one archive of their dependencies."""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from infra.hooks.errors import HookRefused

FOLDER = "jobs"
DEPENDENCIES = "dependencies.zip"


def upload_jobs(root: Path, container: Any) -> list[str]:
    """Upload to a container client of azure-storage-blob; return the names of the blobs. Without jobs/, say so.

    The same names are written again on each deployment: a job that is running has read its files already.
    """
    jobs = sorted(path for path in (root / FOLDER).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    if not jobs:
        print(f"there is no {FOLDER}/: no Spark job was uploaded")
        return []
    with tempfile.TemporaryDirectory() as folder:
        archive = pack_dependencies(root, Path(folder))
        files = {path.relative_to(root).as_posix(): path for path in jobs} | {f"{FOLDER}/{DEPENDENCIES}": archive}
        for name, path in files.items():
            with path.open("rb") as content:
                container.upload_blob(name, content, overwrite=True)
    print(f"uploaded {len(files)} files to {FOLDER}/ of the lake")
    return sorted(files)


def pack_dependencies(root: Path, folder: Path) -> Path:
    """The archive for a job's pyFiles: core and sql of the app, and what jobs/requirements.txt names."""
    staged = folder / "staged"
    staged.mkdir()
    requirements = root / FOLDER / "requirements.txt"
    if requirements.exists():
        _install(requirements, staged)
    archive = folder / DEPENDENCIES
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for source in (root / "core", root / "sql", staged):
            base = staged if source == staged else root
            for path in sorted(source.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    packed.write(path, path.relative_to(base).as_posix())
    return archive


def _install(requirements: Path, target: Path) -> None:
    """Pure Python only: an archive cannot carry what must be loaded as a library of the machine."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    done = subprocess.run([*command, "--target", str(target), "-r", str(requirements)], check=False)
    if done.returncode:
        raise HookRefused(f"{FOLDER}/requirements.txt cannot be installed, pip says why above")

"""`python -m jobs.package FOLDER`: write the files that a remote Spark engine needs, in a folder of their version.

They are the programs, our modules, and the packages that the modules import and no engine has. `hubledger.zip` and
`packages.zip` are for `pyFiles` and `archives` of Livy. Two wheels have the same for Databricks. Equal sources give
equal bytes.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from core.remote.spark import job_package as package
from core.remote.spark.job_package import ARCHIVE, PACKAGES, package_version, packages_wheel, requirements, wheel

APP = package.APP
PROGRAMS = ("aggregate.py", "rebuild_aggregate.py", "replay_capture.py")
PYTHONS = ("3.11", "3.12", "3.13")  # of Synapse 3.5, Fabric 1.3 and 2.0, Databricks 15.4 to 18 LTS
PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64")
_STAMP = (1980, 1, 1, 0, 0, 0)
_FIND = f'''"""Find the packages of the batch where the engine has unpacked them."""

import sys
from pathlib import Path

_packages = str(Path("{package.UNPACKED}").resolve())
if Path(_packages).is_dir() and _packages not in sys.path:
    sys.path.insert(0, _packages)
'''
_METADATA = {
    "METADATA": "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    "WHEEL": "Wheel-Version: 1.0\nGenerator: hubledger\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
}


class PackageRefused(Exception):
    """The package could not be written. The message says what to do."""


def write_package(folder: Path, wheels: Iterable[Path]) -> list[Path]:
    """Write the programs and the archives into a folder of the package's version, and return their paths."""
    version = package_version()
    place = folder / version
    place.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        shutil.copyfile(APP / "jobs" / name, place / name)
    ours = {name: text.encode() for name, text in package.modules().items()}
    ours |= dict.fromkeys(("core/__init__.py", "jobs/__init__.py"), _FIND.encode())
    brought = merged(wheels)
    _write_archive(place / ARCHIVE, ours)
    _write_archive(place / PACKAGES, brought)
    _write_wheel(place / wheel(version), ours, version)
    _write_wheel(place / packages_wheel(version), brought, version)
    names = (*PROGRAMS, ARCHIVE, PACKAGES, wheel(version), packages_wheel(version))
    return [place / name for name in names]


def merged(wheels: Iterable[Path]) -> Mapping[str, bytes]:
    """Return the files of wheels as one set: those of several versions of Python differ only in compiled modules, whose
    names have the version."""
    found: dict[str, bytes] = {}
    for path in sorted(wheels):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith("/") or ".dist-info/" in name:
                    continue
                content = archive.read(name)
                if found.setdefault(name, content) != content:
                    raise PackageRefused(f"{path.name} has a different {name} than the wheels before it")
    return found


def download(folder: Path) -> list[Path]:
    """Download the wheels of the required packages for every Python of an engine, and return their paths."""
    for python in PYTHONS:
        options = ["--no-deps", "--only-binary=:all:", "--implementation", "cp", "--python-version", python]
        places = [word for one in PLATFORMS for word in ("--platform", one)]
        command = [sys.executable, "-m", "pip", "download", "-q", "-d", str(folder), *options, *places, *requirements()]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            told = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise PackageRefused(
                f"the wheels were not downloaded: {told}; put them into a folder, and name it: --wheels"
            )
    return sorted(folder.glob("*.whl"))


def write_downloaded(folder: Path, wheels: Path | None = None) -> list[Path]:
    """Write the package with the wheels of a folder, or with downloaded ones. Return the paths of its files."""
    if wheels is not None:
        return write_package(folder, wheels.glob("*.whl"))
    with tempfile.TemporaryDirectory() as downloads:
        return write_package(folder, download(Path(downloads)))


def _write_wheel(path: Path, files: Mapping[str, bytes], version: str) -> None:
    name = path.name.partition("-")[0]
    info = f"{name}-{version}.dist-info"
    metadata = {f"{info}/{file}": text.format(name=name, version=version) for file, text in _METADATA.items()}
    record = "".join(f"{one},,\n" for one in [*files, *metadata])
    texts = {one: text.encode() for one, text in {**metadata, f"{info}/RECORD": record}.items()}
    _write_archive(path, {**files, **texts})


def _write_archive(path: Path, files: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _STAMP), content, zipfile.ZIP_DEFLATED)


def main(arguments: list[str] | None = None) -> int:
    """Write the package and print the paths of its files, or a line on standard error. Return 1 after an error."""
    parser = argparse.ArgumentParser(prog="python -m jobs.package", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wheels", type=Path, help="a folder of the wheels of msgspec and fastavro; default: download")
    given = parser.parse_args(arguments)
    try:
        for path in write_downloaded(given.folder, given.wheels):
            print(path)
    except PackageRefused as refused:
        print(f"{parser.prog}: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

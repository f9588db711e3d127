"""`python -m jobs.package FOLDER`: write the files that a remote Spark engine needs: the programs and our modules.

`hubledger.zip` is for `pyFiles` of Livy; the wheel has the same modules for Databricks. Equal sources give equal bytes.
"""

import argparse
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

APP = Path(__file__).resolve().parents[1]
PROGRAMS = ("aggregate.py", "rebuild_aggregate.py", "replay_capture.py")
ARCHIVE, WHEEL = "hubledger.zip", "hubledger-0.1.0-py3-none-any.whl"
WITHOUT = ("core/store/", "core/worker.py")  # the app's way to SQL, which no job uses
_STAMP = (1980, 1, 1, 0, 0, 0)
_METADATA = {
    "METADATA": "Metadata-Version: 2.1\nName: hubledger\nVersion: 0.1.0\n",
    "WHEEL": "Wheel-Version: 1.0\nGenerator: hubledger\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
}


def write_package(folder: Path) -> list[Path]:
    """Write the programs and the archives into a folder, which is created if needed; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        shutil.copyfile(APP / "jobs" / name, folder / name)
    modules = {path.relative_to(APP).as_posix(): path.read_text(encoding="utf-8") for path in _modules()}
    _write_archive(folder / ARCHIVE, modules)
    metadata = {f"hubledger-0.1.0.dist-info/{name}": text for name, text in _METADATA.items()}
    record = "".join(f"{name},,\n" for name in [*modules, *metadata])
    _write_archive(folder / WHEEL, {**modules, **metadata, "hubledger-0.1.0.dist-info/RECORD": record})
    return [*(folder / name for name in PROGRAMS), folder / ARCHIVE, folder / WHEEL]


def _modules() -> Iterator[Path]:
    for package in ("core", "jobs"):
        for path in sorted((APP / package).rglob("*.py")):
            if not path.relative_to(APP).as_posix().startswith(WITHOUT):
                yield path


def _write_archive(path: Path, texts: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(zipfile.ZipInfo(name, _STAMP), text)


def main(arguments: list[str] | None = None) -> int:
    """Write the package and print the paths of its files."""
    parser = argparse.ArgumentParser(prog="python -m jobs.package", description=__doc__)
    parser.add_argument("folder", type=Path)
    for path in write_package(parser.parse_args(arguments).folder):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The package that is deployed: each file of the project that .funcignore does not exclude, in one archive."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pathspec

from infra.hooks.errors import HookRefused

IGNORE = ".funcignore"
REQUIRED = ("function_app.py", "host.json", "requirements.txt")
LARGEST = 4 * 1024 * 1024  # bytes unpacked; the source is a tenth of that, so more is a mistake in .funcignore
_STAMP = (1980, 1, 1, 0, 0, 0)  # the same files make the same archive


@dataclass(frozen=True, slots=True)
class PackedFile:
    """One file of the package and its size in bytes."""

    name: str
    size: int


def files_of(root: Path) -> tuple[PackedFile, ...]:
    """Return the files to deploy, by name; raise HookRefused when one is missing or all are too large."""
    patterns = (root / IGNORE).read_text(encoding="utf-8").splitlines()
    ignored = pathspec.GitIgnoreSpec.from_lines(patterns)
    names = sorted(set(ignored.match_tree_files(root, negate=True, follow_links=False)))
    found = tuple(PackedFile(name, (root / name).stat().st_size) for name in names)
    _refuse_unfit(found)
    return found


def build(root: Path, archive: Path) -> tuple[PackedFile, ...]:
    """Write the package and return its files."""
    found = files_of(root)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in found:
            entry = zipfile.ZipInfo(file.name, _STAMP)
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, (root / file.name).read_bytes(), zipfile.ZIP_DEFLATED)
    return found


def table_of(files: Sequence[PackedFile], archive: Path) -> str:
    """Return the files with their sizes as a table for people."""
    lines = [f"{file.size:>9,}  {file.name}" for file in files]
    total, packed = sum(file.size for file in files), archive.stat().st_size
    return "\n".join([*lines, f"{len(files)} files, {total:,} bytes, {packed:,} packed"])


def _refuse_unfit(found: Sequence[PackedFile]) -> None:
    names = {file.name for file in found}
    faults = [
        f"{IGNORE} leaves out {name}, and the app does not start without it" for name in REQUIRED if name not in names
    ]
    total = sum(file.size for file in found)
    if total > LARGEST:
        largest = max(found, key=lambda file: file.size)
        faults.append(f"the package has {total:,} bytes, more than {LARGEST:,}: {IGNORE} lets in {largest.name}")
    if faults:
        raise HookRefused(*faults)

"""The package that is deployed: each file of the project that .funcignore does not exclude, in one archive."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pathspec

from infra.hooks.errors import HookRefused

IGNORE = ".funcignore"
REQUIRED = ("function_app.py", "host.json", "requirements.txt")
LARGEST = 4 * 1024 * 1024  # bytes unpacked; the source is a tenth of that, so more is a mistake in .funcignore
_STAMP = (1980, 1, 1, 0, 0, 0)  # the same files make the same archive


def files_of(root: Path) -> dict[str, int]:
    """Return the files to deploy with their sizes in bytes, by name.

    Raise HookRefused when one is missing or all are too large.
    """
    patterns = (root / IGNORE).read_text(encoding="utf-8").splitlines()
    ignored = pathspec.GitIgnoreSpec.from_lines(patterns)
    names = sorted(set(ignored.match_tree_files(root, negate=True, follow_links=False)))
    found = {name: (root / name).stat().st_size for name in names}
    _refuse_unfit(found)
    return found


def build(root: Path, archive: Path) -> dict[str, int]:
    """Write the package and return its files."""
    found = files_of(root)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in found:
            entry = zipfile.ZipInfo(name, _STAMP)
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, (root / name).read_bytes(), zipfile.ZIP_DEFLATED)
    return found


def table_of(files: Mapping[str, int], archive: Path) -> str:
    """Return the files with their sizes as a table for people."""
    lines = [f"{size:>9,}  {name}" for name, size in files.items()]
    total, packed = sum(files.values()), archive.stat().st_size
    return "\n".join([*lines, f"{len(files)} files, {total:,} bytes, {packed:,} packed"])


def _refuse_unfit(found: Mapping[str, int]) -> None:
    faults = [
        f"{IGNORE} leaves out {name}, and the app does not start without it" for name in REQUIRED if name not in found
    ]
    total = sum(found.values())
    if total > LARGEST:
        largest = max(found, key=lambda name: found[name])
        faults.append(f"the package has {total:,} bytes, more than {LARGEST:,}: {IGNORE} lets in {largest}")
    if faults:
        raise HookRefused(*faults)

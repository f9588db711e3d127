"""The files of the checkout: those that git knows or would add. A copy that has no git is a checkout too."""

import os
import shutil
from pathlib import Path

import pathspec

ROOT = Path(__file__).parents[1]


def files_of_checkout(root: Path = ROOT) -> list[str]:
    ignored = (root / ".gitignore").read_text(encoding="utf-8").splitlines()
    spec = pathspec.GitIgnoreSpec.from_lines([*ignored, ".git"])
    found: list[str] = []
    for folder, folders, files in os.walk(root):
        below = Path(folder).relative_to(root)
        folders[:] = [name for name in folders if not spec.match_file(f"{(below / name).as_posix()}/")]
        names = ((below / name).as_posix() for name in files)
        found += [name for name in names if not spec.match_file(name)]
    return sorted(found)


def copy_checkout(folder: Path, without: tuple[str, ...] = ()) -> Path:
    """Copy the files of the checkout into a folder, except those of some folders. Return the folder."""
    for name in (each for each in files_of_checkout() if not each.startswith(without)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder

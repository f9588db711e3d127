"""The files of the checkout: those that git knows or would add. A copy that has no git is a checkout too."""

import shutil
from pathlib import Path

import pathspec

ROOT = Path(__file__).parents[1]


def files_of_checkout(root: Path = ROOT) -> list[str]:
    """Return the names of the files that .gitignore lets in, sorted."""
    ignored = (root / ".gitignore").read_text(encoding="utf-8").splitlines()
    spec = pathspec.GitIgnoreSpec.from_lines([*ignored, ".git"])
    return sorted(set(spec.match_tree_files(root, negate=True, follow_links=False)))


def copy_checkout(folder: Path, without: tuple[str, ...] = ()) -> Path:
    """Copy the files of the checkout into a folder, except those of some folders; return the folder."""
    for name in (each for each in files_of_checkout() if not each.startswith(without)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder

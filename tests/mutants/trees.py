"""Copies of the checkout in a temporary folder, so that no mutant is ever planted in the checkout itself."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.checkout import copy_checkout
from tests.mutants.mutant import Mutant


def copy_trees(folder: Path, copies: int) -> Sequence[Path]:
    """Copy the files of the checkout, and compile them; return one tree for each job."""
    first = copy_checkout(folder / "0")
    _compile(first)
    return [first, *(Path(shutil.copytree(first, folder / str(place))) for place in range(1, copies))]


def _compile(tree: Path) -> None:
    """Compile the tree with hashes of the sources: a time stamp of one second would hide a mutant of equal length."""
    folders = ["core", "handlers", "jobs", "local", "tests", "function_app.py"]
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", *folders]
    subprocess.run(command, cwd=tree, check=True)


@contextmanager
def planted(mutant: Mutant, tree: Path) -> Iterator[None]:
    """Plant a mutant in a tree, and restore the file afterwards; ValueError when the mutant does not apply."""
    path = tree / mutant.path
    original = path.read_text(encoding="utf-8")
    path.write_text(mutant.planted(original), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(original, encoding="utf-8")

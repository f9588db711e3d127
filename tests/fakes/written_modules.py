"""Modules that a test writes, imports and forgets."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from core.model import rows

_numbers = count()


class WrittenModules:
    """A folder from which modules can be imported."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, text: str, name: str = "") -> str:
        """Write a module; return its name, which no other module has."""
        name = name or f"written_{next(_numbers)}"
        path = self.folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return name


@contextmanager
def written_modules(folder: Path) -> Iterator[WrittenModules]:
    """Make modules importable from a folder; afterwards, forget them and the row classes that they declared."""
    sys.path.insert(0, str(folder))
    known, declared = set(sys.modules), set(rows.declared())
    yield WrittenModules(folder)
    sys.path.remove(str(folder))
    for name in set(sys.modules) - known:
        del sys.modules[name]
    for row_class in set(rows.declared()) - declared:
        del rows._TABLES[row_class]

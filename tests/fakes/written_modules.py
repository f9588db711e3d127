"""Modules that a test writes, imports and forgets."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import ModuleType

from core.model import aggregates, rows

_numbers = count()


class WrittenModules:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, text: str, name: str = "") -> str:
        """Write a module. Return its name, which no other module has."""
        name = name or f"written_{next(_numbers)}"
        path = self.folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return name


ROOM = """
from dataclasses import dataclass
from core.model.rows import appended_to
VERSION = "1"
@appended_to("{table}")
@dataclass(frozen=True)
class Placed:
    number: int
def transform(event, references): return ()
"""


def broken_room(modules: WrittenModules, broken: str = "hours") -> str:
    """Write a room with a module of its aggregates that cannot be imported. Return the name of the room."""
    modules.write(ROOM.format(table="placed_in_a_broken_room"), "broken_room.transform")
    for name in ("__init__", "hours"):
        modules.write("Nobody\n" if name == broken else "", f"broken_room.aggregates.{name}")
    return "broken_room"


@contextmanager
def written_modules(folder: Path) -> Iterator[WrittenModules]:
    """Make modules importable from a folder. Afterwards, forget them and the classes that they declared."""
    sys.path.insert(0, str(folder))
    yield WrittenModules(folder)
    sys.path.remove(str(folder))
    forgotten = {name for name, module in sys.modules.items() if _is_below(folder, module)}
    for name in forgotten:
        del sys.modules[name]
    for registry in (rows._TABLES, aggregates._AGGREGATES, aggregates._ROLLUPS):
        for declared in [one for one in registry if one.__module__ in forgotten]:
            del registry[declared]


def _is_below(folder: Path, module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    places = [file] if file else list(getattr(module, "__path__", ()))
    return bool(places) and all(Path(place).is_relative_to(folder) for place in places)

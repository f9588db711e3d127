"""Rooms: the folders in which an app keeps its own code. `apps/orders/` and `examples/flight_info/` are rooms.

A room is a package with

    transform.py              the transform that TRANSFORM=apps.orders names
    aggregates/               modules that declare one aggregate each
    migrations/sqlite/        0001_orders.sql and later ones: a sequence of the room's own
    migrations/sqlserver/     the same names for SQL Server
    permissions.sql           the rights of the app and of the jobs on the room's tables, on SQL Server
    events.jsonl              sample events, one body a line

A release of Hubledger changes nothing in a room of `apps/`.
"""

import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

TRANSFORM, AGGREGATES, MIGRATIONS = "transform", "aggregates", "migrations"


@dataclass(frozen=True, slots=True)
class Room:
    """A package with migrations or aggregates of its own. `name` is the name of the package: "apps.orders"."""

    name: str
    folder: Path

    @property
    def aggregate_modules(self) -> tuple[str, ...]:
        """The names of the modules that declare the room's aggregates."""
        package = f"{self.name}.{AGGREGATES}"
        if find_spec(package) is None:
            return ()
        from core.transforms.contract.places import importing  # needed to load, not to index the app

        with importing(package):
            found = pkgutil.iter_modules(import_module(package).__path__)
        return tuple(f"{package}.{module.name}" for module in found)


def module_of(name: str) -> str:
    """Return the module of the transform that a setting names: a room's, or the named module itself."""
    try:
        spec = find_spec(f"{name}.{TRANSFORM}")
    except (ImportError, ValueError):  # no package of this name: the import says what is wrong
        return name
    return name if spec is None else spec.name


def full_name(name: str) -> str:
    """Return the name of a transform as a setting has it: `orders` stands for the room `apps.orders`, where it is."""
    room = f"apps.{name}"
    return room if "." not in name and module_of(room) != room else name


def rooms_of(row_classes: Iterable[type]) -> tuple[Room, ...]:
    """Return the rooms of the modules that declare these classes, each once, in their order."""
    found = (room_of(one.__module__) for one in row_classes)
    return tuple(dict.fromkeys(room for room in found if room is not None))


def room_of(module_name: str) -> Room | None:
    """Return the room of a module: the innermost package around it that has migrations or aggregates."""
    package = module_name
    while package := package.rpartition(".")[0]:
        for place in getattr(import_module(package), "__path__", ()):
            folder = Path(place)
            if (folder / MIGRATIONS).is_dir() or _has_modules(folder / AGGREGATES):
                return Room(package, folder)
    return None


def _has_modules(folder: Path) -> bool:
    """Return True for a folder with modules, also in the archive of a Spark job, where no path is a folder."""
    return any(True for _ in pkgutil.iter_modules([str(folder)]))

"""Load the room that TRANSFORM names: its transform, its row classes and its aggregates.

A room is a package with

    transform.py              the transform that TRANSFORM=apps.orders names
    aggregates/               modules that declare one aggregate each
    migrations/sqlite/        0001_orders.sql and later ones: a sequence of the room's own
    migrations/sqlserver/     the same names for SQL Server
    permissions.sql           the rights of the app and of the jobs on the room's tables, on SQL Server
    events.jsonl              sample events, one body a line

A release of Hubledger changes nothing in a room of `apps/`.

A transform module offers

    VERSION: str                                         at most 100 characters, named in the ledger and in letters
    def transform(event: Event, references: References) -> Iterable[Row]     or raise PoisonEvent("why")
    def references(event: Event) -> Iterable[ReferenceKey]                   optional: the rows it will look up
    def key_of(event: Event) -> str | None                                   optional: its key, in place of EVENT_KEY

The functions are pure: no clock, no I/O, no globals. They run in the trigger, in retry and in replay. The module names
every row class, also one that it imports: a replay retracts and an audit counts only their rows. A row class that is no
longer written stays in the module until a replay has retracted its rows.
"""

import pkgutil
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from core.errors import InvalidTransform
from core.model.aggregates import ADDED, Aggregate, aggregate_named, declared_aggregates
from core.model.event_keys import with_key
from core.model.rows import declared, row_table
from core.model.transforms import ROWS_LIMIT, Transform, Watch, unwatched
from core.transforms.contract import (
    KEY_OF,
    Fault,
    ModulePart,
    fault_of_column,
    fault_of_table,
    faults_of_form,
    importing,
    placed,
    row_classes_of,
)

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
            modules = pkgutil.iter_modules([str(folder / AGGREGATES)])  # in the archive of a job, no path is a folder
            if (folder / MIGRATIONS).is_dir() or any(True for _ in modules):
                return Room(package, folder)
    return None


def load_aggregates(row_classes: Sequence[type] | None = None) -> tuple[Aggregate, ...]:
    """Return the aggregates of these row classes, or of all that are declared, by name.

    Raises InvalidTransform with the line at which a module of theirs cannot be imported.
    """
    modules = aggregate_modules(declared() if row_classes is None else row_classes)
    for name in modules:
        import_aggregates(name)
    here = (one for one in declared_aggregates() if one.of.__module__ in modules)
    return tuple(one for one in here if row_classes is None or one.source in row_classes)


def import_aggregates(name: str) -> None:
    """Import a module that declares aggregates. Raises InvalidTransform with the line at which it fails."""
    with importing(name):
        import_module(name)


def aggregate_modules(row_classes: Sequence[type]) -> tuple[str, ...]:
    """Return the names of the modules that declare aggregates in the rooms of these row classes."""
    return tuple(name for room in rooms_of(row_classes) for name in room.aggregate_modules)


def find_aggregate(name: str) -> Aggregate:
    """Return the aggregate of a name, from the rooms of the declared row classes if no imported module declares it."""
    try:
        return aggregate_named(name)
    except InvalidTransform:
        load_aggregates()
        return aggregate_named(name)


def takes_signals() -> bool:
    """Return True in the thread that Python gives the signals of the process to."""
    return threading.current_thread() is threading.main_thread()


def load_transform(
    module_name: str, rows_limit: int = ROWS_LIMIT, watch: Watch = unwatched, event_key: str = ""
) -> Transform:
    """Import a transform module and the aggregates of its rows, with the limit of the rows of an event, the watch, and
    the key of events that EVENT_KEY names.

    Raises InvalidTransform with every fault of its form, and SettingsRefused where the module has a key of its own.
    """
    module = import_transform(module_name)
    if faults := list(faults_of_form(module)):
        raise InvalidTransform(*placed(faults), module=module_name)
    row_classes = row_classes_of(module)
    with importing(module_name, module_name):
        load_aggregates(row_classes)  # commits of rows need their keys: a fault would stop the first commit
    rows_of, references_of = module.transform, getattr(module, "references", None)
    own = Transform(module.VERSION, rows_of, references_of, row_classes, rows_limit, watch, takes_signals)
    key_of = getattr(module, KEY_OF, None)
    return with_key(own if key_of is None else replace(own, key_of=key_of, key_name=KEY_OF), event_key)


def import_transform(module_name: str) -> ModuleType:
    """Import the module of a transform. Raises InvalidTransform with the line at which it fails."""
    with importing(module_name, module_name):
        return import_module(module_of(module_name))


OUR_MIGRATIONS = Path(__file__).parents[2] / "sql" / "migrations"  # of Hubledger, and of no room
_CREATES = re.compile(r"CREATE TABLE hubledger\.(\w+)")


def check_transform(module_name: str) -> tuple[int, int]:
    """Check a transform whole. Return the numbers of its row classes and of the aggregates of their rows.

    Raises InvalidTransform with every fault, each with its file and line.
    """
    module = import_transform(module_name)
    row_classes = row_classes_of(module)
    faults = placed(faults_of_form(module))
    for name in aggregate_modules(row_classes):
        try:
            import_aggregates(name)
        except InvalidTransform as fault:
            faults += fault.faults
    if faults := [*faults, *placed(_faults_of_tables(row_classes))]:
        raise InvalidTransform(*dict.fromkeys(faults), module=module_name)
    return len(row_classes), len(load_aggregates(row_classes))


def _faults_of_tables(row_classes: tuple[type, ...]) -> Iterator[Fault]:
    """Yield the tables that belong to others, and the faults in the names of the columns of aggregates."""
    ours = {
        name for file in OUR_MIGRATIONS.glob("*.sql") for name in _CREATES.findall(file.read_text(encoding="utf-8"))
    }
    for each in row_classes:
        if (name := row_table(each).name).lower() in ours:
            part = ModulePart(sys.modules[each.__module__], (each.__name__,))
            yield part, f"{each.__name__}: the table {name} belongs to Hubledger: use a different one"
    rows = dict.fromkeys(ours, "Hubledger") | {row_table(each).name.lower(): each.__name__ for each in declared()}
    for one in (level for each in declared_aggregates() for level in each.levels):
        part, who = ModulePart(sys.modules[one.of.__module__], (one.of.__name__,)), one.of.__name__
        if (fault := fault_of_table(one.name) or fault_of_table(one.staged)) is not None:
            yield part, f"{who}: {fault}"
        for name in (one.name, one.staged):
            if (other := rows.setdefault(name.lower(), who)) != who:
                yield part, f"{who} and {other} have one table, {name}: name the aggregate differently"
    for one in declared_aggregates():
        taken = Counter(map(str.lower, (*one.columns, *ADDED)))
        for name in one.columns:
            part, who = ModulePart(sys.modules[one.of.__module__], (one.of.__name__, name)), one.of.__name__
            if (fault := fault_of_column(name)) is not None:
                yield part, f"{who}.{name}: {fault}"
            if name.lower() in ADDED:
                yield part, f"{who}.{name}: the store and the lake add a column of this name to {one.name}"
            elif taken[name.lower()] > 1:
                yield part, f"{who}.{name}: a second field differs only in case, and SQL has one column for both"

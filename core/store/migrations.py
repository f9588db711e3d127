"""Migrations: our sequence, and one of each room. They are read from folders, and compared with those of a database.

A row of `schema_migration` names the app that it belongs to: `hubledger` for ours, the package of a room for a room's.

A database changes such values in silence: the audit then finds commits whose rows differ from what they wrote.
Without a table or a column of the app's transform the store does not open, because no commit could succeed.
"""

import hashlib
import logging
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from core.errors import SchemaMismatch
from core.model.rows import declared, row_table, texts_of
from core.store.columns import fields_of, texts_json
from core.store.queries import SQL, schema_text
from core.transforms.contract import kind_of
from core.transforms.loading import MIGRATIONS, Room

OURS = "hubledger"
ENGINES = ("sqlite", "sqlserver")
BREAKING = "breaking_"  # the name of a migration begins with this when older code cannot run on its schema
APP_LIMIT, NAME_LIMIT = 200, 100  # characters
MIGRATE = "run `python -m core.store.migrate`"
ANEW = "make the database anew (docs/upgrading.md)"
_FILE = re.compile(r"(?P<version>\d{4})_(?P<name>[A-Za-z0-9_-]+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """A step of the schema: of a file, whose name begins with its version, or of a row of `schema_migration`, without
    its text. In the hash of the text, every line ends with LF on every system."""

    app: str
    version: int
    name: str
    text_hash: str
    text: str = ""

    @property
    def title(self) -> str:
        """The name that operators read: "0001 hubledger", or "apps.orders 0001 orders"."""
        return f"{self.version:04} {self.name}" if self.app == OURS else f"{self.app} {self.version:04} {self.name}"


@cache
def load_migrations(engine: str) -> tuple[Migration, ...]:
    """Return our migrations of an engine, in the order in which they apply."""
    return _read_folder(SQL / MIGRATIONS, OURS, lambda text: schema_text(text, engine))


def migrations_of(room: Room, engine: str) -> tuple[Migration, ...]:
    """Return the migrations of a room, in the order in which they apply, or none if the room has no such folder.

    Raises SchemaMismatch when the numbers have a gap, or the engines have different files.
    """
    folder = room.folder / MIGRATIONS
    if not folder.is_dir():
        return ()
    if len(room.name) > APP_LIMIT:
        raise SchemaMismatch(f"{folder}: the name of the package has more than {APP_LIMIT} characters")
    names = {}
    for each in ENGINES:
        if not (folder / each).is_dir():
            raise SchemaMismatch(f"{folder} has no folder {each}: write each migration for {' and '.join(ENGINES)}")
        names[each] = {path.name for path in _files_in(folder / each)}
    if differing := sorted(set.symmetric_difference(*names.values())):
        raise SchemaMismatch(
            f"{folder} has {', '.join(differing)} for one engine only: write each migration for {' and '.join(ENGINES)}"
        )
    return _read_folder(folder / engine, room.name)


def missing_migrations(
    place: str, engine: str, rooms: Iterable[Room], recorded: Sequence[Migration]
) -> tuple[Migration, ...]:
    """Return our migrations and those of the rooms that a database lacks, in order.

    Raises SchemaMismatch when the database has a migration that this code cannot run on, or cannot place.
    """
    sequences = {OURS: load_migrations(engine), **{room.name: migrations_of(room, engine) for room in rooms}}
    numbers = {(row.app, row.version) for row in recorded}
    missing = tuple(one for each in sequences.values() for one in each if (one.app, one.version) not in numbers)
    for row in recorded:
        if row.app in sequences:
            _demand_known(place, row, sequences[row.app], missing)
    return missing


def demand_current(place: str, engine: str, rooms: Iterable[Room], recorded: Sequence[Migration]) -> None:
    """Raise SchemaMismatch unless a database has our migrations and those of the rooms, and none that breaks them."""
    missing = missing_migrations(place, engine, rooms, recorded)
    lacking = [one for one in missing if one.app == OURS]
    if lacking:
        newest = load_migrations(engine)[-1].version
        raise SchemaMismatch(f"{place} is at schema {lacking[0].version - 1} of {newest}: {MIGRATE}")
    for one in missing:
        raise SchemaMismatch(f"{place} lacks migration {one.title}: {MIGRATE}")


def _files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _read_folder(folder: Path, app: str, compiled: Callable[[str], str] = str) -> tuple[Migration, ...]:
    found: list[Migration] = []
    for path in _files_in(folder):
        named = _FILE.fullmatch(path.name)
        if named is None or len(named["name"]) > NAME_LIMIT:
            raise SchemaMismatch(
                f"{path}: a migration is a file NNNN_name.sql of letters, digits, _ and -, such as 0001_orders.sql;"
                f" its name has at most {NAME_LIMIT} characters"
            )
        version = int(named["version"])
        if found and version == found[-1].version:
            raise SchemaMismatch(
                f"{path}: a second migration {version:04} beside {found[-1].name}; yours belongs to"
                " apps/NAME/migrations (docs/upgrading.md)"
            )
        if version != len(found) + 1:
            missing = f"migration {len(found) + 1:04} is missing"
            raise SchemaMismatch(f"{path}: {missing}; the numbers have no gap and begin with 0001")
        text = compiled(path.read_text(encoding="utf-8"))
        found.append(Migration(app, version, named["name"], hashlib.sha256(text.encode()).hexdigest(), text))
    return tuple(found)


def _demand_known(place: str, row: Migration, sequence: tuple[Migration, ...], missing: tuple[Migration, ...]) -> None:
    """Raise SchemaMismatch unless a row is one of its sequence, or a later one that changes nothing for this code."""
    newest = len(sequence)
    if row.version <= newest:
        ours = sequence[row.version - 1]
        if ours.name != row.name:
            raise SchemaMismatch(f"{place} has migration {row.title}, {_place_of(row, sequence)}")
        if ours.text_hash != row.text_hash:
            raise SchemaMismatch(
                f"{place} was made with a different text of migration {row.title}: give the file its old text,"
                f" or {ANEW}"
            )
        return
    if row.app == OURS and any(one.app == OURS for one in missing):  # a newer release would have recorded these
        raise SchemaMismatch(f"{place} has migration {row.title}, {_place_of(row, sequence)}")
    if row.name.startswith(BREAKING):
        raise SchemaMismatch(
            f"{place} has migration {row.title}, but this code knows only migrations up to {newest:04} and cannot run"
            " on it: deploy the newer code"
        )


def _place_of(row: Migration, sequence: tuple[Migration, ...]) -> str:
    if row.app == OURS:
        return "which is not one of Hubledger: yours belong to apps/NAME/migrations (docs/upgrading.md)"
    return f"but its file is named {row.version:04}_{sequence[row.version - 1].name}.sql: give the file its old name"


log = logging.getLogger("hubledger.store")


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column as the database describes it. Engines without precision and scale have 0.

    `needs_value`: the column takes no NULL and has no default, so an insert has to name it. `unique_in`: the numbers
    of the unique indexes that it is part of, with commas.
    """

    table: str
    name: str
    type: str
    precision: int
    scale: int
    collation: str | None
    needs_value: int = 0
    unique_in: str | None = None


_Columns = Mapping[tuple[str, str], StoredColumn]
Judge = Callable[[StoredColumn, type, bool], str | None]  # column, type of the values, is it part of a key: its fault


def check_columns(read: Callable[[str], Iterable[Sequence[Any]]], needed: Iterable[type], judge: Judge) -> None:
    """Log the columns of the declared row classes that change values in silence. `read` describes those of tables.

    Raises SchemaMismatch with every table and column that the rows of the `needed` classes lack.
    """
    found = [StoredColumn(*row) for row in read(texts_json(row_table(each).name for each in declared()))]
    columns = {(one.table.lower(), one.name.lower()): one for one in found}  # SQL compares names in any case
    if faults := [fault for each in needed for fault in _lacking(each, columns)]:
        raise SchemaMismatch(
            f"the tables do not fit the transform: {'; '.join(faults)}; add a migration (`bin/hubledger"
            " migrate-diff --transform NAME` writes it, docs/transforms.md), and run `python -m core.store.migrate`"
        )
    if misfits := [fault for each in declared() for fault in _misfits(each, columns, judge)]:
        facts = {"action": "check_columns", "columns": misfits}
        named = "; ".join(misfits)
        log.warning("columns change values that are sent to them; change their types: %s", named, extra=facts)


def _lacking(row_class: type, columns: _Columns) -> Iterable[str]:
    table = row_table(row_class)
    there = {name: one for (of, name), one in columns.items() if of == table.name.lower()}
    if not there:
        yield f"there is no table {table.name}, or the app has no right on it"
        return
    wanted = (*table.lineage, *table.columns)
    yield from (f"{table.name} has no column {name}" for name in wanted if name.lower() not in there)
    for name in sorted(there.keys() - {name.lower() for name in wanted}):
        if there[name].needs_value:
            yield f"{table.name}.{name} needs a value, and {row_class.__name__} has no such field"
    unique: dict[str, set[str]] = defaultdict(set)  # the columns of each unique index; a view has no index to judge
    for name, column in there.items():
        for number in filter(None, (column.unique_in or "").split(",")):
            unique[number].add(name)
    if unique and {name.lower() for name in table.unique_by} not in unique.values():
        yield f"{table.name} is not unique by {', '.join(table.unique_by)}"


def _misfits(row_class: type, columns: _Columns, judge: Judge) -> Iterable[str]:
    table, texts = row_table(row_class), texts_of(row_class)
    for name, hint in fields_of(row_class):
        column = columns.get((table.name.lower(), name.lower()))
        kind = kind_of(hint)
        if column and name in texts and texts[name].ascii and column.type == "varchar":
            column = replace(column, type="nvarchar")  # it holds every text that the store lets through
        fault = judge(column, kind, name in table.key) if column and kind else None
        if fault is not None:
            yield f"{table.name}.{name} {fault}"

"""The tables that migrations make, as SQLite describes them, and those that declared classes want. Standing names are
in lower case."""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from core.model.aggregates import Aggregate, KeyColumn
from core.model.rows import Text, row_table, texts_of
from core.store.columns import fields_of, types_of
from core.store.migrations import load_migrations
from core.transforms.loading import MIGRATIONS
from hubledger.cli.ddl.tables import kind_of

_TABLES = "SELECT lower(name) FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
_MADE = "SELECT sql FROM sqlite_master WHERE type = ? AND lower(tbl_name) = ? AND sql IS NOT NULL ORDER BY name"
_HINDERS = "SELECT name FROM sqlite_master WHERE type = 'view' OR (type = 'trigger' AND lower(tbl_name) = ?)"
_COLUMNS = "SELECT lower(name), type, [notnull], dflt_value, pk, hidden FROM pragma_table_xinfo(?)"
_OF_LEVEL, _OF_STAGED = ("run_number", "slice"), ("staging_id", "slice", "run_id", "is_whole")


@dataclass(frozen=True, slots=True)
class StandingColumn:
    """A column of a table. `fills_itself`: it is computed or has a default, so that no row has to name it."""

    type: str
    is_required: bool
    fills_itself: bool = False


@dataclass(frozen=True, slots=True)
class SchemaTable:
    """A table with its columns by name, the names of its key, and the statements that made it.

    Without a `text` it cannot be copied.
    """

    columns: Mapping[str, StandingColumn]
    key: tuple[str, ...]
    text: str = ""
    indexes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables by name, the names of indexes, and the scripts that SQLite refuses.

    `unclear` has every word of those scripts: a table with such a name is not compared.
    """

    tables: Mapping[str, SchemaTable]
    indexes: frozenset[str]
    unread: tuple[str, ...] = ()
    unclear: frozenset[str] = frozenset()


def scripts_of(room_folder: Path) -> list[Path]:
    """Return the migrations of a room for SQLite in their order; none for a room that has none yet."""
    return sorted((room_folder / MIGRATIONS / "sqlite").glob("*.sql"))


def read_schema(scripts: Sequence[Path]) -> Schema:
    """Return what scripts make beside our own tables on SQLite, which runs them in memory."""
    unread, unclear = list[str](), set[str]()
    with closing(sqlite3.connect(":memory:")) as connection:
        for ours in load_migrations("sqlite"):
            connection.executescript(ours.text)
        before = _names(connection, "table")
        for path in scripts:
            text = path.read_text(encoding="utf-8-sig")
            try:
                connection.executescript(text)
            except sqlite3.Error as error:
                unread.append(f"sqlite/{path.name}: SQLite refuses it: {error}; mend it, or compare by hand")
                unclear.update(re.findall(r"\w+", text.lower()))
        names = _names(connection, "table") - before
        tables = {name: _table(connection, name) for name in names}
        return Schema(tables, frozenset(_names(connection, "index")), tuple(unread), frozenset(unclear))


def _names(connection: sqlite3.Connection, kind: str) -> set[str]:
    return {name for (name,) in connection.execute(_TABLES, [kind])}


def _table(connection: sqlite3.Connection, name: str) -> SchemaTable:
    found = connection.execute(_COLUMNS, [name]).fetchall()
    key = sorted((place, column) for column, _, _, _, place, _ in found if place)
    columns = {
        column: StandingColumn(kind.upper(), bool(required or place), default is not None or bool(hidden))
        for column, kind, required, default, place, hidden in found
    }
    indexes = tuple(sql for (sql,) in connection.execute(_MADE, ["index", name]))
    hinders = connection.execute(_HINDERS, [name]).fetchall()  # a copy loses its triggers, and breaks views
    ((text,),) = [("",)] if hinders else connection.execute(_MADE, ["table", name]).fetchall()
    return SchemaTable(columns, tuple(column for _, column in key), text, indexes)


@dataclass(frozen=True, slots=True)
class WantedColumn:
    """The column of a field: the type of its values beside None, and the length of a text."""

    name: str
    kind: type
    is_required: bool
    text: Text | None = None


@dataclass(frozen=True, slots=True)
class WantedTable:
    """A table of a class: the columns of its fields, those that the store fills, and the key.

    `of_rows`: a table of rows can get columns; the windows of an aggregate lack the values of a new one.
    """

    name: str
    who: str
    columns: tuple[WantedColumn, ...]
    of_store: tuple[str, ...]
    key: tuple[str, ...]
    of_rows: bool


def wanted_tables(row_classes: Sequence[type], aggregates: Sequence[Aggregate]) -> Mapping[str, WantedTable]:
    """Return all tables of a room by name, in lower case."""
    levels = [table for one in aggregates for table in _wanted_levels(one)]
    return {table.name.lower(): table for table in (*map(_wanted_rows, row_classes), *levels)}


def _wanted_rows(row_class: type) -> WantedTable:
    table, texts = row_table(row_class), texts_of(row_class)
    columns = tuple(
        WantedColumn(name, kind_of(hint), type(None) not in types_of(hint), texts.get(name))
        for name, hint in fields_of(row_class)
    )
    return WantedTable(table.name, row_class.__name__, columns, table.lineage, table.unique_by, of_rows=True)


def _wanted_levels(one: Aggregate) -> Iterator[WantedTable]:
    """Yield the table of each level, and the one in which its windows are staged."""
    for level in one.levels:
        who, staged_key = level.of.__name__, ("staging_id", "slice", *level.key)
        columns = tuple(_column_of(each) for each in level.keys)
        values = tuple(WantedColumn(each.name, each.holds, not each.is_optional) for each in level.measures)
        staged = tuple(WantedColumn(each.name, each.holds, each.kind == "count") for each in level.measures)
        yield WantedTable(level.name, who, (*columns, *values), _OF_LEVEL, level.key, of_rows=False)
        yield WantedTable(level.staged, who, (*columns, *staged), _OF_STAGED, staged_key, of_rows=False)


def _column_of(each: KeyColumn) -> WantedColumn:
    text = Text(each.length, each.ascii) if each.kind is str else None
    return WantedColumn(each.name, each.kind, is_required=True, text=text)

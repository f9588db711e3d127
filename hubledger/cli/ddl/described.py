"""The tables that scripts make on SQLite, as it describes them itself after it ran them in memory."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing

from core.store.migrations import load_migrations
from hubledger.cli.ddl.schema import Schema, SchemaScript, SchemaTable, StandingColumn, words_of

_TABLES = "SELECT lower(name) FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite!_%' ESCAPE '!'"
_MADE = "SELECT sql FROM sqlite_master WHERE type = ? AND lower(tbl_name) = ? AND sql IS NOT NULL ORDER BY name"
_HINDERS = "SELECT name FROM sqlite_master WHERE type = 'view' OR (type = 'trigger' AND lower(tbl_name) = ?)"
_COLUMNS = "SELECT lower(name), type, [notnull], dflt_value, pk, hidden FROM pragma_table_xinfo(?)"


def read_embedded(scripts: Iterable[SchemaScript]) -> Schema:
    """Return what scripts make beside our own tables; a script that SQLite refuses is unread."""
    unread, unclear = list[str](), set[str]()
    with closing(sqlite3.connect(":memory:")) as connection:
        for ours in load_migrations("sqlite"):
            connection.executescript(ours.text)
        before = _names(connection, "table")
        for script in scripts:
            try:
                connection.executescript(script.text)
            except sqlite3.Error as error:
                unread.append(f"{script.place}: SQLite refuses it: {error}; mend it, or compare by hand")
                unclear |= words_of(script.text)
        names = _names(connection, "table") - before
        tables = {name: _table(connection, name) for name in names}
        return Schema(tables, frozenset(_names(connection, "index")), tuple(unread), frozenset(unclear))


def _names(connection: sqlite3.Connection, kind: str) -> set[str]:
    return {name for (name,) in connection.execute(_TABLES, [kind])}


def _table(connection: sqlite3.Connection, name: str) -> SchemaTable:
    found = connection.execute(_COLUMNS, [name]).fetchall()
    key = sorted((place, column) for column, _, _, _, place, _ in found if place)
    columns = {
        column: StandingColumn(kind.upper(), bool(required or place), "", default is not None or bool(hidden))
        for column, kind, required, default, place, hidden in found
    }
    indexes = tuple(sql for (sql,) in connection.execute(_MADE, ["index", name]))
    hinders = connection.execute(_HINDERS, [name]).fetchall()  # a copy loses its triggers, and breaks views
    ((text,),) = [("",)] if hinders else connection.execute(_MADE, ["table", name]).fetchall()
    return SchemaTable(columns, tuple(column for _, column in key), text, indexes)

"""The schema of the embedded store: open a database, check its version, apply missing migrations.

A column has an affinity by its declared type (https://www.sqlite.org/datatype3.html, 3.1): the affinity of numbers
makes 7 of the text '007', and the affinity of texts makes '7' of the number 7.
"""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.columns import instant_text
from core.store.migrations import Migration, StoredColumn, demand_current, missing_migrations
from core.store.queries import load_queries
from core.transforms.loading import Room

_TEXT, _NONE, _ROUNDED = ("CHAR", "CLOB", "TEXT"), ("BLOB", "ANY"), ("REAL", "FLOA", "DOUB")

_TYPES: Mapping[type, str] = {str: "TEXT", Decimal: "TEXT", int: "INTEGER", bool: "INTEGER", float: "REAL"}


def misfit(column: StoredColumn, kind: type, is_key: bool) -> str | None:
    """Return the fault of a column, or None for one that stores every value of its type. Each stores an instant."""
    declared, wanted = column.type.upper(), _TYPES.get(kind)
    if "INT" in declared:
        affinity = "INTEGER"
    elif any(word in declared for word in _TEXT):
        affinity = "TEXT"
    elif not declared or any(word in declared for word in _NONE):
        affinity = "NONE"
    else:
        affinity = "REAL" if any(word in declared for word in _ROUNDED) else "NUMERIC"
    if wanted in (None, affinity) or affinity == "NONE" or (affinity in ("INTEGER", "NUMERIC") and wanted != "TEXT"):
        return None
    return f"is {column.type}: {wanted} holds every value"


BUSY_POLL = 0.01  # seconds


def open_checked(path: Path, busy_timeout: float, rooms: Iterable[Room] = ()) -> sqlite3.Connection:
    """Open a connection to a database. Raises SchemaMismatch when this code or a room cannot run on its schema."""
    if not path.exists():
        raise SchemaMismatch(f"{path} does not exist: create it with `python -m core.store.migrate`")
    connection = open_file(path, busy_timeout)
    try:
        demand_current(str(path), "sqlite", rooms, _recorded(connection))
    except BaseException:
        connection.close()
        raise
    return connection


def open_file(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """Open a connection in autocommit mode, durable at each commit. Raises StoreUnavailable when it is no database."""
    connection: sqlite3.Connection | None = None
    try:
        connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None, check_same_thread=False)
        _switch_to_wal(connection, busy_timeout)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error as error:
        if connection is not None:
            connection.close()
        raise StoreUnavailable(f"{path} cannot be opened: {error}") from error
    return connection


def _switch_to_wal(connection: sqlite3.Connection, busy_timeout: float) -> None:
    """Switch a database to WAL. SQLite itself does not wait here while another process creates the database."""
    deadline = time.monotonic() + busy_timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(BUSY_POLL)
        else:
            return


def migrate_sqlite(
    path: Path, rooms: Iterable[Room] = (), tell: Callable[[str], None] = lambda line: None
) -> list[Migration]:
    """Create or upgrade a database with our migrations, then those of the rooms. Return the applied ones.

    It is one transaction, and reports its steps when it is committed. Safe to run twice, and in two processes at once.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = open_file(path, busy_timeout=30.0)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(load_queries("sqlite")["create_schema_migration"].text)
        missing = missing_migrations(str(path), "sqlite", rooms, _recorded(connection))
        lines = [_apply(connection, one) for one in missing]
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{path} cannot be migrated: {error}") from error
    finally:
        connection.close()
    for line in lines:
        tell(line)
    return list(missing)


def _apply(connection: sqlite3.Connection, migration: Migration) -> str:
    """Apply and record a migration. Return the line to tell."""
    try:
        _run(connection, migration.text)
    except sqlite3.Error as error:
        failed = f"migration {migration.title} failed, and nothing of this run stays"
        raise sqlite3.OperationalError(f"{failed}: {error}") from error
    values = {"version": migration.version, "name": migration.name, "app": migration.app}
    values |= {"applied_at": instant_text(datetime.now(UTC)), "text_hash": migration.text_hash}
    connection.execute(load_queries("sqlite")["record_migration"].text, values)
    return f"applied {migration.title}"


def _run(connection: sqlite3.Connection, text: str) -> None:
    """Run the statements of a migration. It may not begin or end a transaction, because the whole run is one."""
    allowed = {sqlite3.SQLITE_TRANSACTION: sqlite3.SQLITE_DENY}
    connection.set_authorizer(lambda action, *_: allowed.get(action, sqlite3.SQLITE_OK))
    try:
        for statement in _statements(text):
            connection.execute(statement)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_AUTH:
            raise sqlite3.OperationalError("it must not begin or end a transaction") from error
        raise
    finally:
        connection.set_authorizer(None)


def _recorded(connection: sqlite3.Connection) -> list[Migration]:
    try:
        found = connection.execute(load_queries("sqlite")["read_migrations"].text).fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return []
    return [Migration(*row) for row in found]


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():  # the last one needs no semicolon
        yield statement

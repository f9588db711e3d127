"""The schema of the embedded store: open a database, check its version, apply missing migrations."""

import sqlite3
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from core.errors import SchemaMismatch, StoreUnavailable
from core.model.rows import declared
from core.store.columns import instant_text
from core.store.misfits import refuse_missing, tables_json, warn_of_misfits
from core.store.queries import Migration, load_migrations, load_queries, refuse_breaking
from core.store.sqlite.misfits import misfit

BUSY_POLL = 0.01  # seconds


def open_checked(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """Open a connection to a database; SchemaMismatch when this code cannot run on its schema."""
    if not path.exists():
        raise SchemaMismatch(f"{path} does not exist: create it with `python -m core.store.migrate`")
    connection = open_database(path, busy_timeout)
    try:
        _check_version(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def check_columns(connection: sqlite3.Connection, needed: Iterable[type] = ()) -> None:
    """Log the columns of the declared row classes that change values in silence.

    Raises SchemaMismatch when the rows of the `needed` classes have no table, or one that lacks columns.
    """
    tables = {"tables": tables_json(declared())}
    found = connection.execute(load_queries("sqlite")["read_row_columns"].text, tables).fetchall()
    refuse_missing(found, needed)
    warn_of_misfits(found, declared(), misfit)


def open_database(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """Open a connection in autocommit mode, durable at each commit; StoreUnavailable when the file is no database."""
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


def migrate_sqlite(path: Path) -> list[Migration]:
    """Create or upgrade a database; return the applied migrations. Safe to run twice, and in two processes at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = open_database(path, busy_timeout=30.0)
    try:
        connection.execute("BEGIN IMMEDIATE")
        applied = _apply_missing(connection, path)
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise StoreUnavailable(f"{path} cannot be migrated: {error}") from error
    finally:
        connection.close()
    return applied


def _apply_missing(connection: sqlite3.Connection, path: Path) -> list[Migration]:
    queries = load_queries("sqlite")
    connection.execute(queries["create_schema_migration"].text)
    version = _version(connection) or 0
    _refuse_newer(connection, version, path)
    missing = [migration for migration in load_migrations("sqlite") if migration.version > version]
    for migration in missing:
        for statement in _statements(migration.text):
            connection.execute(statement)
        now = instant_text(datetime.now(UTC))
        values = {"version": migration.version, "name": migration.name, "applied_at": now}
        connection.execute(queries["record_migration"].text, values)
    return missing


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    try:
        version = _version(connection) or 0
    except sqlite3.OperationalError:
        version = 0
    _refuse_newer(connection, version, path)
    wanted = load_migrations("sqlite")[-1].version
    if version < wanted:
        raise SchemaMismatch(f"{path} is at schema {version} of {wanted}: run `python -m core.store.migrate`")


def _refuse_newer(connection: sqlite3.Connection, version: int, path: Path) -> None:
    newest = load_migrations("sqlite")[-1].version
    if version > newest:
        newer = connection.execute(load_queries("sqlite")["read_newer_migrations"].text, {"version": newest})
        refuse_breaking(str(path), newer.fetchall(), newest)


def _version(connection: sqlite3.Connection) -> int | None:
    found = connection.execute(load_queries("sqlite")["read_schema_version"].text).fetchone()
    return None if found is None else found[0]


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""

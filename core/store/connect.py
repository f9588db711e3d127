"""The database that a connection string names."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from core.errors import SettingsRefused
from core.store.database import Database, PatientDatabase

EMBEDDED = "sqlite:"
SERVER_WORDS = ("driver=", "dsn=")  # one of them is in every ODBC connection string
OPERATORS_PATIENCE = timedelta(seconds=3)  # shorter than the first pause after a lost connection


def read_store_connection(environment: Mapping[str, str]) -> str:
    """Return the setting STORE_CONNECTION; SettingsRefused when it is missing or wrong."""
    value = environment.get("STORE_CONNECTION") or ""
    if not value:
        raise SettingsRefused(["STORE_CONNECTION must be set"])
    server = any(word in value.lower().replace(" ", "") for word in SERVER_WORDS)
    if not server and (not value.startswith(EMBEDDED) or value == EMBEDDED):
        raise SettingsRefused(
            [f"STORE_CONNECTION must be {EMBEDDED}PATH (the embedded store in a file) or an ODBC connection string"]
        )
    return value


def embedded_path(store_connection: str) -> Path | None:
    """Return the file of the embedded store, or None for a server."""
    path = store_connection.removeprefix(EMBEDDED)
    return None if path == store_connection else Path(path)


def open_database(store_connection: str, needed: tuple[type, ...] = ()) -> Database:
    """Return the database; it connects on first use, and reports its faults then.

    It is a fault too when the `needed` row classes have no fitting tables.
    """
    path = embedded_path(store_connection)
    if path is not None:
        from core.store.sqlite.database import SqliteDatabase

        return SqliteDatabase(path, needed=needed)
    from core.store.sqlserver.database import SqlServerDatabase

    return SqlServerDatabase(store_connection, needed=needed)


def briefly_patient(database: Database, patience: timedelta) -> Database:
    """Return the database for the calls of operators and of timers: a deadlock or a short fault is retried.

    A lost connection needs a longer pause than a person should wait, so it is a fault at once.
    """
    return PatientDatabase(database, min(patience, OPERATORS_PATIENCE))

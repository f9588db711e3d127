"""The database that a connection string names."""

from datetime import timedelta

from core.model.policies import embedded_path
from core.store.database import Database, PatientDatabase

OPERATORS_PATIENCE = timedelta(seconds=3)  # shorter than the first pause after a lost connection


def open_database(store_connection: str, needed: tuple[type, ...] = ()) -> Database:
    """Return the database. It connects on first use, and reports its faults then.

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

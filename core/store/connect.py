"""Open the database that the settings name."""

from core.settings import Settings, embedded_path
from core.store.database import Database


def open_database(settings: Settings) -> Database:
    """Return a database ready for use; it connects on first use, and says then what is wrong with it."""
    path = embedded_path(settings.store_connection)
    if path is not None:
        from core.store.sqlite.database import SqliteDatabase

        return SqliteDatabase(path)
    from core.store.sqlserver.database import SqlServerDatabase

    return SqlServerDatabase(settings.store_connection)

"""SQLite in memory with all migrations: the embedded store without a file."""

import sqlite3
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from core.store.sqlite.schema import migrate_sqlite
from core.transforms.rooms import Room


@cache
def migrated(rooms: tuple[Room, ...] = ()) -> bytes:
    """Return a database with our migrations and those of rooms.

    It is made once in a process, because migrations take longer than most tests.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        migrate_sqlite(path, rooms)
        return path.read_bytes()


def memory_connection(rooms: tuple[Room, ...] = ()) -> sqlite3.Connection:
    """Return a connection to a new, migrated database in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.deserialize(_without_wal(migrated(rooms)))
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _without_wal(database: bytes) -> bytes:
    """Return a database whose header asks for no write-ahead log, which memory cannot have."""
    return database[:18] + b"\x01\x01" + database[20:]

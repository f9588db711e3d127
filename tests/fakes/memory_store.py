"""The store over SQLite in memory: the statements and scripts of the embedded engine, without a file."""

import weakref
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from core.store.sqlite.database import SqliteDatabase
from local.trials.replay_identity import memory_connection
from tests.fakes.rooms import EXAMPLES, Rooms
from tests.fakes.sqlite_eyes import SqliteEyes
from tests.fakes.store import Store


class MemoryStore(Store, SqliteEyes):
    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC), rooms: Rooms = EXAMPLES) -> None:
        self._connection = connection = memory_connection(rooms)
        database = SqliteDatabase(Path(":memory:"), connect=lambda: connection, now=now)
        weakref.finalize(database, connection.close)
        super().__init__(database)

    def note_statements(self, note: Callable[[str], object]) -> None:
        self._connection.set_trace_callback(note)

    def image(self) -> bytes:
        return self._connection.serialize()

    def open(self) -> Store:
        return self

    def close(self) -> None:
        """Keep the database: other owners share this object."""

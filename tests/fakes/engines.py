"""The engines under the contract of the store, each with a reader of the rows that it wrote."""

import sqlite3
import weakref
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Protocol

import pytest

from core.errors import DataRefused, InvalidTransform
from core.model.policies import EMBEDDED
from core.store.script import Outcome, Script
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite
from core.store.sqlserver.batch import run_batch
from local.trials.replay_identity import memory_connection
from tests.fakes.kept import PersistentEngine
from tests.fakes.lengths import enforce_lengths
from tests.fakes.rooms import EXAMPLES, Rooms
from tests.fakes.server_engine import CONNECTION, SqlServerEngine
from tests.fakes.sqlite_eyes import SqliteEyes
from tests.fakes.store import Store


class Compiled(SqliteDatabase):
    """A database that also compiles each script for SQL Server, where a parameter that steps share has one value."""

    def run(self, script: Script, rehearse: bool = False) -> Outcome:
        with suppress(DataRefused, InvalidTransform):
            run_batch(script, rehearse)
        return super().run(script, rehearse)


class SqliteEngine(SqliteEyes, PersistentEngine):
    """A migrated database in a file, read through a separate connection."""

    def __init__(self, path: Path, rooms: Rooms = EXAMPLES) -> None:
        self.path = path
        if path.exists():
            migrate_sqlite(path, rooms)
        else:
            path.write_bytes(_limited(rooms))
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._opened: list[SqliteDatabase] = []
        weakref.finalize(self, _close, self._connection, self._opened)

    def open(self) -> Store:
        return Store(self.database())

    def database(self) -> SqliteDatabase:
        self._opened.append(Compiled(self.path))
        return self._opened[-1]

    def environment(self) -> dict[str, str]:
        return {"STORE_CONNECTION": f"{EMBEDDED}{self.path}"}


@cache
def _limited(rooms: Rooms) -> bytes:
    """Return a migrated database whose texts are as long as those of a server."""
    with closing(memory_connection(rooms)) as connection:
        enforce_lengths(connection)
        database = connection.serialize()
    return database[:18] + b"\x02\x02" + database[20:]  # with a write-ahead log, which memory cannot have


def _close(connection: sqlite3.Connection, opened: list[SqliteDatabase]) -> None:
    connection.close()
    for database in opened:
        database.close()


class Opening(Protocol):
    """Makes an empty database of an engine in a folder, with the tables of these rooms."""

    def __call__(self, place: Path, rooms: Rooms = EXAMPLES, /) -> PersistentEngine: ...


ENGINES: dict[str, Opening] = {
    "sqlite": lambda place, rooms=EXAMPLES: SqliteEngine(place / "store.db", rooms),
    "sqlserver": lambda _, rooms=EXAMPLES: SqlServerEngine.on(CONNECTION, rooms),
}
EACH_ENGINE = ("sqlite", pytest.param("sqlserver", marks=pytest.mark.server))

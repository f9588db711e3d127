"""The engines under the contract of the store, each with a reader of its rows.

The T-SQL server is the one that MSSQL_CONNECTION names.
"""

import atexit
import os
import re
import secrets
import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pytest

from core.errors import DataRefused, InvalidTransform
from core.model.commits import PartitionState
from core.model.events import Event
from core.model.policies import EMBEDDED
from core.store.script import Outcome, Script
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite
from core.store.sqlserver.batch import run_batch
from core.store.sqlserver.connections import LongText, Session, connect
from core.store.sqlserver.database import SqlServerDatabase
from core.store.sqlserver.schema import in_schema, migrate_server
from local.trials.replay_identity import memory_connection
from tests.fakes.kept import SERVER, STAGED, PersistentEngine, SqliteEyes, staged_values
from tests.fakes.lengths import enforce_lengths
from tests.fakes.rooms import EXAMPLES, Rooms, all_migrations
from tests.fakes.store import Store

CONNECTION = os.environ.get("MSSQL_CONNECTION", "")


@dataclass(frozen=True, slots=True)
class SqlServerEngine(PersistentEngine):
    """The process's own schema, emptied. Tests read it through a separate connection."""

    dialect = SERVER
    connection_string: str
    schema: str
    session: Session

    @staticmethod
    def on(connection_string: str, rooms: Rooms = EXAMPLES) -> "SqlServerEngine":
        schema = shared_schema(connection_string, rooms)
        session = _shared_session(connection_string)
        empty_schema(session, schema, rooms)
        return SqlServerEngine(connection_string, schema, session)

    def open(self) -> Store:
        return Store(SqlServerDatabase(self.connection_string, schema=self.schema))

    def environment(self) -> dict[str, str]:
        return {"STORE_CONNECTION": self.connection_string, "STORE_SCHEMA": self.schema}

    def read_in_order(self, text: str, order: str) -> list[Any]:
        place = "ORDER BY t.stream_id, LEN(t.partition_id), t.partition_id"
        read = f"SET NOCOUNT ON; {text.format(p=f'{self.schema}.')} {place}, {order};"
        return self.session.run(read)[-1]

    def stage(self, state: PartitionState, events: Iterable[Event]) -> None:
        for event in events:
            values = list(staged_values(state, event))
            values[4] = str(values[4]).removesuffix("Z")
            marks = "?, ?, ?, ?, ?, ?, ?, CONVERT(varbinary(max), ?, 2)"
            text = f"SET NOCOUNT ON; INSERT INTO {self.schema}.staged_event ({', '.join(STAGED)}) VALUES ({marks});"
            self.session.run(text, [*values[:6], LongText(values[6]), LongText(event.body.hex())])

    def by_hand(self, statement: str) -> list[tuple[object, ...]]:
        placed = re.sub(r"\b(FROM|INTO|UPDATE) (\w+)", rf"\1 {self.schema}.\2", statement)
        without_zones = re.sub(r"(:\d\d\.\d{6})Z'", r"\1'", placed)
        results = self.session.run(f"SET NOCOUNT ON; {without_zones};")
        return results[-1] if results else []


_shared_session = cache(connect)


@cache
def tables_of(rooms: Rooms = EXAMPLES) -> tuple[str, ...]:
    standing: dict[str, None] = {}
    for migration in all_migrations("sqlserver", rooms):
        for verb, table in re.findall(r"(CREATE|DROP) TABLE (?:IF EXISTS )?hubledger\.(\w+)", migration.text):
            standing.pop(table, None)
            if verb == "CREATE":
                standing[table] = None
    return tuple(standing)


TABLES = tables_of()


def shared_schema(connection_string: str = CONNECTION, rooms: Rooms = EXAMPLES) -> str:
    """Return the schema for all tests of this process with these rooms. The process drops it when it ends."""
    return _made_schema(connection_string, rooms)


@cache
def _made_schema(connection_string: str, rooms: Rooms) -> str:
    schema = f"hubledger_test_{secrets.token_hex(4)}"
    migrate_server(connection_string, schema, rooms=rooms)
    atexit.register(drop_schema, connection_string, schema, rooms)
    return schema


def empty_schema(session: Session, schema: str, rooms: Rooms = EXAMPLES) -> None:
    session.run("SET NOCOUNT ON; " + " ".join(f"DELETE FROM {schema}.{table};" for table in reversed(tables_of(rooms))))


def drop_schema(connection_string: str, schema: str, rooms: Rooms = EXAMPLES) -> None:
    session = connect(connection_string)
    for table in [*reversed(tables_of(rooms)), "schema_migration"]:
        session.run(f"IF OBJECT_ID(N'{schema}.{table}', N'U') IS NOT NULL DROP TABLE {schema}.{table};")
    session.run(f"IF SCHEMA_ID(N'{schema}') IS NOT NULL EXEC(N'DROP SCHEMA {schema}');")
    session.close()


@contextmanager
def under_way(*texts: str, values: Sequence[Any] = ()) -> Iterator[Session]:
    """A transaction that ran these batches on a session of its own and has not ended. It is rolled back."""
    session = connect(CONNECTION)
    try:
        session.run("SET NOCOUNT ON; BEGIN TRANSACTION;")  # a batch that commits ends within this one
        for text in texts:
            session.run(in_schema(f"SET NOCOUNT ON; {text}", shared_schema()), list(values))
        yield session
    finally:
        session.run("SET NOCOUNT ON; IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION;")
        session.close()


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

"""The T-SQL server that MSSQL_CONNECTION names, as an engine of the contract suite."""

import atexit
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from core.model.commits import PartitionState
from core.model.events import Event
from core.store.sqlserver.connections import LongText, Session, connect
from core.store.sqlserver.database import SqlServerDatabase
from core.store.sqlserver.schema import in_schema, migrate_server
from tests.fakes.kept import SERVER, STAGED, PersistentEngine, staged_values
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

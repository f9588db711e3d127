"""A separate schema on a T-SQL server: created with a random name, migrated, emptied, and dropped with its content."""

import atexit
import re
import secrets
from functools import cache

from core.store.sqlserver.connections import Session, connect
from core.store.sqlserver.schema import migrate_server
from tests.fakes.rooms import EXAMPLES, Rooms, all_migrations


@cache
def tables_of(rooms: Rooms = EXAMPLES) -> tuple[str, ...]:
    """Return our tables and those of rooms, in the order in which they are created."""
    standing: dict[str, None] = {}
    for migration in all_migrations("sqlserver", rooms):
        for verb, table in re.findall(r"(CREATE|DROP) TABLE (?:IF EXISTS )?hubledger\.(\w+)", migration.text):
            standing.pop(table, None)
            if verb == "CREATE":
                standing[table] = None
    return tuple(standing)


TABLES = tables_of()


@cache
def shared_schema(connection_string: str, rooms: Rooms = EXAMPLES) -> str:
    """Return the schema for all tests of this process with these rooms; the process drops it when it ends."""
    schema = f"hubledger_test_{secrets.token_hex(4)}"
    migrate_server(connection_string, schema, rooms=rooms)
    atexit.register(drop_schema, connection_string, schema, rooms)
    return schema


def empty_schema(session: Session, schema: str, rooms: Rooms = EXAMPLES) -> None:
    """Delete every row except the list of migrations, referring rows first."""
    session.run("SET NOCOUNT ON; " + " ".join(f"DELETE FROM {schema}.{table};" for table in reversed(tables_of(rooms))))


def drop_schema(connection_string: str, schema: str, rooms: Rooms = EXAMPLES) -> None:
    """Drop the schema with its content, if it exists."""
    session = connect(connection_string)
    for table in [*reversed(tables_of(rooms)), "schema_migration"]:
        session.run(f"IF OBJECT_ID(N'{schema}.{table}', N'U') IS NOT NULL DROP TABLE {schema}.{table};")
    session.run(f"IF SCHEMA_ID(N'{schema}') IS NOT NULL EXEC(N'DROP SCHEMA {schema}');")
    session.close()

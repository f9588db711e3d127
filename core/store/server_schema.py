"""The schema on SQL Server: check its version, apply what is missing under an application lock."""

import re
from datetime import UTC, datetime
from typing import Any

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.odbc import Deadlines, connect
from core.store.queries import SQL, Migration, load_migrations, load_queries
from core.store.records import server_instant_text
from core.store.server_commit import statement

_MISSING_OBJECT = "42S02"


def check_version(connection: Any, schema: str) -> None:
    """SchemaMismatch unless the database has exactly the migrations of this code."""
    import pyodbc

    try:
        version = _version(connection, schema)
    except pyodbc.ProgrammingError as error:
        if error.args[0] != _MISSING_OBJECT:
            raise
        version = 0
    newest = load_migrations("sqlserver")[-1].version
    if version > newest:
        raise SchemaMismatch(
            f"the database is at schema {version}, this code knows up to {newest}: deploy the newer code"
        )
    if version < newest:
        raise SchemaMismatch(f"the database is at schema {version} of {newest}: run `python -m core.store.migrate`")


def migrate_server(connection_string: str, schema: str = "hubledger") -> list[Migration]:
    """Create or upgrade the schema; return what was applied. Of two at once, the second waits and finds it done."""
    import pyodbc

    connection = connect(connection_string, Deadlines())
    try:
        connection.autocommit = False
        return _apply_locked(connection, schema)
    except pyodbc.Error as error:
        raise StoreUnavailable(f"the database cannot be migrated: {error.args[-1]}") from error
    finally:
        connection.close()


def _apply_locked(connection: Any, schema: str) -> list[Migration]:
    cursor = connection.cursor()
    cursor.execute((SQL / "sqlserver" / "lock_migrations.sql").read_text(encoding="utf-8"))
    cursor.execute((SQL / "sqlserver" / "create_schema.sql").read_text(encoding="utf-8").replace("hubledger", schema))
    queries = load_queries("sqlserver")
    cursor.execute(in_schema(queries["create_schema_migration"].text, schema))
    version = _version(connection, schema)
    missing = [one for one in load_migrations("sqlserver") if one.version > version]
    record = queries["record_migration"]
    for migration in missing:
        cursor.execute(in_schema(migration.text, schema))
        now = server_instant_text(datetime.now(UTC))
        cursor.execute(in_schema(statement(record.text, record.params), schema), migration.version, migration.name, now)
    connection.commit()
    return missing


def in_schema(text: str, schema: str) -> str:
    """The same text for another schema."""
    return re.sub(r"\bhubledger\.", f"{schema}.", text)


def _version(connection: Any, schema: str) -> int:
    found = (
        connection.cursor().execute(in_schema(load_queries("sqlserver")["read_schema_version"].text, schema)).fetchone()
    )
    return int(found[0] or 0)

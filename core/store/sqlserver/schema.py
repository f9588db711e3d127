"""The schema on SQL Server: check its version, apply missing migrations under an application lock."""

import re
from datetime import UTC, datetime
from typing import Any

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.queries import SQL, Migration, load_migrations, refuse_breaking
from core.store.sqlserver.batch import ask_batch
from core.store.sqlserver.faults import misses_object
from core.store.sqlserver.json import server_instant_text
from core.store.sqlserver.odbc import Access, Session, connect

SCHEMA = "hubledger"
_NAME = re.compile(rf"\b{SCHEMA}\b(?=[.'])")  # as a prefix, or at the end of a quoted text


def check_version(session: Session, schema: str) -> None:
    """Raise SchemaMismatch unless the database has all migrations of this code, and no newer one that breaks it."""
    try:
        version = _version(session, schema)
    except session.fault as error:
        if not misses_object(error):
            raise
        version = 0
    newest = load_migrations("sqlserver")[-1].version
    if version < newest:
        raise SchemaMismatch(f"the database is at schema {version} of {newest}: run `python -m core.store.migrate`")
    if version > newest:
        refuse_breaking("the database", _newer(session, schema, newest), newest)


def migrate_server(connection_string: str, schema: str = SCHEMA, access: Access | None = None) -> list[Migration]:
    """Create or upgrade the schema; return the applied migrations.

    If two processes do so at once, the second one waits and finds it done. The transaction is opened and committed by
    our own statements. With autocommit off, the driver would open one only at the first read or write of a table, too
    late for the application lock.
    """
    session = connect(connection_string, access=access)
    try:
        return _apply_locked(session, schema)
    except session.fault as error:
        raise StoreUnavailable(f"the database cannot be migrated: {error.args[-1]}") from error
    finally:
        session.close()


def in_schema(text: str, schema: str) -> str:
    """Return the same text for a different schema."""
    return text if schema == SCHEMA else _NAME.sub(schema, text)


def _apply_locked(session: Session, schema: str) -> list[Migration]:
    session.run(_script("lock_migrations"))
    session.run(in_schema(_script("create_schema"), schema))
    _ask(session, schema, "create_schema_migration")
    version = _version(session, schema)
    if version > (newest := load_migrations("sqlserver")[-1].version):
        refuse_breaking("the database", _newer(session, schema, newest), newest)
    missing = [one for one in load_migrations("sqlserver") if one.version > version]
    for migration in missing:
        session.run(in_schema(f"SET NOCOUNT ON;\n{migration.text}", schema))
        now = server_instant_text(datetime.now(UTC))
        _ask(session, schema, "record_migration", version=migration.version, name=migration.name, applied_at=now)
    session.run(_script("commit_migrations"))
    return missing


def _version(session: Session, schema: str) -> int:
    return int(_ask(session, schema, "read_schema_version")[0][0] or 0)


def _newer(session: Session, schema: str, version: int) -> list[tuple[int, str]]:
    return [
        (int(number), str(name)) for number, name in _ask(session, schema, "read_newer_migrations", version=version)
    ]


def _ask(session: Session, schema: str, statement: str, **values: Any) -> list[tuple[Any, ...]]:
    text, given = ask_batch(statement, values)
    results = session.run(in_schema(text, schema), given)
    return results[-1] if results else []


def _script(name: str) -> str:
    return (SQL / "sqlserver" / f"{name}.sql").read_text(encoding="utf-8")

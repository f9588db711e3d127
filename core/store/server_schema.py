"""The schema on SQL Server: check its version, apply what is missing under an application lock."""

import re
from datetime import UTC, datetime

from core.errors import SchemaMismatch, StoreUnavailable
from core.store.faults import misses_object
from core.store.odbc import Access, Session, connect
from core.store.queries import SQL, Migration, load_migrations, load_queries, refuse_breaking
from core.store.records import server_instant_text
from core.store.server_commit import statement

SCHEMA = "hubledger"
_NAME = re.compile(rf"\b{SCHEMA}\b(?=[.'])")  # as a prefix, or at the end of a quoted text


def check_version(session: Session, schema: str) -> None:
    """SchemaMismatch unless the database has the migrations of this code, and none beyond them that breaks it."""
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
    """Create or upgrade the schema; return what was applied. Of two at once, the second waits and finds it done.

    One transaction, opened and committed by statements of ours: with autocommit off, the driver opens one only when a
    table is first read or written, and the lock before that would belong to none.
    """
    session = connect(connection_string, access=access)
    try:
        return _apply_locked(session, schema)
    except session.fault as error:
        raise StoreUnavailable(f"the database cannot be migrated: {error.args[-1]}") from error
    finally:
        session.close()


def in_schema(text: str, schema: str) -> str:
    """The same text for another schema."""
    return text if schema == SCHEMA else _NAME.sub(schema, text)


def _apply_locked(session: Session, schema: str) -> list[Migration]:
    queries = load_queries("sqlserver")
    record = queries["record_migration"]
    session.run(_script("lock_migrations"))
    session.run(in_schema(_script("create_schema"), schema))
    session.run(in_schema(statement(queries["create_schema_migration"].text, ()), schema))
    version = _version(session, schema)
    if version > (newest := load_migrations("sqlserver")[-1].version):
        refuse_breaking("the database", _newer(session, schema, newest), newest)
    missing = [one for one in load_migrations("sqlserver") if one.version > version]
    for migration in missing:
        session.run(in_schema(statement(migration.text, ()), schema))
        now = server_instant_text(datetime.now(UTC))
        recorded = in_schema(statement(record.text, record.params), schema)
        session.run(recorded, [migration.version, migration.name, now])
    session.run(_script("commit_migrations"))
    return missing


def _version(session: Session, schema: str) -> int:
    text = statement(load_queries("sqlserver")["read_schema_version"].text, ())
    return int(session.run(in_schema(text, schema))[0][0] or 0)


def _newer(session: Session, schema: str, version: int) -> list[tuple[int, str]]:
    query = load_queries("sqlserver")["read_newer_migrations"]
    found = session.run(in_schema(statement(query.text, query.params), schema), [version])
    return [(int(row[0]), str(row[1])) for row in found]


def _script(name: str) -> str:
    return (SQL / "sqlserver" / f"{name}.sql").read_text(encoding="utf-8")

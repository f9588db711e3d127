"""The schema on SQL Server: check its version, apply missing migrations under an application lock."""

import re
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from core.errors import SchemaMismatch, StoreUnavailable
from core.model.rows import declared
from core.store.misfits import refuse_missing, tables_json, warn_of_misfits
from core.store.queries import SQL, Migration, load_migrations, refuse_breaking
from core.store.sqlserver.batch import ask_batch
from core.store.sqlserver.faults import misses_object, read_trouble
from core.store.sqlserver.json import server_instant_text
from core.store.sqlserver.misfits import misfit
from core.store.sqlserver.odbc import Access, Deadlines, Session, connect

SCHEMA = "hubledger"
MIGRATING = 51001  # lock_migrations.sql throws it
ONLINE = frozenset({3, 5, 8})  # Enterprise (and Developer, Evaluation), Azure SQL Database, Azure SQL Managed Instance
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


def check_columns(session: Session, schema: str, needed: Iterable[type] = ()) -> None:
    """Log the columns of the declared row classes that change values in silence.

    Raises SchemaMismatch when the rows of the `needed` classes have no table, or one that lacks columns.
    """
    found = _ask(session, schema, "read_row_columns", tables=tables_json(declared()))
    refuse_missing(found, needed)
    warn_of_misfits(found, declared(), misfit)


def migrate_server(
    connection_string: str,
    schema: str = SCHEMA,
    access: Access | None = None,
    tell: Callable[[str], None] = lambda line: None,
    wait: timedelta = timedelta(seconds=60),
) -> list[Migration]:
    """Create or upgrade the schema; return the applied migrations, and tell their progress line by line.

    Each migration is one transaction, so those that were applied stay when a later one fails. No statement has a
    deadline, because a grown table takes as long as it takes. If two processes migrate at once, the second one waits
    for the first, and raises StoreUnavailable after `wait`.
    """
    session = connect(connection_string, Deadlines(statement=None), access)
    try:
        _lock(session, tell, wait)
        return _apply_missing(session, schema, tell)
    except session.fault as error:
        raise StoreUnavailable(f"the database cannot be migrated: {error.args[-1]}") from error
    finally:
        session.close()


def in_schema(text: str, schema: str) -> str:
    """Return the same text for a different schema."""
    return text if schema == SCHEMA else _NAME.sub(schema, text)


def _lock(session: Session, tell: Callable[[str], None], wait: timedelta) -> None:
    if _locks(session, timedelta(0)):
        return
    tell(f"a different migration of this database is running: waiting for it, {wait.total_seconds():g} s at most")
    if not _locks(session, wait):
        raise StoreUnavailable(
            f"a different migration of this database did not end within {wait.total_seconds():g} s; this one changed"
            " nothing: run `python -m core.store.migrate` again when the other has ended"
        )


def _locks(session: Session, wait: timedelta) -> bool:
    try:
        session.run(_script("lock_migrations"), [wait // timedelta(milliseconds=1)])
    except session.fault as error:
        if read_trouble(error).number == MIGRATING:
            return False
        raise
    return True


def _apply_missing(session: Session, schema: str, tell: Callable[[str], None]) -> list[Migration]:
    session.run(in_schema(_script("create_schema"), schema))
    _ask(session, schema, "create_schema_migration")
    version = _version(session, schema)
    if version > (newest := load_migrations("sqlserver")[-1].version):
        refuse_breaking("the database", _newer(session, schema, newest), newest)
    missing = [one for one in load_migrations("sqlserver") if one.version > version]
    is_online = bool(missing) and session.run(_script("engine_edition"))[-1][0][0] in ONLINE
    for migration in missing:
        tell(f"applying {migration.title}")
        began = time.monotonic()
        try:
            _apply(session, schema, migration, is_online)
        except session.fault as error:
            raise StoreUnavailable(
                f"migration {migration.title} failed; the migrations before it stay applied: {error.args[-1]}"
            ) from error
        tell(f"applied {migration.title} in {time.monotonic() - began:.1f} s")
    return missing


def _apply(session: Session, schema: str, migration: Migration, is_online: bool) -> None:
    """Apply a migration in one transaction; an edition that cannot build indexes online builds them offline."""
    text = migration.text if is_online else migration.text.replace("ONLINE = ON", "ONLINE = OFF")
    session.run(_script("begin_migration"))
    session.run(in_schema(f"SET NOCOUNT ON;\n{text}", schema))
    now = server_instant_text(datetime.now(UTC))
    _ask(session, schema, "record_migration", version=migration.version, name=migration.name, applied_at=now)
    session.run(_script("commit_migration"))


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

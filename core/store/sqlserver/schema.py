"""The schema on SQL Server: check its version, apply missing migrations under an application lock."""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from core.errors import StoreMisconfigured, StoreUnavailable
from core.store.migrations import Migration, StoredColumn, demand_current, missing_migrations
from core.store.queries import SQL
from core.store.sqlserver.batch import ask_batch
from core.store.sqlserver.connections import Access, Deadlines, Session, connect
from core.store.sqlserver.faults import misses_object, read_trouble
from core.store.sqlserver.statements import PLACES, server_instant_text
from core.transforms.loading import Room

_HOLDS = {
    str: "nvarchar", int: "bigint", bool: "bit", float: "float", Decimal: f"decimal(38, {PLACES})",
    datetime: "datetime2(6)", date: "date",
}  # fmt: skip
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_EXACT = ("decimal", "numeric")
_UTF_8, _BINARY = "_UTF8", ("_BIN", "_BIN2", "_BIN2_UTF8")


def misfit(column: StoredColumn, kind: type, is_key: bool) -> str | None:
    """Return the fault of a column, or None for one that stores or refuses every value of its type."""
    if not _holds(column, kind):
        written = column.type
        if column.type in _EXACT:
            written = f"{column.type}({column.precision}, {column.scale})"
        elif column.type == "datetime2":
            written = f"datetime2({column.scale})"
        return f"is {written}: {_HOLDS[kind]} holds every value"
    if kind is str and is_key and not (column.collation or "").endswith(_BINARY):
        return f"has the collation {column.collation}: Latin1_General_100_BIN2 tells every two keys apart"
    return None


def _holds(column: StoredColumn, kind: type) -> bool:
    """Return False for a type that changes values. A number that is too large is refused, so it needs no rule."""
    if kind is str:
        return column.type == "nvarchar" or (column.type == "varchar" and _UTF_8 in (column.collation or ""))
    if kind is int:
        return column.type in (*_WHOLE, *_EXACT)
    if kind is bool:
        return column.type in ("bit", *_WHOLE)
    if kind is Decimal:
        return column.type in _EXACT and column.scale >= PLACES
    if kind is datetime:
        return column.type == "datetime2" and column.scale >= len("123456")
    return column.type == ("float" if kind is float else "date")


SCHEMA = "hubledger"
LEAST_LEVEL, NEWEST_LEVEL = 130, 160  # of compatibility: OPENJSON is there from the first; the second is of 2022
MIGRATING = 51001  # lock_migrations.sql throws it
ONLINE = frozenset({3, 5, 8})  # Enterprise (and Developer, Evaluation), Azure SQL Database, Azure SQL Managed Instance
PLACE = "the database"
_NAME = re.compile(rf"\b{SCHEMA}\b(?=\.|'\))")  # as a prefix, or at the end of the quoted text of a call


def check_version(session: Session, schema: str, rooms: Iterable[Room] = ()) -> None:
    """Raise SchemaMismatch when this code or a room cannot run on the schema of the database."""
    demand_current(PLACE, "sqlserver", rooms, _recorded(session, schema))


def open_session(session: Session) -> bool:
    """Bound the session's waits for locks. Return False if readers wait for writers in this database.

    Raises StoreMisconfigured for a database whose compatibility level lacks OPENJSON: the statements would miss an
    object that no migration brings.
    """
    results = session.run(_script("open_session"))
    name, level, has_row_versions = results[-1][0] if results else ("", LEAST_LEVEL, 1)
    if level < LEAST_LEVEL:
        raise StoreMisconfigured(
            f"the database {name} has the compatibility level {level}, and the statements need {LEAST_LEVEL} or more:"
            f" run ALTER DATABASE [{name}] SET COMPATIBILITY_LEVEL = {NEWEST_LEVEL}"
        )
    return bool(has_row_versions)


@dataclass(frozen=True, slots=True)
class MigrationRun:
    """The form of a run: it tells its progress line by line, and waits so long at most for a different run."""

    tell: Callable[[str], None] = lambda line: None
    wait: timedelta = timedelta(seconds=60)


def migrate_server(
    connection_string: str,
    schema: str = SCHEMA,
    access: Access | None = None,
    run: MigrationRun = MigrationRun(),
    rooms: Iterable[Room] = (),
) -> list[Migration]:
    """Create or upgrade the schema with our migrations, then those of the rooms. Return the applied ones.

    Each migration is one transaction, so those that were applied stay when a later one fails. No statement has a
    deadline, because a grown table takes as long as it takes. If two processes migrate at once, the second one waits
    for the first, and raises StoreUnavailable after the wait.
    """
    session = connect(connection_string, Deadlines(statement=None), access)
    try:
        if not _locks(session, timedelta(0)):
            longest = f"{run.wait.total_seconds():g} s"
            run.tell(f"a different migration of this database is running: waiting for it, {longest} at most")
            if not _locks(session, run.wait):
                raise StoreUnavailable(
                    f"a different migration of this database did not end within {longest}; this one changed"
                    " nothing: run `python -m core.store.migrate` again when the other has ended"
                )
        return _apply_missing(session, schema, rooms, run.tell)
    except session.fault as error:
        raise StoreUnavailable(f"the database cannot be migrated: {error.args[-1]}") from error
    finally:
        session.close()


def in_schema(text: str, schema: str) -> str:
    """Return the same text for a different schema."""
    return text if schema == SCHEMA else _NAME.sub(schema, text)


def _locks(session: Session, wait: timedelta) -> bool:
    try:
        session.run(_script("lock_migrations"), [wait // timedelta(milliseconds=1)])
    except session.fault as error:
        if read_trouble(error).number == MIGRATING:
            return False
        raise
    return True


def _apply_missing(
    session: Session, schema: str, rooms: Iterable[Room], tell: Callable[[str], None]
) -> list[Migration]:
    session.run(in_schema(_script("create_schema"), schema))
    ask_in(session, schema, "create_schema_migration")
    missing = missing_migrations(PLACE, "sqlserver", rooms, _recorded(session, schema))
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
    return list(missing)


def _apply(session: Session, schema: str, migration: Migration, is_online: bool) -> None:
    """Apply and record a migration in one transaction.

    An edition that cannot build indexes online builds them offline.
    """
    text = migration.text if is_online else migration.text.replace("ONLINE = ON", "ONLINE = OFF")
    session.run(_script("begin_migration"))
    session.run(in_schema(f"SET NOCOUNT ON;\n{text}", schema))
    now = server_instant_text(datetime.now(UTC))
    values = {"version": migration.version, "name": migration.name, "app": migration.app}
    ask_in(session, schema, "record_migration", **values, applied_at=now, text_hash=migration.text_hash)
    session.run(_script("commit_migration"))


def _recorded(session: Session, schema: str) -> list[Migration]:
    try:
        found = ask_in(session, schema, "read_migrations")
    except session.fault as error:
        if misses_object(error):
            return []
        raise
    return [Migration(*row) for row in found]


def ask_in(session: Session, schema: str, statement: str, **values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a named statement in a schema."""
    text, given = ask_batch(statement, values)
    results = session.run(in_schema(text, schema), given)
    return results[-1] if results else []


def _script(name: str) -> str:
    return (SQL / "sqlserver" / f"{name}.sql").read_text(encoding="utf-8")

"""The migrations and rights of a room: the same on both engines, with all that its classes and statements need."""

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from core.model.rows import row_table
from core.store.ddl.embedded_schema import read_embedded
from core.store.ddl.room import rights_text
from core.store.ddl.schema import Schema, scripts_of
from core.store.ddl.server_schema import read_server
from core.store.ddl.types import ENGINES
from core.store.explain import rights_of_statements
from core.store.migrations import migrations_of
from core.store.sqlite.database import SqliteDatabase
from core.transforms.aggregates import load_aggregates
from core.transforms.contract.whole import check_transform
from core.transforms.rooms import Room, rooms_of
from local.trials.memory import memory_connection
from tests.rooms.found import transform_of
from tests.sql.gates import gates
from tests.sql.grants import grants_of

READERS = {"sqlite": read_embedded, "sqlserver": read_server}


def test_the_transform_and_its_aggregates_have_no_fault(room: Room) -> None:
    check_transform(room.name)


def test_both_engines_have_the_same_migrations_from_0001_without_a_gap(room: Room) -> None:
    server, embedded = ([one.title for one in migrations_of(room, engine)] for engine in ("sqlserver", "sqlite"))
    assert server == embedded


def test_the_tables_of_a_new_embedded_store_fit_the_classes(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    row_classes = transform_of(room).row_classes
    connection = memory_connection(rooms_of(row_classes))
    with (
        closing(SqliteDatabase(Path(":memory:"), connect=lambda: connection, needed=row_classes)) as database,
        caplog.at_level(logging.WARNING),
    ):
        database.ask("read_migrations")
    found = [vars(record)["columns"] for record in caplog.records if vars(record).get("action") == "check_columns"]
    assert not found, f"columns of migrations/sqlite change values that are sent to them: {found}"


def test_the_migrations_of_each_engine_make_every_table_and_column(room: Room) -> None:
    faults = []
    for engine in ENGINES:
        scripts = [one for each in _rooms(room) for one in scripts_of(each.folder, engine)]
        schema = READERS[engine](scripts)
        faults += [*schema.unread, *(f"migrations/{engine}: {fault}" for fault in _missing(room, schema))]
    assert not faults, "\n".join(faults)


@pytest.mark.slow  # a parser of T-SQL starts slowly
def test_the_t_sql_parses(room: Room) -> None:
    if not gates():
        pytest.skip("no T-SQL parser is installed: make scriptdom, or pip install sqlfluff")
    texts = {f"migrations/sqlserver: {one.title}": one.text for one in migrations_of(room, "sqlserver")}
    texts |= {path.name: path.read_text(encoding="utf-8") for path in room.folder.glob("permissions.sql")}
    faults = [f"{name}: {fault}" for gate in gates().values() for name, found in gate(texts).items() for fault in found]
    assert not faults, "\n".join(faults)


def test_the_roles_are_granted_what_they_need(room: Room) -> None:
    row_classes = transform_of(room).row_classes
    own = set(_tables(room))
    scripts = [each.folder / "permissions.sql" for each in _rooms(room)]
    script = "\n".join(path.read_text(encoding="utf-8") for path in scripts if path.exists())
    wanted = rights_text(row_classes, load_aggregates(row_classes))
    needed = {
        "hubledger_app": {use for use in rights_of_statements(row_classes) if use.table in own},
        "hubledger_job": grants_of(wanted, "hubledger_job"),
    }
    faults = [
        f"permissions.sql: add GRANT {use.verb} ON hubledger.{use.table} TO {role};"
        for role, uses in needed.items()
        for use in sorted(uses - grants_of(script, role))
    ]
    assert not faults, "\n".join(faults)


def _rooms(room: Room) -> tuple[Room, ...]:
    """Return the rooms whose tables the transform writes."""
    return rooms_of(transform_of(room).row_classes)


def _tables(room: Room) -> dict[str, tuple[str, ...]]:
    """Return the columns of each table that the classes of a room need."""
    row_classes = transform_of(room).row_classes
    needed = {row_table(each).name: (*row_table(each).lineage, *row_table(each).columns) for each in row_classes}
    for level in (level for one in load_aggregates(row_classes) for level in one.levels):
        needed |= {level.name: (*level.columns, "run_number", "slice")}
        needed |= {level.staged: (*level.columns, "staging_id", "slice", "run_id", "is_whole")}
    return needed


def _missing(room: Room, schema: Schema) -> Iterator[str]:
    """Yield the tables and columns that a schema lacks; a table of a statement that was not understood is left out."""
    for table, columns in _tables(room).items():
        if table.lower() in schema.unclear:
            continue
        if (standing := schema.tables.get(table.lower())) is None:
            yield f"no migration creates the table {table}"
        else:
            yield from (f"{table} has no column {name}" for name in columns if name.lower() not in standing.columns)

"""The migrations and rights of a room: the same on both engines, with all that its classes and statements need."""

import logging
import re
from contextlib import closing
from pathlib import Path

import pytest

from core.store.migrations import migrations_of
from core.store.sqlite.database import SqliteDatabase
from core.transforms.loading import Room, check_transform, load_aggregates, rooms_of
from hubledger.cli.ddl.migration import next_migration, read_schema, scripts_of
from hubledger.cli.ddl.room import rights_text
from local.explain import rights_of_statements
from local.trials.replay_identity import memory_connection
from tests.rooms.found import transform_of
from tests.sql.gates import gates
from tests.sql.grants import grants_of


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


def test_no_migration_is_missing(room: Room) -> None:
    row_classes = transform_of(room).row_classes
    for each in rooms_of(row_classes):
        found = next_migration(row_classes, load_aggregates(row_classes), each.folder)
        faults = [*found.cannot, *(f"migrations/{engine} lacks:\n{text}" for engine, text in found.texts.items())]
        assert not faults, "\n".join([f"{each.name}: its classes differ from its migrations", *faults])


def test_the_t_sql_names_each_table_and_column_that_sqlite_makes(room: Room) -> None:
    """No server runs here, so a type, a length and a key are not compared."""
    statements = ";".join(one.text.lower() for one in migrations_of(room, "sqlserver")).split(";")
    missing = []
    for name, table in read_schema(scripts_of(room.folder)).tables.items():
        changes = [one for one in statements if re.search(rf"(table|sp_rename)\W.*\b{name}\b", one)]
        words = set(re.findall(r"\w+", " ".join(changes)))
        missing += [f"{name}.{column}" for column in table.columns if column not in words]
    assert not missing, f"migrations/sqlserver lack {', '.join(missing)}"


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
    scripts = [each.folder / "permissions.sql" for each in rooms_of(row_classes)]
    script = "\n".join(path.read_text(encoding="utf-8") for path in scripts if path.exists())
    of_jobs = grants_of(rights_text(row_classes, load_aggregates(row_classes)), "hubledger_job")
    own = {use.table for use in of_jobs}  # they read every table of a room
    of_app = {use for use in rights_of_statements(row_classes) if use.table in own}
    needed = {"hubledger_app": of_app, "hubledger_job": of_jobs}
    faults = [
        f"permissions.sql: add GRANT {use.verb} ON hubledger.{use.table} TO {role};"
        for role, uses in needed.items()
        for use in sorted(uses - grants_of(script, role))
    ]
    assert not faults, "\n".join(faults)

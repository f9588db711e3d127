"""The tables of every aggregate are those of its declaration, in the migrations of both dialects."""

import re
import sqlite3
from contextlib import closing

import pytest

from core.model.aggregates import Aggregate
from core.store.aggregate_ddl import ENGINES, Engine, main, migration_text, source_index_text, tables_text
from core.store.queries import load_migrations
from core.transforms.aggregates import load_aggregates

TABLE = re.compile(r"CREATE TABLE hubledger\.(\w+) \(\n(.*?)\n\);", re.S)
ADDED = re.compile(r"ALTER TABLE hubledger\.(\w+)\s+ADD (?!CONSTRAINT)(\w+ .*?);", re.S)
Columns = dict[str, frozenset[str]]


def of_server(script: str) -> Columns:
    """Return the columns and constraints of each table; their order is not part of a declaration."""
    text = re.sub(r"--.*", "", script)
    found: dict[str, set[str]] = {}
    for name, body in TABLE.findall(text):
        found[name] = {" ".join(line.split()).rstrip(",") for line in body.split("\n") if line.strip()}
    for name, column in ADDED.findall(text):
        found.setdefault(name, set()).add(" ".join(column.split()))
    return {name: frozenset(lines) for name, lines in found.items()}


def of_embedded(script: str) -> Columns:
    """Return the columns of each table, as SQLite describes them after it ran a script."""
    options = "SELECT name, wr, strict FROM pragma_table_list WHERE schema = 'main'"
    columns = "SELECT name, type, [notnull], pk FROM pragma_table_info(?)"
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(script)
        tables = connection.execute(options).fetchall()
        described = {name: [kinds, *connection.execute(columns, [name])] for name, *kinds in tables}
    return {name: frozenset(map(str, lines)) for name, lines in described.items()}


def differences(engine: Engine, migrated: str, one: Aggregate) -> dict[str, list[str]]:
    """Return the columns of an aggregate's tables that the migrations lack, or have beyond its declaration."""
    read = of_embedded if engine == "sqlite" else of_server
    standing, declared = read(migrated), read(tables_text(one, engine))
    faults = {name: sorted(standing.get(name, frozenset()) ^ declared[name]) for name in (one.name, one.staged)}
    return {name: lines for name, lines in faults.items() if lines}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_migrations_make_the_tables_of_every_aggregate(engine: Engine) -> None:
    migrated = "\n".join(one.text for one in load_migrations(engine))
    found = {one.name: differences(engine, migrated, one) for one in load_aggregates()}
    assert found == {"flight_punctuality": {}, "home_activity": {}}


CHANGES = {
    "sqlite": ("delayed INTEGER NOT NULL,", "delayed INTEGER,"),
    "sqlserver": ("delayed bigint NOT NULL,", "delayed int NOT NULL,"),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_migration_that_differs_from_a_declaration_is_seen(engine: Engine) -> None:
    migrated = "\n".join(one.text for one in load_migrations(engine)).replace(*CHANGES[engine])
    found = [one.name for one in load_aggregates() if differences(engine, migrated, one)]
    assert found == ["flight_punctuality"]


def test_the_command_prints_both_dialects_or_one_and_names_an_unknown_aggregate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (one,) = (one for one in load_aggregates() if one.name == "flight_punctuality")
    assert main(["flight_punctuality"]) == 0
    both = capsys.readouterr().out
    assert all(migration_text(one, engine) in both for engine in ENGINES)
    assert main(["flight_punctuality", "--engine", "sqlite"]) == 0
    assert capsys.readouterr().out == migration_text(one, "sqlite")
    assert main(["nothing"]) == 1
    assert "no aggregate is named nothing" in capsys.readouterr().err


@pytest.mark.parametrize("engine", ENGINES)
def test_the_migrations_make_the_index_of_the_source_of_every_aggregate(engine: Engine) -> None:
    migrated = " ".join(" ".join(one.text for one in load_migrations(engine)).split())
    lacking = [
        one.name for one in load_aggregates() if " ".join(source_index_text(one, engine).split()) not in migrated
    ]
    assert lacking == []


def test_the_index_of_a_source_seeks_a_time_of_a_partition_and_holds_the_key() -> None:
    (one,) = (one for one in load_aggregates() if one.name == "home_activity")
    columns = "(stream_id, partition_id, observed_at, home_id, kind)"
    assert source_index_text(one, "sqlite") == f"CREATE INDEX ix_home_activity_source\n    ON sensor_reading {columns};"

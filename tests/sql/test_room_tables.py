"""The tables that the classes of the examples declare are those of their migrations, and both engines take them."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from core.store.migrations import load_migrations
from core.transforms import load_transform
from core.transforms.aggregates import load_aggregates
from hubledger.cli.ddl.compare import compare_table
from hubledger.cli.ddl.described import read_embedded
from hubledger.cli.ddl.diff import next_migration
from hubledger.cli.ddl.parsed import read_server
from hubledger.cli.ddl.room import room_text
from hubledger.cli.ddl.schema import Schema, SchemaScript, SchemaTable, scripts_of
from hubledger.cli.ddl.types import ENGINES, Engine
from hubledger.cli.ddl.wanted import wanted_tables
from tests.fakes.declared import every_type, forgotten
from tests.offenders import holds_for
from tests.sql.gates import gates

ROOT = Path(__file__).parents[2]
ROOMS = ("flight_info", "home_security")
NARROWER = {"flight_number"}  # an int where a declared one is a bigint: a server refuses a number that it cannot hold


def declared(room: str) -> tuple[Any, Any]:
    row_classes = load_transform(f"examples.{room}").row_classes
    return row_classes, load_aggregates(row_classes)


@cache
def standing(room: str, engine: Engine) -> Schema:
    """Return what the migrations of a room make; of a room without its own, what ours make."""
    scripts = scripts_of(ROOT / "examples" / room, engine)
    if engine == "sqlite":
        return read_embedded(scripts)
    ours = [SchemaScript(each.title, each.text) for each in load_migrations(engine)]
    return read_server(scripts or ours)


def of_columns(table: SchemaTable) -> Mapping[str, tuple[str, bool]]:
    return {
        name: (column.type.replace("integer", "bigint") if name in NARROWER else column.type, column.is_required)
        for name, column in table.columns.items()
    }


@holds_for(ROOMS)
def test_the_tables_of_an_example_have_the_columns_types_collations_and_keys_of_its_classes(room: str) -> None:
    there, made = standing(room, "sqlserver"), read_server([SchemaScript("", room_text(*declared(room), "sqlserver"))])
    assert there.unread == made.unread == ()
    assert made.tables.keys() == wanted_tables(*declared(room)).keys()
    for name, table in made.tables.items():
        assert of_columns(there.tables[name]) == of_columns(table), name
        assert there.tables[name].key == table.key
        for column, text in table.columns.items():
            assert there.tables[name].columns[column].collation == text.collation, f"{name}.{column}"
    assert made.indexes <= there.indexes


@holds_for(ROOMS)
def test_a_comparison_finds_no_difference_between_an_example_and_its_migrations(room: str) -> None:
    there = standing(room, "sqlserver")
    for name, wanted in wanted_tables(*declared(room)).items():
        assert list(compare_table(wanted, there.tables[name], "sqlserver")) == []
    if scripts_of(ROOT / "examples" / room, "sqlserver"):
        found = next_migration(*declared(room), ROOT / "examples" / room)
        assert (found.texts, found.cannot, found.permissions) == ({}, (), None)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_generated_for_every_type_is_what_a_comparison_wants(engine: Engine) -> None:
    with forgotten():
        classes = every_type()
        made = {"sqlite": read_embedded, "sqlserver": read_server}[engine](
            [SchemaScript("", room_text(classes, (), engine))]
        )
        wanted = wanted_tables(classes, ())
        assert made.unread == ()
        assert made.tables.keys() == wanted.keys()
        assert [each for name, one in wanted.items() for each in compare_table(one, made.tables[name], engine)] == []


def test_the_embedded_tables_are_strict_and_have_no_row_number() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        for room in ROOMS:
            connection.executescript(room_text(*declared(room), "sqlite"))
        forms = "SELECT DISTINCT wr, strict FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'"
        assert connection.execute(forms).fetchall() == [(1, 1)]


def test_appended_tables_are_compressed_by_page_and_states_are_not() -> None:
    text = room_text(*declared("home_security"), "sqlserver")
    made = {one.split("(")[0].split(".")[1].strip(): one for one in text.split("CREATE TABLE")[1:]}
    compressed = {name for name, one in made.items() if ") WITH (DATA_COMPRESSION = PAGE);" in one.split("INDEX")[0]}
    assert compressed == {"sensor_reading", "home_alert"}


@pytest.mark.slow
def test_microsofts_parser_takes_what_is_generated(tmp_path: Path) -> None:
    """A first migration of every type and of the examples, and one that changes tables."""
    if not gates():
        pytest.skip("no T-SQL parser is installed: make scriptdom, or pip install sqlfluff")
    with forgotten():
        classes = every_type()
        texts = {"every type": room_text(classes, (), "sqlserver")}
        texts |= {room: room_text(*declared(room), "sqlserver") for room in ROOMS}
        texts["changes"] = changes(tmp_path)
        texts["broken"] = texts["every type"].replace("[order]", "order")
    for gate in gates().values():
        assert gate(texts).keys() == {"broken"}


def changes(room: Path) -> str:
    """Return a migration that adds columns of every type, makes texts longer and widens columns."""
    from tests.fakes.declared import LONGER, appended

    for engine in ENGINES:
        (room / "migrations" / engine).mkdir(parents=True)
    first = next_migration((appended("line", note=LONGER[0], amount=int, select=int),), (), room)
    for engine, text in first.texts.items():
        (room / "migrations" / engine / "0001_line.sql").write_text(text, encoding="utf-8")
    kinds = {name: kind for name, kind in every_type()[1].__annotations__.items() if name.endswith("_or_none")}
    wider = {"note": LONGER[1], "amount": float | None, "select": Decimal, "order": int | None, **kinds}
    following = next_migration((appended("line", **wider),), (), room)
    text = following.texts["sqlserver"]
    assert text.count("ALTER COLUMN") == 3 and text.count(" ADD ") == len(kinds) + 1
    return text

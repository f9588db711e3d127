"""The tables that the classes of the examples declare are those of their migrations, and both engines take them."""

import re
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from core.transforms.loading import load_aggregates, load_transform
from hubledger.cli.ddl.migration import next_migration
from hubledger.cli.ddl.room import room_text
from hubledger.cli.ddl.tables import ENGINES
from tests.fakes.declared import every_type, forgotten
from tests.offenders import holds_for
from tests.sql.gates import gates

ROOT = Path(__file__).parents[2]
ROOMS = ("flight_info", "home_security")


def declared(room: str) -> tuple[Any, Any]:
    row_classes = load_transform(f"examples.{room}").row_classes
    return row_classes, load_aggregates(row_classes)


def lines_of(text: str) -> set[tuple[str, str]]:
    """Return the lines of a script without comments and blanks, each with the table or index that it makes."""
    found, made = set(), ""
    for line in re.sub(r"--.*", "", text).replace("\n    ON", " ON").splitlines():
        made = line if line.startswith("CREATE") else made
        found.add((made, re.sub(r"\s+", " ", line).strip(" ,")))
    return found


@holds_for(ROOMS)
def test_the_t_sql_of_an_example_has_each_line_that_its_classes_make(room: str) -> None:
    (script,) = (ROOT / "examples" / room / "migrations" / "sqlserver").glob("*.sql")
    text = re.sub(r"(flight_number +)int ", r"\1bigint ", script.read_text(encoding="utf-8"))  # an int holds them too
    there = lines_of(text)
    assert lines_of(room_text(*declared(room), "sqlserver")) - there == set()


@holds_for(ROOMS)
def test_a_comparison_finds_no_difference_between_an_example_and_its_migrations(room: str) -> None:
    found = next_migration(*declared(room), ROOT / "examples" / room)
    assert (found.texts, found.cannot, found.permissions) == ({}, (), None)


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
    """Return a migration that adds columns of every type, widens columns, and leaves one without a field."""
    from tests.fakes.declared import LONGER, appended

    for engine in ENGINES:
        (room / "migrations" / engine).mkdir(parents=True)
    first = next_migration((appended("line", note=LONGER[0], amount=int, select=int, gone=int),), (), room)
    for engine, text in first.texts.items():
        (room / "migrations" / engine / "0001_line.sql").write_text(text, encoding="utf-8")
    kinds = {name: kind for name, kind in every_type()[1].__annotations__.items() if name.endswith("_or_none")}
    wider = {"note": LONGER[1], "amount": float | None, "select": Decimal, "order": int | None, **kinds}
    following = next_migration((appended("line", **wider),), (), room)
    text = following.texts["sqlserver"]
    assert text.count("ALTER COLUMN") == 3 and "[gone]" in text and text.count(" ADD ") == len(kinds) + 1
    return text

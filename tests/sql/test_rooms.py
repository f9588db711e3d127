"""The tables of rooms and of their aggregates: those of the classes, in both engines, with any word as a name.

Each name of a user fits its column: the check at the declaration and the schema have one length.
"""

import json
import keyword
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import make_dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest

from core.aggregation.lake_tables import ROWS
from core.aggregation.runs import overflow_text
from core.errors import InvalidTransform
from core.model.aggregates import ADDED, Aggregate, Count, Key, aggregate_of, aggregate_table
from core.model.rows import KEY_BYTES, LINEAGE, Text, row_table
from core.store.migrations import load_migrations
from core.store.script import OfRows, RowVerb, of_rows
from core.store.sqlite.database import STORE_TIME
from core.store.sqlite.statements import EXACT_FLOAT, ROWS_HASH, rows_text
from core.store.sqlserver.statements import rows_query
from core.transforms.contract import LONGEST, LONGEST_TABLE, VERSION_LENGTH, fault_of_column, fault_of_table
from core.transforms.loading import find_aggregate, load_aggregates, load_transform
from examples.home_security.transform import SensorReading
from hubledger.cli.ddl.migration import next_migration
from hubledger.cli.ddl.room import room_text
from hubledger.cli.ddl.tables import ENGINES, Engine, added_text, source_index_text, tables_text
from hubledger.cli.scaffold.design import LONGEST_ROOM
from tests.fakes.declared import appended, every_type, forgotten, state, windows
from tests.fakes.lengths import lengths
from tests.fakes.rooms import all_migrations
from tests.offenders import holds_for
from tests.sql.gates import gates
from tests.sql.statements import every_batch

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


def test_embedded_tables_are_strict_without_row_numbers_and_appended_ones_of_a_server_compressed_by_page() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        for room in ROOMS:
            connection.executescript(room_text(*declared(room), "sqlite"))
        forms = "SELECT DISTINCT wr, strict FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%'"
        assert connection.execute(forms).fetchall() == [(1, 1)]
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


LONGEST_AGGREGATE = LONGEST_TABLE - len("_staged")
LEVELS = (
    14  # a finest of less than a second, one second, and the twelve prime factors of a day: core/model/aggregates.py
)
NAMES = ["a" * LONGEST_AGGREGATE] * LEVELS
BLOB = f"abfss://{'c' * 63}@{'a' * 24}.dfs.core.windows.net/{'p' * 1024}"  # the longest address of a blob
LONGEST_TEXTS = {  # the longest text that the checks let a user choose, by the column that holds it
    ("aggregation_run", "job"): f"{ROWS}{'a' * LONGEST_TABLE}",
    ("aggregation_cut", "job"): f"{ROWS}{'a' * LONGEST_TABLE}",
    ("staged_slice", "level"): NAMES[0],
    ("retracted_row", "table_name"): "a" * LONGEST_TABLE,
    ("aggregation_cut", "levels"): " ".join(NAMES),
    ("staged_result", "levels"): json.dumps([[name, 2**63 - 1] for name in NAMES]),
    ("staged_result", "lake_path"): BLOB,
    ("aggregation_run", "lake_path"): BLOB,
    ("staged_result", "overflow"): overflow_text(NAMES[0], "m" * LONGEST, "2026-03-01T10:00:00Z"),
    ("event_hub_dead_letter", "transform_version"): "v" * VERSION_LENGTH,
    ("batch_ledger", "transform_version"): "v" * VERSION_LENGTH,
}


@holds_for(LONGEST_TEXTS)
def test_a_column_holds_the_longest_text_that_a_check_lets_through(place: tuple[str, str]) -> None:
    table, column = place
    assert len(LONGEST_TEXTS[place]) <= lengths()[table][column]


def test_the_longest_aggregate_is_one_and_a_longer_one_is_refused() -> None:
    assert fault_of_table(f"{NAMES[0]}_staged") is None
    assert fault_of_table(f"{NAMES[0]}a_staged") is not None
    assert LONGEST_ROOM + len("_by_hour") <= LONGEST_AGGREGATE


NAME = Annotated[str, Text(20)]
OF_WINDOWS = get_args(RowVerb)[get_args(RowVerb).index("find_overflow") :]
OF_ROWS = ("append", "retract", "find_lettered")
OF_STATES = ("set", "retract_states", "replace_states", "count_states", "select_states", "select_standing")


def statements(rows: str, states: str, aggregate: str) -> tuple[list[OfRows], str]:
    """Return every statement about classes of these tables, and the migration of the tables."""
    line = appended(rows, customer=NAME, at=datetime)
    plain = state(states, ("customer",), customer=NAME, at=datetime)
    one = windows(
        line, aggregate, "at", customer=Annotated[str, Key(20)], window_start=datetime, count=Annotated[int, Count()]
    )
    return statements_about(plain, line, one), room_text((line, plain), (one,), "sqlite")


def statements_about(states: type, rows: type, one: Aggregate) -> list[OfRows]:
    asked = [of_rows("find_row_faults", rows)]
    for verb in get_args(RowVerb):
        if verb in OF_WINDOWS:
            asked.append(of_rows(verb, one.of))
        elif verb != "find_row_faults" and "subject" not in verb:
            asked += [of_rows(verb, rows)] if verb not in OF_STATES else []
            asked += [of_rows(verb, states)] if verb not in OF_ROWS else []
        elif "subject" in verb:
            asked += [of_rows(verb, each) for each in (states, rows) if row_table(each).subject]
    return asked


@cache
def texts_about_rows() -> list[str]:
    with forgotten():
        asked, _ = statements("a_line", "a_state", "a_sale")
        return [text for each in asked for text in (rows_text(each), rows_query(each).text)]


@cache
def words() -> list[str]:
    texts = texts_about_rows()
    ours = {name for one in load_migrations("sqlite") for name in re.findall(r"CREATE TABLE (\w+)", one.text)}
    found = {word.lower() for text in texts for word in re.findall(r"\b[A-Za-z_]\w*", text)}
    return sorted(word for word in found - ours if not word.startswith("a_") and fault_of_table(word) is None)


def faults(connection: sqlite3.Connection, asked: list[OfRows]) -> Iterator[str]:
    for each in asked:
        try:
            text = rows_text(each)
            marks = text.count("?")
            values = (None,) * marks if marks else dict.fromkeys(re.findall(r":(\w+)", text))
            connection.execute(f"EXPLAIN {text.removesuffix(';')}", values)
        except sqlite3.Error as error:
            yield f"{each}: {error}"


def test_each_word_of_a_statement_may_name_a_table_of_a_room() -> None:
    assert len(words()) > 60
    found: dict[str, list[str]] = {}
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, arguments in ((EXACT_FLOAT, 1), (ROWS_HASH, 1), (STORE_TIME, 0)):
            connection.create_function(name, arguments, lambda *_: None)
        for migration in load_migrations("sqlite"):
            connection.executescript(migration.text)
        for word in words():
            for names in ((word, "a_state", "a_sale"), ("a_line", word, "a_sale"), ("a_line", "a_state", word)):
                with forgotten():
                    asked, made = statements(*names)
                    connection.executescript(made)
                    found.setdefault(word, []).extend(faults(connection, asked))
                for table in (*names, f"{names[2]}_staged"):
                    connection.execute(f"DROP TABLE {table}")
    assert {word: some for word, some in found.items() if some} == {}


@pytest.mark.slow
def test_a_parser_of_t_sql_takes_them_too() -> None:
    texts: dict[str, str] = {}
    for word in words():
        with forgotten():
            asked, _ = statements(word, f"{word}_state", f"{word}_sales")
            texts |= {f"{word}: {each}": rows_query(each).text for each in asked}
    for gate in gates().values():
        assert gate(texts) == {}


def test_a_named_query_in_a_statement_about_rows_begins_as_no_table_of_a_room_may() -> None:
    texts = texts_about_rows()
    named = {name for text in texts for name in re.findall(r"(?:WITH|,) (\w+) AS \(\n", text)}
    assert len(named) == 3
    assert [name for name in named if fault_of_table(name) is None] == []


def declared_in(text: str) -> Iterator[list[str]]:
    for listed in re.findall(r"WITH \(((?:[^()]|\([^()]*\))*)\) AS", text):
        yield [one.split()[0].strip("[]").lower() for one in re.split(r",(?![^(]*\))", listed)]


def test_each_word_of_a_statement_may_name_a_column_of_a_room() -> None:
    columns = {word for word in (*words(), "taken") if not keyword.iskeyword(word)}
    columns -= {*LINEAGE, *ADDED, "customer", "at", "window_start"}
    fields, found = {"customer": NAME, "at": datetime}, []
    for word in sorted(word for word in columns if fault_of_column(word) is None):
        with forgotten():
            made = appended("a_line", **fields, **{word: int})
            newest = state("a_state", ("customer",), newest_by="at", **fields, **{word: int})
            for verb in ("set", "retract_states", "replace_states", "select_states"):
                found += [(word, one) for one in declared_in(rows_query(of_rows(verb, newest)).text)]
            found += [(word, one) for one in declared_in(rows_query(of_rows("append", made)).text)]
    assert len(found) > 200
    assert [word for word, one in found if len(one) != len({*one})] == []


MADE_TABLE = re.compile(r"CREATE TABLE hubledger\.(\w+) \(\n(.*?)\n\)[^;]*;", re.S)
ADDED_COLUMN = re.compile(r"ALTER TABLE hubledger\.(\w+)\s+ADD (?!CONSTRAINT)(\w+ .*?);", re.S)
Columns = dict[str, frozenset[str]]


def of_server(script: str) -> Columns:
    """Return the columns and constraints of each table. Their order is not part of a declaration."""
    text = re.sub(r"--.*", "", script)
    found: dict[str, set[str]] = {}
    for name, body in MADE_TABLE.findall(text):
        found[name] = {" ".join(line.split()).rstrip(",") for line in body.split("\n") if line.strip()}
    for name, column in ADDED_COLUMN.findall(text):
        found.setdefault(name, set()).add(" ".join(column.split()))
    return {name: frozenset(lines) for name, lines in found.items()}


BYTES = {"bigint": 8, "int": 4, "smallint": 2, "bit": 1, "datetime2(6)": 8, "date": 3, "uniqueidentifier": 16}


def bytes_of(column: str) -> int:
    """Return the most bytes of a column in a key. Of a text, two for each character unless it is of ASCII."""
    kind, length = re.match(r"([a-z0-9]+(?:\(6\))?)(?:\((\d+)\))?", column).groups("")  # type: ignore[union-attr]
    return int(length) * (2 if kind.startswith("n") else 1) if length else BYTES[kind]


def widths(script: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, lines in of_server(script).items():
        columns = {word.strip("[]"): rest for word, _, rest in (line.partition(" ") for line in lines)}
        keys = [key for line in lines for key in re.findall(r"PRIMARY KEY(?: CLUSTERED)? \((.*?)\)", line)]
        found |= {name: sum(bytes_of(columns[each.strip("[] ")]) for each in keys[0].split(","))} if keys else {}
    return found


def wide(length: int, *, ascii: bool = False) -> Aggregate:
    key = Annotated[str, Key(length, ascii)]
    hints = {"sensor_id": key, "window_start": datetime, "readings": Annotated[int, Count()]}
    made = aggregate_of(SensorReading, "wide", at="observed_at", window=timedelta(hours=1))
    return aggregate_table(made(make_dataclass("Wide", hints.items(), frozen=True, slots=True)))


def test_no_primary_key_of_a_table_has_more_bytes_than_a_clustered_key() -> None:
    for length, ascii in ((404, False), (808, True)):  # the longest keys of an aggregate
        assert widths(tables_text(wide(length, ascii=ascii), "sqlserver")) == {"wide": 816, "wide_staged": 900}
        with pytest.raises(InvalidTransform, match=r"Wide: the key of its staged windows has up to 90[12] bytes"):
            wide(length + 1, ascii=ascii)
    found = widths("\n".join(one.text for one in all_migrations("sqlserver")))
    assert len(found) >= 35
    assert {name: size for name, size in found.items() if size > KEY_BYTES} == {}


def test_every_instant_is_of_six_digits_in_columns_parameters_json_and_casts() -> None:
    """Python's instants have six. SQL Server converts a column that meets a different scale. Fabric mirrors no table
    with a key of seven digits (learn.microsoft.com/fabric/mirroring/azure-sql-database-limitations).
    """
    with forgotten():
        made = [room_text(every_type(), (), "sqlserver"), tables_text(wide(20), "sqlserver")]
    made.append(added_text(find_aggregate("home_activity"), "sqlserver", ["hour", "day"]))
    programs = [path.read_text(encoding="utf-8") for path in (ROOT / "jobs").glob("*.py")]
    every = "\n".join([*made, *programs, *every_batch().values(), *(one.text for one in all_migrations("sqlserver"))])
    assert set(re.findall(r"\bdatetime(?:2\b|offset|)\(\d\)|datetime2\b(?!\()", every)) == {"datetime2(6)"}


ADDED_FIRST = {"sqlite": "UPDATE aggregation_cut", "sqlserver": "UPDATE hubledger.aggregation_cut"}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_migration_that_adds_levels_locks_commits_reads_and_fills_from_the_finer_level(engine: Engine) -> None:
    one = find_aggregate("home_activity")
    both, day = added_text(one, engine, ["hour", "day"]), added_text(one, engine, ["day"])
    assert both.startswith(ADDED_FIRST[engine])
    assert "SET levels = 'home_activity home_activity_hour home_activity_day'" in day
    assert re.findall(r"INTO (?:hubledger\.)?(\w+)", both) == ["home_activity_hour", "home_activity_day"]
    assert re.findall(r"FROM (?:hubledger\.)?(\w+) AS a", both) == ["home_activity", "home_activity_hour"]
    assert re.findall(r"CREATE TABLE (?:hubledger\.)?(\w+) ", day) == ["home_activity_day", "home_activity_day_staged"]
    with pytest.raises(InvalidTransform, match="home_activity has no rollup named month"):
        added_text(one, engine, ["month"])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_source_has_an_index_by_time_and_only_a_level_with_a_retention_one_by_its_windows(engine: Engine) -> None:
    columns = "(stream_id, partition_id, observed_at, home_id, kind)"
    source = source_index_text(find_aggregate("home_activity"), "sqlite")
    assert source == f"CREATE INDEX ix_home_activity_source\n    ON sensor_reading {columns};"
    one = find_aggregate("flight_punctuality")
    assert "INDEX" not in tables_text(one, engine)
    kept = tables_text(replace(one, keep=timedelta(days=92)), engine)
    made = r"CREATE INDEX ix_flight_punctuality_window_start ON [\w.]+ \(window_start\)( WITH \(ONLINE = ON\))?;"
    assert re.search(made, kept)

"""A table or a column of a room may have each word of our statements as its name that the contract does not refuse."""

import keyword
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from functools import cache
from typing import Annotated, get_args

import pytest

from core.model.aggregates import ADDED, Aggregate, Count, Key
from core.model.rows import LINEAGE, Text, row_table
from core.store.migrations import load_migrations
from core.store.script import OfRows, RowVerb, of_rows
from core.store.sqlite.database import STORE_TIME
from core.store.sqlite.statements import EXACT_FLOAT, ROWS_HASH, rows_text
from core.store.sqlserver.statements import rows_query
from core.transforms.contract import fault_of_column, fault_of_table
from hubledger.cli.ddl.room import room_text
from tests.fakes.declared import appended, forgotten, state, windows
from tests.sql.gates import gates

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
    """Return every statement about a class of states, one of appended rows, and an aggregate of these."""
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
def words() -> list[str]:
    """Return the words of the statements of both engines that may name a table of a room, and are no table of ours."""
    with forgotten():
        asked, _ = statements("a_line", "a_state", "a_sale")
        texts = [text for each in asked for text in (rows_text(each), rows_query(each).text)]
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
    with forgotten():
        asked, _ = statements("a_line", "a_state", "a_sale")
        texts = [text for each in asked for text in (rows_text(each), rows_query(each).text)]
    named = {name for text in texts for name in re.findall(r"(?:WITH|,) (\w+) AS \(\n", text)}
    assert len(named) == 3
    assert [name for name in named if fault_of_table(name) is None] == []


def declared_in(text: str) -> Iterator[list[str]]:
    """Yield the columns of each table that a statement reads from JSON."""
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

"""A room whose columns are words of SQL: every statement of the jobs about them is taken by both engines."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from core.model.aggregates import Aggregate
from core.model.rows import row_table
from core.store.migrations import load_migrations
from hubledger.cli.ddl.room import room_text
from jobs.jdbc_tables import JdbcTables
from jobs.ranges import CommitSpan, Slice
from jobs.sqlite_tables import SqliteTables
from jobs.tables import Tables, staged_columns
from tests.fakes.declared import forgotten, named_by_words
from tests.spark.test_jdbc import Recorder
from tests.sql.collations import columns_of, conflicts, conversions
from tests.sql.gates import gates

Room = tuple[type, type, Aggregate]
AT = datetime(2026, 2, 10, 12, tzinfo=UTC)
SLICE, SPAN = Slice(1, "0", 1, 9, 0, 9), CommitSpan(1, "0", 0, 9)
LETTERS_ONLY = Slice(1, "0", 1, 9, 0, 9, letters_only=True)
VALUES = ("k", "u", 3, "g", 0.5, 1, "2026-02-10T12:00:00.000000Z", "2026-02-10", 7)
DOCUMENT = (
    '{"key": "k", "user": "u", "order": 2, "group": null, "index": 0.5, "select": true,'
    ' "end": "2026-02-10T12:00:00.000000Z", "open": "2026-02-10", "größe": 5}'
)


@pytest.fixture
def room() -> Iterator[Room]:
    with forgotten():
        yield named_by_words()


def asked(tables: Tables, room: Room) -> dict[str, Callable[[], Any]]:
    """Return each question of the jobs that names columns of a room, by its name."""
    states, line, of = room
    window = {"key": "k", "user": "u", "window_start": AT.replace(hour=0)}
    return {
        "rows": lambda: tables.rows(of, [SLICE, LETTERS_ONLY]),
        "removed": lambda: tables.removed(of, [CommitSpan(1, "0", 1, 9)]),
        "rows of windows": lambda: tables.rows_of_windows(of, [window], [SPAN]),
        "every window": lambda: tables.standing(of, None),
        "some windows": lambda: tables.standing(of, [window]),
        "rows with lineage": lambda: tables.lineage_rows(line, [SLICE]),
        "removed rows": lambda: tables.removed_rows(line, ["commit_number > 1"]),
        "texts of rows": lambda: tables.texts(line, [SLICE]),
        "texts of states": lambda: tables.texts(states, None),
    }


@pytest.fixture
def statements(room: Room) -> list[str]:
    """Return the statements that the jobs send to SQL Server for the room."""
    recorder = Recorder()
    for name, ask in asked(JdbcTables(recorder, "jdbc:sqlserver://host", dict), room).items():
        before = len(recorder.statements)
        with pytest.raises(LookupError):
            ask()
        assert len(recorder.statements) > before, name
    return recorder.statements


def test_what_is_sent_to_sql_server_about_them_passes_the_parser(statements: list[str]) -> None:
    sent = {f"{at}": text for at, text in enumerate(statements)}
    bare = {name: text.replace("[order]", "order") for name, text in sent.items() if "[order]" in text}
    assert len(bare) >= 8
    for gate in gates().values():
        assert gate(sent) == {}
        assert gate(bare).keys() == bare.keys()


def test_no_statement_names_one_of_them_without_brackets(statements: list[str]) -> None:
    """`user` alone is a function of SQL Server, so a parser takes it."""
    for statement in statements:
        bare = statement.replace("[user]", "").replace('$."user"', "").replace("ORDER BY", "")
        assert " user" not in bare and ".user" not in bare, statement


def test_no_statement_to_sql_server_converts_a_column_or_compares_two_collations(
    statements: list[str], room: Room
) -> None:
    """The room has keys of ASCII, whose columns have a byte for each letter."""
    texts = [each.text for each in load_migrations("sqlserver")] + [room_text(room[:2], room[2:], "sqlserver")]
    types, collations = columns_of(iter(texts), types=True), columns_of(iter(texts))
    sent = [text.replace(") r WHERE", ") AS r WHERE") for text in statements]
    assert [found for text in sent for found in conversions(text, types) + conflicts(text, collations)] == []
    planted = [text.replace("'u'", "N'u'") for text in sent if "'u'" in text]
    assert len(planted) == 2
    assert all(conversions(text, types) for text in planted)


def test_they_are_read_and_staged_on_sqlite(spark: Any, tmp_path: Path, room: Room) -> None:
    states, line, of = room
    path = str(tmp_path / "ledger.db")
    with closing(sqlite3.connect(path)) as connection:
        for migration in load_migrations("sqlite"):
            connection.executescript(migration.text)
        connection.executescript(room_text((states, line), (of,), "sqlite"))
        names = ", ".join(f"[{name}]" for name in row_table(line).columns)
        marks = ", ".join("?" * len(VALUES))
        lineage = "stream_id, partition_id, sequence_number, commit_number"
        connection.execute(f"INSERT INTO line ({lineage}, ordinal, {names}) VALUES (1, '0', 4, 2, 0, {marks})", VALUES)
        connection.execute(f"INSERT INTO plain ({lineage}, {names}) VALUES (1, '0', 4, 2, {marks})", VALUES)
        connection.execute(f"INSERT INTO retracted_row VALUES (1, '0', 3, 'line', 5, 0, 1, '{DOCUMENT}')")
        window = ("k", "2026-02-10T00:00:00.000000Z", "u", 1, 3, "2026-02-10T12:00:00.000000Z", 7, 1, 3)
        columns = ", ".join(f"[{name}]" for name in ("key", "window_start", "user", *of.values, "run_number", "slice"))
        connection.execute(f"INSERT INTO line_by_day ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", window)
        connection.commit()
    tables = SqliteTables(spark, path)
    found = {name: [tuple(row) for row in ask().collect()] for name, ask in asked(tables, room).items()}
    texts = ["k", "u", "3", "g", "0.5", "1", "2026-02-10T12:00:00.000000Z", "2026-02-10", "7"]
    at = AT.replace(tzinfo=None)
    assert found["rows"] == [("u", "k", at, 3, 7)]
    assert found["removed"] == [("u", "k", at, 2, 5)]
    assert found["rows of windows"] == [("u", "k", at, 3, 7)]
    standing = [("u", "k", at.replace(hour=0), 1, 3, at, 7, 1)]
    assert (found["every window"], found["some windows"]) == (standing, standing)
    assert found["rows with lineage"] == [(1, "0", 4, 0, 2, "k", "u", 3, "g", 0.5, 1, at, date(2026, 2, 10), 7)]
    assert [row[-1] for row in found["removed rows"]] == [DOCUMENT]
    assert (found["texts of rows"], found["texts of states"]) == ([("0", 4, 0, texts)], [(texts,)])
    tables.stage(of, tables.standing(of, None).selectExpr("*", "true AS is_whole", "3 AS slice"), "s", "r")
    with closing(sqlite3.connect(path)) as connection:
        staged = connection.execute(f"SELECT {', '.join(f'[{one}]' for one in staged_columns(of))} FROM {of.staged}")
        assert len(staged.fetchall()) == 1

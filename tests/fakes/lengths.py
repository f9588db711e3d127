"""The lengths of SQL Server's columns on SQLite, whose own texts have none."""

import re
import sqlite3
from collections.abc import Iterator

from core.store.migrations import load_migrations
from hubledger.cli.ddl.parsed import read_server
from hubledger.cli.ddl.schema import SchemaScript, SchemaTable

_TEXT = re.compile(r"n?varchar\((\d+)\)")


def lengths() -> dict[str, dict[str, int]]:
    """Return the length of each text of our tables that has one, by table and column."""
    ours = [SchemaScript(each.title, each.text) for each in load_migrations("sqlserver")]
    return {name: dict(_lengths(table)) for name, table in read_server(ours).tables.items()}


def enforce_lengths(connection: sqlite3.Connection) -> None:
    """Let a database refuse each text that a column of SQL Server would not hold."""
    for table, columns in lengths().items():
        refused = "".join(
            f"SELECT RAISE(ABORT, '{table}.{name} holds {most} characters') WHERE LENGTH(NEW.[{name}]) > {most};"
            for name, most in columns.items()
        )
        for verb in ("INSERT", "UPDATE") if refused else ():
            connection.execute(f"CREATE TRIGGER lengths_of_{table}_{verb} BEFORE {verb} ON {table} BEGIN {refused} END")


def _lengths(table: SchemaTable) -> Iterator[tuple[str, int]]:
    for name, column in table.columns.items():
        if found := _TEXT.match(column.type):
            yield name, int(found[1])

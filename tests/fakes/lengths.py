"""The lengths of SQL Server's columns on SQLite, whose own texts have none."""

import re
import sqlite3
from collections import defaultdict

from core.store.migrations import load_migrations

_LINE = re.compile(r"CREATE TABLE hubledger\.(?P<table>\w+)|^ +\[?(?P<column>\w+)\]? +n?varchar\((?P<most>\d+)\)", re.M)


def lengths() -> dict[str, dict[str, int]]:
    found, table = defaultdict[str, dict[str, int]](dict), ""
    for each in load_migrations("sqlserver"):
        for line in _LINE.finditer(each.text):
            table = line["table"] or table
            if line["column"]:
                found[table][line["column"]] = int(line["most"])
    return found


def enforce_lengths(connection: sqlite3.Connection) -> None:
    """Let a database refuse each text that a column of SQL Server would not hold."""
    for table, columns in lengths().items():
        refused = "".join(
            f"SELECT RAISE(ABORT, '{table}.{name} holds {most} characters') WHERE LENGTH(NEW.[{name}]) > {most};"
            for name, most in columns.items()
        )
        for verb in ("INSERT", "UPDATE") if refused else ():
            connection.execute(f"CREATE TRIGGER lengths_of_{table}_{verb} BEFORE {verb} ON {table} BEGIN {refused} END")

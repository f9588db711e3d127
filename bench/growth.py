"""Bytes of a row of each table that grows with the events: measured on SQLite, computed for SQL Server."""

import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.figures import Figure
from bench.samples import ROOMS
from core.store.sqlite.schema import migrate_sqlite

ROWS = 20_000
BODY = 110  # bytes of the body of a letter and of a staged event: those of a reading
FOLDERS = ("sql/migrations", "examples/home_security/migrations/sqlserver")
TABLES = (
    "sensor_reading",
    "batch_ledger",
    "event_hub_dead_letter",
    "dead_letter_attempt",
    "retracted_row",
    "staged_event",
    "replay_diff",
)
_ID = "'6e2a0f1c-52c8-4c5f-9d0a-0d8d3a3b9b11'"
_AT = "strftime('%Y-%m-%dT%H:%M:%S', 1767225600 + n, 'unixepoch') || '.123456Z'"
_READING = (
    '{"home_id":"H000001","sensor_id":"S1","kind":"motion","state":"active","observed_at":"2026-01-01T12:00:00.5Z"}'
)
_VALUES = {  # by column, in SQL; n counts the rows. Other times are _AT, other columns NULL or 0
    "stream_id": "1",
    "partition_id": "'12'",
    "sequence_number": "10000000 + n",
    "commit_number": "100000 + n",
    "row_commit_number": "90000 + n",
    "attempt": "1",
    "offset_token": "'' || (4294967296 + 200 * n)",
    "enqueued_at": _AT,
    "partition_key": "'H000001'",
    "properties": "'{}'",
    "body": f"randomblob({BODY})",
    "body_kept": "1",
    "transform_version": "'3f1c9a7b2d4e'",
    "fingerprint": "'0123456789abcdef.01234567'",
    "cause": "'0123456789abcdef'",
    "error_class": "'reference'",
    "error_type": "'core.errors.MissingReference'",
    "error": "'home H000001 is not registered'",
    "status": "'resolved'",
    "attempts": "1",
    "settled_at": _AT,
    "touched_by": _ID,
    "invocation_id": _ID,
    "job_id": _ID,
    "done_by": "'retry'",
    "table_name": "'sensor_reading'",
    "row": f"'{_READING}'",
    "diff": f"""'{{"was":[{_READING}],"is":[{_READING}]}}'""",
    "home_id": "'H000001'",
    "sensor_id": "'S1'",
    "state": "'active'",
    "first_sequence_number": "500 * n",
    "last_sequence_number": "500 * n + 499",
    "written": "500",
    "rows_written": "500",
    "rows_appended": "500",
}
_KINDS = {"sensor_reading": "'motion'", "batch_ledger": "'batch'", "dead_letter_attempt": "'retry'"}
_WIDTHS = {"bit": 1, "smallint": 2, "int": 4, "bigint": 8, "datetime2(6)": 8, "uniqueidentifier": 16}
_COLUMN = re.compile(
    r"(?:^\s+|ADD )(\w+)\s+(n?varchar\(\w+\)|varbinary\(\w+\)|datetime2\(6\)|\w*int|bit|uniqueidentifier)"
)
PAGE, ROW_HEAD, ENTRY_HEAD, TEXT_HEAD = 8_096, 11, 5, 2  # bytes: of a page, and of a row or text beside its values


@dataclass(frozen=True, slots=True)
class Growth:
    """Bytes of a row with its entries in the indexes. Bodies are included."""

    table: str
    sqlite: float
    sqlserver: float


def measure() -> Iterator[Figure]:
    """Measure the bytes of a row of each table."""
    for one in growths(ROWS):
        yield Figure(f"{one.table}, a row on SQLite", one.sqlite, "B", "", None)
        yield Figure(f"{one.table}, a row on SQL Server, computed", one.sqlserver, "B", "", None)


def growths(rows: int) -> list[Growth]:
    """Fill each table with this number of rows, and return its bytes of a row."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "growth.db"
        migrate_sqlite(path, ROOMS)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            for table in TABLES:
                connection.execute(_insert(connection, table), {"rows": rows})
            return [_growth(connection, table, rows) for table in TABLES]


def _insert(connection: sqlite3.Connection, table: str) -> str:
    columns = connection.execute(f"SELECT name, \"notnull\" FROM pragma_table_info('{table}')").fetchall()
    values = {name: _value(table, name, bool(needed)) for name, needed in columns}
    counted = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < :rows)"
    return f"{counted} INSERT INTO {table} ({', '.join(values)}) SELECT {', '.join(values.values())} FROM c"


def _value(table: str, column: str, is_needed: bool) -> str:
    if column == "kind":
        return _KINDS[table]
    return _VALUES.get(column) or ("NULL" if not is_needed else _AT if column.endswith("_at") else "0")


def _growth(connection: sqlite3.Connection, table: str, rows: int) -> Growth:
    indexes = f"SELECT name FROM sqlite_schema WHERE tbl_name = '{table}'"
    (octets,) = connection.execute(f"SELECT SUM(pgsize) FROM dbstat WHERE name IN ({indexes})").fetchone()
    return Growth(table, octets / rows, _on_server(connection, table) / rows)


def _on_server(connection: sqlite3.Connection, table: str) -> float:
    """Return the bytes of the same rows and entries on SQL Server, in full pages without compression."""
    types = _types()[table]
    columns = connection.execute(f"SELECT name, pk FROM pragma_table_info('{table}') ORDER BY pk").fetchall()
    key = [name for name, place in columns if place]
    parts = [([name for name, _ in columns], ROW_HEAD + len(columns) / 8, "TRUE")]
    for index, where in _indexes(connection, table):
        names = [name for (name,) in connection.execute(f"SELECT name FROM pragma_index_info('{index}')")]
        parts.append((list(dict.fromkeys([*names, *key])), ENTRY_HEAD, where))
    octets = 0.0
    for names, head, where in parts:
        widths = " + ".join(_width(name, types[name]) for name in names)
        asked = f"SELECT COUNT(*), TOTAL({widths}) FROM {table} WHERE {where}"
        count, values = connection.execute(asked).fetchone()
        octets += values + head * count
    return octets * 8_192 / PAGE


def _indexes(connection: sqlite3.Connection, table: str) -> Iterator[tuple[str, str]]:
    """Yield the indexes beside the key, each with its condition. Both engines have the same ones."""
    asked = f"SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = '{table}' AND sql IS NOT NULL"
    for name, text in connection.execute(asked).fetchall():
        yield name, text.partition(" WHERE ")[2] or "TRUE"


def _width(name: str, kind: str) -> str:
    """Return SQL for the bytes that SQL Server needs for a value. A NULL of a text needs none."""
    if kind in _WIDTHS:
        return str(_WIDTHS[kind])
    size = f"LENGTH(CAST({name} AS BLOB))" if kind.startswith("varb") else f"LENGTH({name})"
    return f"COALESCE({2 if kind.startswith('n') else 1} * {size} + {TEXT_HEAD}, 0)"


@cache
def _types() -> dict[str, dict[str, str]]:
    """Read the type of each column from the migrations of SQL Server."""
    types: dict[str, dict[str, str]] = {}
    for folder in FOLDERS:
        for path in sorted((Path(__file__).parents[1] / folder).glob("*.sql")):
            table = ""
            for line in path.read_text(encoding="utf-8").splitlines():
                if named := re.search(r"(?:CREATE|ALTER) TABLE hubledger\.(\w+)", line):
                    table = named[1]
                if column := _COLUMN.search(line):
                    types.setdefault(table, {})[column[1]] = column[2]
    return types

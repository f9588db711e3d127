"""The database of a peer: the table of readings, opened as our store opens its own, and those of (c).

The table has the columns and the second index of ours. Its key is a number that the database counts: no documentation
of a peer makes the position of an event unique.
"""

import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.peers.readings import COLUMNS
from core.model.policies import embedded_path
from core.store.sqlite.schema import open_file

BUSY_TIMEOUT = 5.0  # seconds, as of SqliteDatabase
_KEY = {"sqlite": "INTEGER PRIMARY KEY AUTOINCREMENT", "server": "bigint IDENTITY PRIMARY KEY"}
_TYPES = {
    "sqlite": {"text": "TEXT", "number": "INTEGER", "bytes": "BLOB"},
    "server": {"text": "varchar(64)", "number": "bigint", "bytes": "varbinary(max)"},
}
_TABLES = {
    "sensor_reading": (
        "partition_id {text} NOT NULL, sequence_number {number} NOT NULL, home_id {text} NOT NULL,"
        " sensor_id {text} NOT NULL, kind {text} NOT NULL, state {text}, ppm {number}, observed_at {text} NOT NULL"
    ),
    "letter": "partition_id {text} NOT NULL, sequence_number {number} NOT NULL, body {bytes} NOT NULL, error {text}",
    "checkpoint_of": "partition_id {text} NOT NULL, sequence_number {number} NOT NULL, offset_token {text} NOT NULL",
}
_INDEX = "CREATE INDEX ix_reading ON {schema}sensor_reading (partition_id, observed_at, home_id, kind)"
_PLACED = ("partition_id", "sequence_number", *COLUMNS)
ERROR = 60  # characters of an error


class Table:
    """The statements of a peer. Outside `transaction`, each statement is committed by itself, under the `lock`."""

    def __init__(self, connection: Any, schema: str = "") -> None:
        self.lock = threading.Lock()  # of the one connection
        self._connection = connection
        self._insert = _insert(f"{schema}sensor_reading", _PLACED)
        self._letter = _insert(f"{schema}letter", ("partition_id", "sequence_number", "body", "error"))
        self._checkpoints = f"{schema}checkpoint_of"
        self._cursor = connection.cursor()
        if schema:
            self._cursor.fast_executemany = True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block writes, or nothing of it."""
        with self.lock:
            self._cursor.execute("BEGIN TRANSACTION")
            try:
                yield
                self._cursor.execute("COMMIT")
            except BaseException:
                self._cursor.execute("ROLLBACK")
                raise

    def add(self, row: Sequence[Any]) -> None:
        """Insert a row: partition, sequence number, and the values of the columns."""
        self._cursor.execute(self._insert, row)

    def add_all(self, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows with one call."""
        if rows:
            self._cursor.executemany(self._insert, rows)

    def add_letter(self, partition_id: str, number: int, body: bytes, error: Exception) -> None:
        """Insert a dead letter with its body."""
        self._cursor.execute(self._letter, (partition_id, number, body, str(error)[:ERROR]))

    def checkpoint(self, partition_id: str, number: int, offset: str) -> None:
        """Move the checkpoint of a partition."""
        moved = f"UPDATE {self._checkpoints} SET sequence_number = ?, offset_token = ? WHERE partition_id = ?"
        self._cursor.execute(moved, (number, offset, partition_id))
        if not self._cursor.rowcount:
            made = _insert(self._checkpoints, ("partition_id", "sequence_number", "offset_token"))
            self._cursor.execute(made, (partition_id, number, offset))

    def checkpoints(self) -> dict[str, str]:
        """Return the offset of each partition that has one."""
        self._cursor.execute(f"SELECT partition_id, offset_token FROM {self._checkpoints}")
        return {str(partition_id): str(offset) for partition_id, offset in self._cursor.fetchall()}


def open_table(store: str) -> Table:
    """Open the database of a peer, as `create_tables` has named it."""
    path = embedded_path(store)
    if path is not None:
        return Table(open_file(path, BUSY_TIMEOUT))
    connection, schema = store.rsplit("#", 1)
    return Table(open_server(connection), f"{schema}.")


def create_tables(store: str) -> str:
    """Create the tables of a peer. Return the name of the store for `open_table`: on a server, with a new schema."""
    path = embedded_path(store)
    schema = "" if path is not None else f"peer_{secrets.token_hex(4)}"
    connection = open_server(store) if path is None else open_file(Path(path), BUSY_TIMEOUT)
    if schema:
        connection.execute(f"CREATE SCHEMA {schema}")
    engine, prefix = ("server", f"{schema}.") if schema else ("sqlite", "")
    for name, columns in _TABLES.items():
        connection.execute(f"CREATE TABLE {prefix}{name} (id {_KEY[engine]}, {columns.format(**_TYPES[engine])})")
    connection.execute(_INDEX.format(schema=prefix))
    connection.close()
    return f"{store}#{schema}" if schema else store


def drop_tables(store: str) -> None:
    """Remove the schema of a peer from a server."""
    name, schema = store.rsplit("#", 1)
    connection = open_server(name)
    for table in _TABLES:
        connection.execute(f"DROP TABLE {schema}.{table}")
    connection.execute(f"DROP SCHEMA {schema}")
    connection.close()


def open_server(connection: str) -> Any:
    from core.store.sqlserver.connections import load_driver

    return load_driver().connect(connection, autocommit=True)


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"

"""A SQLite database that tests read and change through separate statements."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from core.model.commits import PartitionState
from core.model.events import Event
from tests.fakes.kept import EMBEDDED, STAGED, Engine, staged_values


class SqliteEyes(Engine):
    """Reads and changes a database on a connection that its subclass opens."""

    dialect = EMBEDDED
    _connection: sqlite3.Connection

    def sql(self, statement: str, *values: object) -> list[Any]:
        return self._connection.execute(statement, values).fetchall()

    def copy_to(self, other: sqlite3.Connection) -> None:
        """Copy the database as it is stored, with its free pages."""
        self._connection.backup(other)

    def by_hand(self, statement: str) -> list[tuple[object, ...]]:
        return self.sql(statement)

    def sql_of_many(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        with self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(statement, rows)

    def read_in_order(self, text: str, order: str) -> list[Any]:
        place = "ORDER BY t.stream_id, LENGTH(t.partition_id), t.partition_id"
        return self.sql(f"{text.format(p='')} {place}, {order}")

    def stage(self, state: PartitionState, events: Iterable[Event]) -> None:
        marks = ", ".join("?" * len(STAGED))
        text = f"INSERT INTO staged_event ({', '.join(STAGED)}) VALUES ({marks}) ON CONFLICT DO NOTHING"
        for event in events:
            self.sql(text, *staged_values(state, event))

"""The copy of the logs in a SQLite file, from which an emulator goes on where the last one ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from local.event_hubs.events import Event

# Exclusive, because two emulators on one file would give the same numbers twice. What is committed survives the death
# of the process; with synchronous = FULL it would survive that of the machine too, at an fsync for each commit.
_SCHEMA = """
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS hub (
    name TEXT NOT NULL PRIMARY KEY,
    partitions INTEGER NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS event (
    hub TEXT NOT NULL,
    partition_id TEXT NOT NULL,
    sequence_number INTEGER NOT NULL,
    "offset" INTEGER NOT NULL,
    enqueued_at INTEGER NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (hub, partition_id, sequence_number)
) WITHOUT ROWID;
"""
_FIND_HUB = "SELECT partitions, created_at FROM hub WHERE name = ?"
_ADD_HUB = "INSERT INTO hub (name, partitions, created_at) VALUES (?, ?, ?)"
_ADD_EVENT = (
    'INSERT INTO event (hub, partition_id, sequence_number, "offset", enqueued_at, payload) VALUES (?, ?, ?, ?, ?, ?)'
)
_LAST_EVENTS = (
    'SELECT sequence_number, "offset", enqueued_at, payload FROM event WHERE hub = ? AND partition_id = ?'
    " ORDER BY sequence_number DESC LIMIT ?"
)
_CUT = "DELETE FROM event WHERE hub = ? AND partition_id = ? AND sequence_number < ?"


class Disk:
    """The file; raises sqlite3.Error where it cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, timeout=1, check_same_thread=False)
        try:
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error:
            self._connection.close()
            raise

    def hub(self, name: str, partitions: int, created_at: int) -> tuple[int, int]:
        """How many partitions a hub has and when it was made; it is made with those given when it is not there."""
        found: tuple[int, int] | None = self._connection.execute(_FIND_HUB, (name,)).fetchone()
        if found:
            return found
        with self._connection:
            self._connection.execute(_ADD_HUB, (name, partitions, created_at))
        return partitions, created_at

    def last_events(self, hub: str, partition_id: str, limit: int | None) -> list[Event]:
        """The last events of a partition in sequence, at least one if there ever was one."""
        rows = self._connection.execute(_LAST_EVENTS, (hub, partition_id, -1 if limit is None else max(1, limit)))
        return [Event(*row) for row in rows][::-1]

    def add(self, hub: str, partition_id: str, events: Iterable[Event]) -> None:
        """Add events to the open transaction."""
        self._connection.executemany(_ADD_EVENT, ((hub, partition_id, *event) for event in events))

    def cut(self, hub: str, partition_id: str, before: int) -> None:
        """Remove a partition's head, in a transaction of its own.

        The caller leaves the last event, from which the numbers go on.
        """
        with self._connection:
            self._connection.execute(_CUT, (hub, partition_id, before))

    def commit(self) -> None:
        """Make the open transaction durable."""
        self._connection.commit()

    def roll_back(self) -> None:
        """Undo the open transaction."""
        self._connection.rollback()

    def close(self) -> None:
        self._connection.close()

"""The copy of the logs in a SQLite file, from which the next emulator continues."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from local.event_hubs.events import Event
from local.event_hubs.producers import Producer

# Exclusive, because two emulators on one file would give the same numbers twice. Committed events survive the death of
# the process; with synchronous = FULL they would survive a power cut too, for the price of an fsync for each commit.
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
CREATE TABLE IF NOT EXISTS producer (
    hub TEXT NOT NULL,
    partition_id TEXT NOT NULL,
    producer_id INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    batches TEXT NOT NULL,
    PRIMARY KEY (hub, partition_id, producer_id)
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
_PUT_PRODUCER = (
    "INSERT OR REPLACE INTO producer (hub, partition_id, producer_id, epoch, batches) VALUES (?, ?, ?, ?, ?)"
)
_PRODUCERS = "SELECT producer_id, epoch, batches FROM producer WHERE hub = ? AND partition_id = ?"
_EMPTY_HUB = ("DELETE FROM event WHERE hub = ?", "DELETE FROM producer WHERE hub = ?")
_RECREATE_HUB = "UPDATE hub SET created_at = ? WHERE name = ?"
_GROW_HUB = "UPDATE hub SET partitions = ? WHERE name = ?"
_CUT = "DELETE FROM event WHERE hub = ? AND partition_id = ? AND sequence_number < ?"


class Disk:
    """The file; every method raises sqlite3.Error when the file cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, timeout=1, check_same_thread=False)
        try:
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error:
            self._connection.close()
            raise

    def hub(self, name: str, partitions: int, created_at: int) -> tuple[int, int]:
        """Return the partition count and creation time of a hub; add an unknown hub with the given ones."""
        found: tuple[int, int] | None = self._connection.execute(_FIND_HUB, (name,)).fetchone()
        if found:
            return found
        with self._connection:
            self._connection.execute(_ADD_HUB, (name, partitions, created_at))
        return partitions, created_at

    def recreate(self, name: str, created_at: int) -> None:
        """Remove the events and producers of a hub and store its new time of creation, in a separate transaction."""
        with self._connection:
            for statement in _EMPTY_HUB:
                self._connection.execute(statement, (name,))
            self._connection.execute(_RECREATE_HUB, (created_at, name))

    def grow(self, name: str, partitions: int) -> None:
        """Store a higher number of partitions of a hub, in a separate transaction."""
        with self._connection:
            self._connection.execute(_GROW_HUB, (partitions, name))

    def last_events(self, hub: str, partition_id: str, limit: int | None) -> list[Event]:
        """Return the last events of a partition in sequence, at least one when it ever had one; None is no limit."""
        rows = self._connection.execute(_LAST_EVENTS, (hub, partition_id, -1 if limit is None else max(1, limit)))
        return [Event(*row) for row in rows][::-1]

    def add(self, hub: str, partition_id: str, events: Iterable[Event]) -> None:
        """Add events to the open transaction."""
        self._connection.executemany(_ADD_EVENT, ((hub, partition_id, *event) for event in events))

    def put_producers(self, hub: str, partition_id: str, producers: Mapping[int, Producer]) -> None:
        """Add the states of producers to the open transaction, in place of former ones."""
        for id_, producer in producers.items():
            batches = json.dumps(producer.batches)
            self._connection.execute(_PUT_PRODUCER, (hub, partition_id, id_, producer.epoch, batches))

    def producers(self, hub: str, partition_id: str) -> dict[int, Producer]:
        """Return the idempotent producers of a partition by their ids."""
        rows = self._connection.execute(_PRODUCERS, (hub, partition_id))
        return {
            id_: Producer(epoch, tuple((first, last) for first, last in json.loads(batches)))
            for id_, epoch, batches in rows
        }

    def cut(self, hub: str, partition_id: str, before: int) -> None:
        """Remove a partition's events before a sequence number, in a separate transaction.

        The caller must leave the last event, because its number is where the numbering continues.
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

"""The log of one partition: events in sequence, positions among them, and retention."""

import json
import re
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path

from local.event_hubs.errors import AmqpError
from local.event_hubs.events import Event, Unstamped, stamp
from local.event_hubs.lead import Lead
from local.event_hubs.producers import Producer, Producers

# Exclusive, because two emulators on one file would give the same numbers twice. Committed events survive the death of
# the process; with synchronous = FULL they would survive a power cut too, but each commit would cost an fsync.
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
    """The file. Every method raises sqlite3.Error when the file cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, timeout=1, check_same_thread=False)
        try:
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error:
            self._connection.close()
            raise

    def hub(self, name: str, partitions: int, created_at: int) -> tuple[int, int]:
        """Return the partition count and creation time of a hub. Add an unknown hub with the given ones."""
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
        """Return the last events of a partition in sequence, at least one when it ever had one. None is no limit."""
        rows = self._connection.execute(_LAST_EVENTS, (hub, partition_id, -1 if limit is None else max(1, limit)))
        return [Event(*row) for row in rows][::-1]

    def add(self, hub: str, partition_id: str, events: Iterable[Event]) -> None:
        self._connection.executemany(_ADD_EVENT, ((hub, partition_id, *event) for event in events))

    def put_producers(self, hub: str, partition_id: str, producers: Mapping[int, Producer]) -> None:
        """Add the states of producers to the open transaction, in place of former ones."""
        for id_, producer in producers.items():
            batches = json.dumps(producer.batches)
            self._connection.execute(_PUT_PRODUCER, (hub, partition_id, id_, producer.epoch, batches))

    def producers(self, hub: str, partition_id: str) -> dict[int, Producer]:
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
        self._connection.commit()

    def roll_back(self) -> None:
        self._connection.rollback()

    def close(self) -> None:
        self._connection.close()


_SELECTOR = re.compile(
    r"\s*amqp\.annotation\.x-opt-(sequence-number|offset|enqueued-time)\s*(>=?)\s*'?(@latest|-?\d{1,19})'?\s*"
)
_COLUMNS: dict[str, Callable[[Event], int]] = {
    "sequence-number": attrgetter("sequence_number"),
    "offset": attrgetter("offset"),
    "enqueued-time": attrgetter("enqueued_at"),
}
NEVER = -62_135_596_800_000  # the first instant of the year 1: the time of the last event where there never was one
_SPARE = 64  # cut events stay in the list until they are this many, and a tenth of the list


class PartitionLog:
    """The events of a partition. Sequence numbers run from 0 without a gap.

    Readers see staged events after `append_staged`. Times are milliseconds since the Unix epoch.
    """

    def __init__(
        self,
        partition_id: str,
        retained_events: int | None = None,
        lead: int | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.watchers: set[Callable[[], None]] = set()
        self.first_sequence = self.next_sequence = 0
        self.last_offset, self.last_enqueued_at = -1, NEVER
        self._retained_events = retained_events
        self._base = 0  # the sequence number of the list's first event, never after first_sequence
        self._events: list[Event] = []
        self._staged: list[Event] = []
        self._next_offset = 0
        self.producers = Producers()
        if lead is not None and retained_events is not None:
            lead = min(lead, retained_events // 2)  # so that no event expires before its owner
        self.lead = Lead(self, lead)

    @property
    def last_sequence(self) -> int:
        """The last number given, even when retention has cut its event, or -1 before the first event."""
        return self.next_sequence - 1

    @property
    def staged(self) -> Sequence[Event]:
        """The events that are neither appended nor dropped yet."""
        return self._staged

    def stage(self, events: Sequence[Unstamped], now: int) -> None:
        """Give events their numbers, offsets and time. The time never goes back within a partition."""
        last = self._staged[-1] if self._staged else None
        sequence = self.next_sequence + len(self._staged)
        offset = last.offset + len(last.payload) if last else self._next_offset
        enqueued_at = max(now, last.enqueued_at if last else self.last_enqueued_at)
        for event in events:
            stamped = stamp(event, sequence, offset, enqueued_at)
            self._staged.append(stamped)
            sequence, offset = sequence + 1, offset + len(stamped.payload)

    def append_staged(self) -> None:
        """Let readers see the staged events."""
        self.producers.append_staged()
        staged, self._staged = self._staged, []
        self.load(staged)

    def drop_staged(self) -> None:
        """Drop the staged events. Their numbers are given again."""
        self.producers.drop_staged()
        self._staged = []

    def load(self, events: Sequence[Event]) -> None:
        """Append events in sequence that already have their places."""
        if not events:
            return
        if not self.next_sequence:
            self._base = self.first_sequence = events[0].sequence_number
        last = events[-1]
        self._events += events
        self.next_sequence, self._next_offset = last.sequence_number + 1, last.offset + len(last.payload)
        self.last_offset, self.last_enqueued_at = last.offset, last.enqueued_at

    def read(self, sequence: int, count: int) -> list[Event]:
        """Return up to `count` events in sequence, from this number or from the first retained one after it."""
        start = max(sequence, self.first_sequence) - self._base
        return self._events[start : start + count]

    def position(self, selector: str | None) -> int:
        """Return the number of the first event for a reader with this selector, or without one the first retained.

        Raises AmqpError com.microsoft:argument-error for an unknown selector or a position past the end.
        """
        if selector is None:
            return self.first_sequence
        match = _SELECTOR.fullmatch(selector)
        if not match:
            raise AmqpError("com.microsoft:argument-error", f"unsupported selector: {selector}")
        name, operator, bound = match.groups()
        if bound == "@latest":
            return self.next_sequence
        self._refuse_past_end(name, int(bound))
        bisect = bisect_left if operator == ">=" else bisect_right
        return self._base + bisect(self._events, int(bound), lo=self.first_sequence - self._base, key=_COLUMNS[name])

    def _refuse_past_end(self, name: str, bound: int) -> None:
        """Refuse, in the service's words, a position past the end: a checkpoint from a hub that was created again."""
        last = {"sequence-number": self.last_sequence, "offset": self.last_offset}.get(name)
        if last is not None and bound > last:
            kind = name.replace("-", " ")
            raise AmqpError(
                "com.microsoft:argument-error",
                f"The supplied {kind} '{bound}' is invalid. The last {kind} in the system is '{last}'",
            )

    def expire(self) -> bool:
        """Cut the events past retention. Return True when they left memory, so that the disk can be cut too."""
        retained = self.next_sequence if self._retained_events is None else self._retained_events
        return self._cut(max(self.first_sequence, self.next_sequence - retained))

    def expire_before(self, sequence: int) -> None:
        """Cut the events before a sequence number, as retention would."""
        self._cut(min(max(sequence, self.first_sequence), self.next_sequence))

    def _cut(self, first: int) -> bool:
        self.first_sequence = first
        spare = first - self._base
        if spare < _SPARE or spare < len(self._events) // 10:
            return False
        del self._events[:spare]
        self._base = first
        return True

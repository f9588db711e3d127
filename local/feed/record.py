"""The record: one SQLite file with the expected outcome of every published event, written while the feed runs."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from local.feed.businesses import Domain
from local.feed.planned_events import LETTERS, Minute

FLUSH = 2_000  # the limit of events in memory

_SCHEMA = """
CREATE TABLE event (
    number        INTEGER NOT NULL PRIMARY KEY,  -- the order of publishing
    partition_key TEXT,
    at_least      INTEGER NOT NULL,              -- copies in the hub: 1 and 1, unless an answer was lost
    at_most       INTEGER NOT NULL,
    outcome       TEXT NOT NULL,                 -- written, filtered, or a letter: poison, reference; or published
    {columns},
    body          BLOB                           -- of letters only
) STRICT;
CREATE TABLE feed (
    transform TEXT NOT NULL, seed INTEGER NOT NULL, senders INTEGER NOT NULL, complete INTEGER NOT NULL
) STRICT;
"""
_COMMON_COLUMNS = 6


class RecordExists(Exception):
    """The file exists although the record is new, or does not exist although it is added to."""


@dataclass(frozen=True, slots=True)
class Copies:
    """The number of copies of a send in the hub: 1 and 1 when it was answered, a range when an answer was lost."""

    at_least: int = 1
    at_most: int = 1


ONCE = Copies()


class Record:
    """Written while the feed runs, by one caller at a time. The recount accepts only a complete record."""

    def __init__(self, path: Path, domain: Domain, seed: int, senders: int, *, is_added_to: bool = False) -> None:
        if path.exists() is not is_added_to:
            raise RecordExists(
                f"{path} does not exist: only the record of an earlier feed can be added to"
                if is_added_to
                else f"{path} exists: a record belongs to one feed, name a new file"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        if is_added_to:
            self._connection.execute("UPDATE feed SET complete = 0")
        else:
            self._connection.executescript(_SCHEMA.format(columns=", ".join(domain.columns)))
            self._connection.execute("INSERT INTO feed VALUES (?, ?, ?, 0)", (domain.transform, seed, senders))
        self._insert = f"INSERT INTO event VALUES ({', '.join('?' * (_COMMON_COLUMNS + len(domain.columns)))})"
        self._rows: list[tuple[object, ...]] = []
        self._number = int(self._connection.execute("SELECT COALESCE(MAX(number), 0) FROM event").fetchone()[0])

    def add(self, minute: Minute, copies: Copies) -> None:
        """Record a published minute, with the copies that may be in the hub."""
        key, least, most, number = minute.partition_key, copies.at_least, copies.at_most, self._number
        for body, expected, _ in minute.events:
            number += 1
            stored = body if expected[0] in LETTERS else None
            self._rows.append((number, key, least, most, *expected, stored))
        self._number = number
        if len(self._rows) >= FLUSH:
            self._flush()

    def complete(self) -> None:
        """Mark the record as complete: the feed has ended, and every published event is here."""
        self._flush()
        self._connection.execute("UPDATE feed SET complete = 1")

    def close(self) -> None:
        """Write the rest, and close the file."""
        self._flush()
        self._connection.close()

    def _flush(self) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany(self._insert, self._rows)
        self._connection.execute("COMMIT")
        self._rows.clear()


class NoRecord:
    """The record of a feed that nothing recounts."""

    def add(self, minute: Minute, copies: Copies) -> None:
        """Ignore the minute."""

    def complete(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def published_copies(path: Path) -> Copies:
    """Return the least and the greatest number of events in the hub, by a complete record."""
    connection = sqlite3.connect(path)
    try:
        least, most = connection.execute("SELECT TOTAL(at_least), TOTAL(at_most) FROM event").fetchone()
    finally:
        connection.close()
    return Copies(int(least), int(most))

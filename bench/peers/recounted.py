"""Count the rows that a consumer lost and doubled: compare its database with the record of the feed.

No code of the app takes part. Rows with equal content are counted, since nothing tells them apart.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.peers.run import OURS, Consumer
from core.model.policies import embedded_path
from local.recount.recount import recounting
from local.stack.app_totals import reading

_OF_READINGS = "kind IS NOT NULL AND kind <> 'registration'"
_ROWS = f"""
SELECT SUM(at_least), SUM(at_most), SUM(found) FROM (
    SELECT partition_key AS home_id, sensor_id, kind, state, ppm, observed_us, at_least, at_most, 0 AS found
    FROM record.event WHERE {_OF_READINGS}
    UNION ALL
    SELECT home_id, sensor_id, kind, state, ppm, instant(observed_at), 0, 0, 1 FROM sensor_reading
) GROUP BY home_id, sensor_id, kind, state, ppm, observed_us
"""
_LETTERS = """
SELECT SUM(at_least), SUM(at_most), SUM(found) FROM (
    SELECT body, at_least, at_most, 0 AS found FROM record.event WHERE outcome = 'poison'
    UNION ALL SELECT body, 0, 0, 1 FROM {letters}
) GROUP BY body
"""


@dataclass(frozen=True, slots=True)
class Recounted:
    """The rows and the letters that are missing, and those that are too many."""

    lost: int
    doubled: int
    letters_lost: int
    letters_doubled: int

    @property
    def wrong(self) -> int:
        """All that is missing or too many."""
        return self.lost + self.doubled + self.letters_lost + self.letters_doubled


@dataclass(frozen=True, slots=True)
class Published:
    """The events of a feed, those that make a row, and those that are poison."""

    events: int
    rows: int
    poison: int


def published(record: Path) -> Published:
    """Count what a feed has published."""
    query = f"SELECT SUM(at_least), SUM(({_OF_READINGS}) * at_least), SUM((outcome = 'poison') * at_least) FROM event"
    with reading(record) as connection:
        return Published(*map(int, connection.execute(query).fetchone()))


def recounted(consumer: Consumer, record: Path) -> Recounted:
    """Compare the database of a consumer, which has ended, with a record."""
    path = embedded_path(consumer.store)
    if path is None:
        raise ValueError("only an embedded store is recounted")
    letters = "event_hub_dead_letter" if consumer.kind in OURS else "letter"
    with recounting(path, record) as connection:
        return Recounted(*_difference(connection, _ROWS), *_difference(connection, _LETTERS.format(letters=letters)))


def _difference(connection: sqlite3.Connection, query: str) -> tuple[int, int]:
    found: Iterable[tuple[int, int, int]] = connection.execute(query)
    lost = doubled = 0
    for least, most, count in found:
        lost += max(0, least - count)
        doubled += max(0, count - most)
    return lost, doubled

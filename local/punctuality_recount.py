"""The recount of the aggregate: flight_punctuality against the feed's record, added up again by plain Python."""

import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from local.aggregate_recount import EPOCH, Recounted, added_up, begins_at
from local.recount import recounting

# The published changes, with the least and the greatest number of copies.
_PUBLISHED = """
SELECT carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us,
    SUM(surely), SUM(at_most)
FROM expected WHERE outcome = 'written'
GROUP BY carrier, flight_number, departure_date, status, departure_gate, departs_us, arrives_us, changed_us
"""
# Where an answer was lost, only the store holds the number of copies; the recount of rows checks its limits.
_STORED = """
SELECT COUNT(*) FROM flight_change
WHERE carrier = ? AND flight_number = ? AND departure_date = ? AND status = ? AND departure_gate IS ?
    AND instant(departs_at) IS ? AND instant(arrives_at) IS ? AND instant(changed_at) = ?
"""
_PUNCTUALITY = """
SELECT carrier, instant(window_start), changes, delayed, cancelled, diverted, departed, arrived,
    instant(first_changed_at), instant(last_changed_at)
FROM flight_punctuality
"""


class Window(NamedTuple):
    """The day of departure of a carrier's flights; its beginning is in microseconds since 1970, UTC."""

    carrier: str
    start_us: int

    def __str__(self) -> str:
        """Return the window in a form for people."""
        return f"{self.carrier} {begins_at(self.start_us):%Y-%m-%d}"


class Sums(NamedTuple):
    """The sums of a window: its changes, some by their status, and the instants of the first and the last one."""

    changes: int
    delayed: int
    cancelled: int
    diverted: int
    departed: int
    arrived: int
    first_us: int
    last_us: int


def recount_punctuality(store: Path, record: Path) -> Recounted:
    """Add up the published changes, and read the aggregate of the store."""
    with recounting(store, record) as connection:
        expected = added_up(_changes(connection), _added)
        found = {Window(*row[:2]): Sums(*row[2:]) for row in connection.execute(_PUNCTUALITY)}
        return Recounted("flight_punctuality", expected, found)


def _changes(connection: sqlite3.Connection) -> Iterator[tuple[Window, Sums, int]]:
    for *change, least, most in connection.execute(_PUBLISHED).fetchall():
        copies = least if least == most else connection.execute(_STORED, change).fetchone()[0]
        carrier, _, day, status, _, _, _, changed_us = change
        start_us = (datetime.fromisoformat(f"{day}T00:00:00+00:00") - EPOCH) // timedelta(microseconds=1)
        yield Window(carrier, start_us), _one(status, changed_us), copies


def _one(status: str, changed_us: int) -> Sums:
    """Return the sums of one change."""
    return Sums(
        1,
        int(status == "delayed"),
        int(status == "cancelled"),
        int(status == "diverted"),
        int(status == "departed"),
        int(status == "arrived"),
        changed_us,
        changed_us,
    )


def _added(one: Sums, other: Sums) -> Sums:
    return Sums(
        one.changes + other.changes,
        one.delayed + other.delayed,
        one.cancelled + other.cancelled,
        one.diverted + other.diverted,
        one.departed + other.departed,
        one.arrived + other.arrived,
        min(one.first_us, other.first_us),
        max(one.last_us, other.last_us),
    )

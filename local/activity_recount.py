"""The recount of home_activity and its coarser levels: the feed's record, added up a second time by plain Python."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from local.aggregate_recount import Recounted, added_up, begins_at
from local.recount import recounting

MINUTE_US = 60 * 1_000_000
WINDOW_US = 15 * MINUTE_US
COARSER_US = {"home_activity_hour": 60 * MINUTE_US, "home_activity_day": 24 * 60 * MINUTE_US}

# The published readings, with the least and the greatest number of copies.
_PUBLISHED = """
SELECT partition_key, kind, state, ppm, observed_us, sensor_id, SUM(surely), SUM(at_most)
FROM expected WHERE kind <> 'registration'
GROUP BY partition_key, kind, state, ppm, observed_us, sensor_id
"""
# Where an answer was lost, only the store holds the number of copies; the recount of rows checks its limits.
_STORED = """
SELECT COUNT(*) FROM sensor_reading
WHERE home_id = ? AND kind = ? AND state IS ? AND ppm IS ? AND instant(observed_at) = ? AND sensor_id = ?
"""
_ACTIVITY = """
SELECT home_id, kind, instant(window_start), readings, active, ppm_hundredths, least_ppm_hundredths,
    most_ppm_hundredths, instant(first_observed_at), instant(last_observed_at)
FROM {table}
"""


class Window(NamedTuple):
    """A window of a home's sensors of one kind, by event time; instants in microseconds since 1970."""

    home_id: str
    kind: str
    start_us: int

    def __str__(self) -> str:
        """Return the window in a form for people."""
        return f"{self.home_id} {self.kind} {begins_at(self.start_us):%Y-%m-%d %H:%M}"


class Sums(NamedTuple):
    """The sums of a window; parts per million are in hundredths, None where no sensor measures them."""

    readings: int
    active: int
    ppm_hundredths: int | None
    least_ppm_hundredths: int | None
    most_ppm_hundredths: int | None
    first_us: int
    last_us: int


def recount_activity(store: Path, record: Path) -> Recounted:
    """Add up the published readings for each level, and read the levels of the store."""
    with recounting(store, record) as connection:
        readings = list(_readings(connection))
        coarser = tuple(_recounted(connection, readings, *level) for level in COARSER_US.items())
        return replace(_recounted(connection, readings, "home_activity", WINDOW_US), coarser=coarser)


def _recounted(
    connection: sqlite3.Connection, readings: Iterable[tuple[Window, Sums, int]], table: str, window_us: int
) -> Recounted:
    begun = (
        (one._replace(start_us=one.start_us - one.start_us % window_us), sums, copies) for one, sums, copies in readings
    )
    found = {Window(*row[:3]): Sums(*row[3:]) for row in connection.execute(_ACTIVITY.format(table=table))}
    return Recounted(table, added_up(begun, _added), found)


def busiest_home(recounted: Recounted) -> str | None:
    """Return the home with the most readings in the aggregate; None when nothing was aggregated."""
    readings: Counter[str] = Counter()
    for window, sums in recounted.found.items():
        readings[window.home_id] += sums.readings
    return max(readings, key=lambda home_id: (readings[home_id], home_id), default=None)


def _readings(connection: sqlite3.Connection) -> Iterator[tuple[Window, Sums, int]]:
    """Return each published reading as a window that begins with it."""
    for home_id, kind, state, ppm, at, sensor_id, least, most in connection.execute(_PUBLISHED).fetchall():
        copies = least
        if least != most:
            copies = connection.execute(_STORED, (home_id, kind, state, ppm, at, sensor_id)).fetchone()[0]
        hundredths = None if ppm is None else 100 * ppm
        one = Sums(1, int(state == "active"), hundredths, hundredths, hundredths, at, at)
        yield Window(home_id, kind, at), one, copies


def _added(one: Sums, other: Sums) -> Sums:
    return Sums(
        one.readings + other.readings,
        one.active + other.active,
        *_ppm(one, other),
        min(one.first_us, other.first_us),
        max(one.last_us, other.last_us),
    )


def _ppm(one: Sums, other: Sums) -> tuple[int | None, int | None, int | None]:
    """Return sum, minimum and maximum of two windows' parts per million; None where neither measures them."""
    sums = [value for value in (one.ppm_hundredths, other.ppm_hundredths) if value is not None]
    least = [value for value in (one.least_ppm_hundredths, other.least_ppm_hundredths) if value is not None]
    most = [value for value in (one.most_ppm_hundredths, other.most_ppm_hundredths) if value is not None]
    return sum(sums) if sums else None, min(least, default=None), max(most, default=None)

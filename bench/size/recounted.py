"""The recount of a run of the story: every published event is accounted for once, by the store against the record."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.size.published import Expectation, Sums, compared
from local.feed.businesses import HOMES
from local.recount.recount import recount
from local.stack.app_totals import reading

TELL_EVERY = 2_000_000  # rows
_READINGS = "SELECT observed_at, home_id, sensor_id, kind, state, ppm FROM sensor_reading"
_ALERTS = "SELECT observed_at, home_id, sensor_id, kind, ppm FROM home_alert"
_HOMES = "SELECT home_id, time_zone, armed FROM home"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def recounted(store: Path, record: Path, expected: Path) -> list[str]:
    """Return the differences between a store and what was published.

    The ledger, the checkpoints, the outcomes and each letter are compared by the feed's own recount, without its
    comparison of rows: the rows are compared by number and checksum.
    """
    return [
        *recount(store, record, replace(HOMES, multisets={})),
        *compared(Expectation.load(expected), found_in(store)),
    ]


def found_in(store: Path) -> dict[str, Sums]:
    """Return the sums of the rows of each table."""
    found = {"sensor_reading": Sums(), "home_alert": Sums(), "home": Sums()}
    with reading(store) as connection:
        for name, query in (("sensor_reading", _READINGS), ("home_alert", _ALERTS)):
            for observed_at, *values in _told(name, connection, query):
                found[name].add(*values, (datetime.fromisoformat(observed_at) - _EPOCH) // _MICROSECOND)
        for values in connection.execute(_HOMES):
            found["home"].add(*values)
    return found


def _told(name: str, connection: sqlite3.Connection, query: str) -> Iterator[tuple[str, ...]]:
    with closing(connection.execute(query)) as rows:
        for number, row in enumerate(rows, 1):
            if number % TELL_EVERY == 0:
                print(f"  {name}: {number:,} rows recounted", file=sys.stderr, flush=True)
            yield row

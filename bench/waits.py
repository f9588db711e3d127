"""The seconds of each event from its enqueued time, in the file of the local hub, to the time of its commit."""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import repeat
from pathlib import Path

from core.store.columns import instant_of
from local.stack.app_totals import LiveStore, select

_COMMITS = """
SELECT partition_id, first_sequence_number, last_sequence_number, committed_at FROM batch_ledger WHERE kind = 'batch'
"""
_COUNT = "SELECT COUNT(*) FROM event WHERE hub = ? AND enqueued_at >= ?"
_ENQUEUED = """
SELECT enqueued_at FROM event
 WHERE hub = ? AND partition_id = ? AND sequence_number BETWEEN ? AND ? AND enqueued_at >= ?
"""


def waits(hub_file: Path, hub: str, store: LiveStore, since: float) -> list[float]:
    """Return the waits, in order of size, of the events that were enqueued since a second of the epoch.

    The wait of an event without a commit is infinite. The emulator must have ended: it locks its file. The ledger's
    time of a commit is read before its transaction, so the transaction itself is not in the wait.
    """
    with closing(sqlite3.connect(f"{hub_file.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        found = sorted(_waits(connection, hub, store, since))
        (enqueued,) = connection.execute(_COUNT, (hub, 1000 * since)).fetchone()
        return [*found, *repeat(math.inf, enqueued - len(found))]


def _waits(connection: sqlite3.Connection, hub: str, store: LiveStore, since: float) -> Iterator[float]:
    for partition_id, first, last, committed_at in select(store, _COMMITS):
        at = instant_of(committed_at).timestamp()
        for (enqueued,) in connection.execute(_ENQUEUED, (hub, partition_id, first, last, 1000 * since)):
            yield at - enqueued / 1000


def percentile(ordered: list[float], percent: float) -> float:
    """Return the least value that so many percent of the values do not exceed."""
    return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)]

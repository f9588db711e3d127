"""The time from the stamp of an event in the hub to the stamp of the commit that accounts for it."""

import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

_ENQUEUED = "SELECT partition_id, sequence_number, enqueued_at FROM event WHERE hub = ? AND enqueued_at >= ?"
_COMMITTED = """
SELECT partition_id, first_sequence_number, last_sequence_number, committed_at FROM batch_ledger WHERE kind = 'batch'
"""


def latencies(events: Path, store: Path, hub: str, since: float) -> list[float]:
    """Return the seconds of each event of the hub since an instant of the epoch, sorted; the emulator has ended.

    Raises RuntimeError when an event is in no commit, because its time is then unknown, and would be the longest.
    """
    with closing(sqlite3.connect(events)) as connection:
        found = connection.execute(_ENQUEUED, (hub, 1_000 * since)).fetchall()
    enqueued = {(partition, number): at / 1_000 for partition, number, at in found}
    with closing(sqlite3.connect(store)) as connection:
        commits = connection.execute(_COMMITTED).fetchall()
    taken = []
    for partition, first, last, text in commits:
        at = datetime.fromisoformat(text).timestamp()
        numbers = range(first, last + 1)
        taken += [at - begun for number in numbers if (begun := enqueued.pop((partition, number), None)) is not None]
    if enqueued:
        raise RuntimeError(f"{len(enqueued):,} events are in no commit")
    return sorted(taken)

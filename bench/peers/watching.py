"""Watch a consumer from outside: the rows in its store and when each was committed, its CPU time and memory."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from bench import usage
from bench.peers.run import OURS, Consumer
from bench.peers.table import open_server
from core.model.policies import embedded_path
from local.stack.app_totals import reading
from local.stack.processes import Child

LOOK_EVERY = 0.05  # seconds
POLL = 0.002  # seconds between two questions whether something was committed
TAIL = 30  # the last events of a partition may have no rows
_ROWS = "SELECT COUNT(*) FROM {schema}sensor_reading"
_CHECKPOINTS = "SELECT partition_id, sequence_number FROM event_hub_checkpoint"
_LAST_ROWS = "SELECT partition_id, MAX(sequence_number) FROM sensor_reading GROUP BY partition_id"
_NEW_ROWS = "SELECT id, partition_id, sequence_number FROM sensor_reading WHERE id > ? ORDER BY id"
# A partition, the number before the first event, the number of the last one, and the second of the epoch.
Committed = tuple[str, int, int, float]


@dataclass(frozen=True, slots=True)
class Look:
    """A look at a run: the second, the rows in the store, and the seconds of the processor."""

    seconds: float
    rows: int
    cpu: float


@dataclass(frozen=True, slots=True)
class Measured:
    """A run: events a second, microseconds of the processor per event, MB at the peak, and the bytes of the store."""

    rate: float
    cpu: float
    peak: float
    stored: float


def rows_of(consumer: Consumer) -> Callable[[], int]:
    """Return a function that counts the rows of a consumer's store."""
    path = embedded_path(consumer.store)
    if path is not None:
        return lambda: _counted(path)
    connection, _, schema = consumer.store.partition("#")
    server = open_server(connection)
    query = _ROWS.format(schema=f"{schema or 'hubledger'}.")
    return lambda: int(server.execute(query).fetchone()[0])


def positions_of(consumer: Consumer) -> dict[str, int]:
    """Return the last sequence number of each partition in an embedded store: of a checkpoint of ours, or of a row."""
    path = embedded_path(consumer.store)
    if path is None:
        return {}
    with reading(path) as connection:
        return dict(connection.execute(_CHECKPOINTS if consumer.kind in OURS else _LAST_ROWS).fetchall())


def has_read(consumer: Consumer, last: Mapping[str, int], tail: int = TAIL) -> bool:
    """Return True when a consumer has read up to these numbers, or without a checkpoint nearly so far."""
    reached, most = positions_of(consumer), 0 if consumer.kind in OURS else tail
    return all(reached.get(id, -1) >= number - most for id, number in last.items())


def watch(child: Child, consumer: Consumer, rows: int, seconds: float) -> list[Look]:
    """Look from now, when the consumer is ready, until the store has so many rows, or until the time is over."""
    count, ends = rows_of(consumer), time.monotonic() + seconds
    looks = [Look(time.monotonic(), 0, cpu_of_family(child.pid))]
    while looks[-1].rows < rows and looks[-1].seconds < ends:
        time.sleep(LOOK_EVERY)
        child.refuse_dead()
        looks.append(Look(time.monotonic(), count(), cpu_of_family(child.pid)))
    return looks


def measured(looks: list[Look], events_per_row: float, peak: float, stored: float) -> Measured:
    """Return the rate and the price of a whole run, in events.

    A later beginning or an earlier end would leave out the work for events that the client has prefetched by then.
    """
    begin, end = looks[0], looks[-1]
    events = max(1, end.rows) * events_per_row
    return Measured(events / (end.seconds - begin.seconds), 1e6 * (end.cpu - begin.cpu) / events, peak, stored / events)


def cpu_of_family(pid: int) -> float:
    """Return the seconds of the processor of a process and its children."""
    return _together(pid, usage.cpu_of)


def peak_of_family(pid: int) -> float:
    """Return the MB of a process and its children at their peak."""
    return _together(pid, usage.peak_of)


def stored_by(consumer: Consumer) -> float:
    """Return the bytes of a store, after its log was written into it, or 0 on a server."""
    path = embedded_path(consumer.store)
    if path is None:
        return 0.0
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return float(path.stat().st_size)


def watch_commits(consumer: Consumer, going_on: Callable[[], bool]) -> Iterator[Committed]:
    """Yield what other connections see as committed, with the time at which they do, while it goes on."""
    path = embedded_path(consumer.store)
    if path is None:
        return
    progress = _checkpoints if consumer.kind in OURS else _new_rows
    with reading(path) as connection:
        seen, version = progress(connection), -1
        next(seen)
        while going_on():
            found = connection.execute("PRAGMA data_version").fetchone()[0]
            if found == version:
                time.sleep(POLL)
                continue
            version, at = found, time.time()
            yield from ((*place, at) for place in next(seen))


def _checkpoints(connection: sqlite3.Connection) -> Iterator[list[tuple[str, int, int]]]:
    seen: dict[str, int] = {}
    while True:
        moved = [(id, seen.get(id, -1), number) for id, number in connection.execute(_CHECKPOINTS).fetchall()]
        seen |= {id: number for id, _, number in moved}
        yield [place for place in moved if place[2] > place[1]]


def _new_rows(connection: sqlite3.Connection) -> Iterator[list[tuple[str, int, int]]]:
    last = 0
    while True:
        found = connection.execute(_NEW_ROWS, (last,)).fetchall()
        last = found[-1][0] if found else last
        yield [(id, number - 1, number) for _, id, number in found]


def _counted(path: Path) -> int:
    with reading(path) as connection:
        return int(connection.execute(_ROWS.format(schema="")).fetchone()[0])


def _together(pid: int, read: Callable[[int], float]) -> float:
    total = 0.0
    for each in usage.family(pid):
        with suppress(OSError):  # the process has ended
            total += read(each)
    return total

"""Replay into SQLite: events per second, committed and as a dry run, with a transform of the app and real bodies."""

import tempfile
import uuid
from collections.abc import Callable, Generator, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import perf_counter

from bench.figures import Figure
from bench.samples import PARTITION, ROOMS, SIZE, START
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import Event, EventBatch, Partition, SequenceNumber
from core.model.ports import Clock, Extent, Place
from core.replay.request import ReplayOrder
from core.replay.store import Replays
from core.replay.task import ReplayKind, replay_task
from core.settle.partition_store import Partitions
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite
from core.tasks.run import open_parts, open_task, work_on
from core.tasks.task import TaskOrder
from core.transforms.loading import load_transform

EVENTS, HOMES = 30_000, 1_000
TARGET = 5_000  # events a second
STAMPS = Clock(lambda: datetime.now(UTC), uuid.uuid4)


class ListedHub:
    """A hub with its events in memory, so that only the replay is measured."""

    def __init__(self, events: list[Event]) -> None:
        self._events = events

    def partitions(self) -> tuple[Partition, ...]:
        return (PARTITION,)

    def created_at(self) -> datetime:
        return START

    def extent(self, partition: Partition) -> Extent:
        return Extent(SequenceNumber(0), self._events[-1].sequence_number, self._events[-1].enqueued_at)

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        return next((event for event in self._events if event.sequence_number == place), None)

    def find_event(self, partition: Partition, sequence_number: SequenceNumber) -> Event | None:
        return self.first_at(partition, sequence_number)

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        yield from self._events[first : last + 1]


def measure() -> Iterator[Figure]:
    """Measure a committed replay and a dry run."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        database = _ingested(Path(folder) / "store.db")
        store = Replays(database, Partitions(database))
        for name, is_dry_run in (("replay into SQLite", False), ("dry run of a replay in SQLite", True)):
            rate = EVENTS / _timed(partial(_replay, store, is_dry_run))
            yield Figure(name, rate, "events/s", f">= {TARGET:,}", rate >= TARGET)
        database.close()


def _timed(run: Callable[[], object]) -> float:
    started = perf_counter()
    run()
    return perf_counter() - started


def _replay(store: Replays, is_dry_run: bool) -> None:
    transform = load_transform("examples.home_security")
    means = ReplayKind(PARTITION.stream, store, ListedHub(_events()), transform, STAMPS)
    order = TaskOrder(
        STAMPS.new_id(), store.partitions.open_stream(PARTITION.stream), "bench", "to be measured", STAMPS.now()
    )
    wanted = ReplayOrder(None, None, None, "{}", is_dry_run)
    job_id = open_task(replay_task(order, wanted, means, EVENTS), means.tasks).task_id
    while ids := open_parts(job_id, means):
        for id in ids:
            work_on(job_id, id, means, datetime.now(UTC) + timedelta(seconds=30))
    job = store.find_replay(job_id)
    if job is None or (job.task.status, job.counts.events, job.counts.events_changed) != ("done", EVENTS, 0):
        raise RuntimeError(f"the replay did not end as expected, with {EVENTS} unchanged events: {job}")


def _ingested(path: Path) -> SqliteDatabase:
    migrate_sqlite(path, ROOMS)
    database, transform, events = SqliteDatabase(path), load_transform("examples.home_security"), _events()
    store = Partitions(database)
    for start in range(0, EVENTS, SIZE):
        given = EventBatch(PARTITION, tuple(events[start : start + SIZE]), "bench")
        ingest_batch(given, Ingestion(store, transform, STAMPS))
    return database


def _events() -> list[Event]:
    """Return registrations of homes and then their readings, of which one in ten is an alert."""
    return [Event(SequenceNumber(n), str(n * 200), START, None, {}, _body(n)) for n in range(EVENTS)]


def _body(number: int) -> bytes:
    home = b'"home_id":"H%06d"' % (number % HOMES)
    if number < HOMES:
        return b'{"kind":"registration",%b,"time_zone":"Europe/Berlin","armed":false}' % home
    kind = b"glass_break" if number % 10 == 0 else b"motion"
    at = b'"observed_at":"2026-01-01T12:00:00.5Z"'
    return b'{"kind":"%b",%b,"sensor_id":"S1","state":"active",%b}' % (kind, home, at)

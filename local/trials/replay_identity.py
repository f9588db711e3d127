"""Replay identity: a replay of all events writes the rows that their first ingestion wrote."""

import random
import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from itertools import count, islice, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

from msgspec import structs

from core.ingest.ingest import Ingestion, ingest_batch
from core.model.event_keys import under_key
from core.model.events import Event, EventBatch, Partition, PartitionId, SequenceNumber, Stream
from core.model.ports import Clock, Extent, Place
from core.model.rows import Row
from core.model.transforms import Transform
from core.replay.request import ReplayOrder
from core.replay.store import Replays
from core.replay.task import ReplayKind, replay_task
from core.settle.partition_store import Partitions
from core.store.columns import row_reader
from core.store.database import Database
from core.store.script import of_rows
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite
from core.tasks.run import open_parts, open_task, work_on
from core.tasks.task import TaskOrder
from core.transforms.loading import Room, rooms_of
from local.trials.outcomes import BEGINNING, Given, event_of, shown, transform_of


@cache
def migrated(rooms: tuple[Room, ...] = ()) -> bytes:
    """Return a database with our migrations and those of rooms.

    It is made once in a process, because migrations take longer than most tests.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        migrate_sqlite(path, rooms)
        return path.read_bytes()


def memory_connection(rooms: tuple[Room, ...] = ()) -> sqlite3.Connection:
    """Return a connection to a new, migrated database in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.deserialize(_without_wal(migrated(rooms)))
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _without_wal(database: bytes) -> bytes:
    """Return a database whose header asks for no write-ahead log, which memory cannot have."""
    return database[:18] + b"\x01\x01" + database[20:]


STREAM = Stream("trial/events", "trial")
EVENTS, KNOWN = (STREAM.partition(PartitionId(name)) for name in ("0", "known"))
DAY = timedelta(days=1)


def register(rows: Sequence[Row], means: Ingestion) -> None:
    """Write states that the store has before the first event."""
    if rows:
        seeding = Transform("known/1", lambda event, _: rows)
        ingest_batch(EventBatch(KNOWN, (event_of(b""),), "known"), replace(means, transform=seeding))


def replay_all(means: ReplayKind, *, is_dry_run: bool) -> UUID:
    """Replay every event of a trial to the end, and return the id of the job."""
    stream_id, now = means.store.partitions.open_stream(means.stream), means.clock.now()
    order = TaskOrder(means.clock.new_id(), stream_id, "trial", "replay of every event", now)
    wanted = ReplayOrder((EVENTS.partition_id,), None, None, "{}", is_dry_run)
    last = means.hub.extent(EVENTS).last
    job_id = open_task(replay_task(order, wanted, means, most_events=last + 1), means.tasks).task_id
    while partition_ids := open_parts(job_id, means):
        for each in partition_ids:
            work_on(job_id, each, means, means.clock.now() + DAY)
    return job_id


class TrialLog:
    """A HubReader over one partition that still has every event. `read` begins with number 0 each time."""

    def __init__(self, read: Callable[[], Iterable[Event]], events: int) -> None:
        self._read = read
        self._events = events

    def partitions(self) -> tuple[Partition, ...]:
        return (EVENTS,)

    def created_at(self) -> datetime:
        return BEGINNING

    def extent(self, partition: Partition) -> Extent:
        return Extent(SequenceNumber(0), SequenceNumber(self._events - 1), BEGINNING + timedelta(seconds=self._events))

    def first_at(self, partition: Partition, place: Place) -> Event | None:
        return next(iter(self._read()), None)  # a trial asks for the ends only

    def find_event(self, partition: Partition, sequence_number: SequenceNumber) -> Event | None:
        return next(self.read_range(partition, sequence_number, sequence_number, BEGINNING), None)

    def read_range(
        self, partition: Partition, first: SequenceNumber, last: SequenceNumber, deadline: datetime
    ) -> Generator[Event, None, None]:
        yield from islice(self._read(), first, last + 1)


BATCH = 7  # events, so that a few events make several commits
NOW = BEGINNING + timedelta(days=365)

Written = dict[int, list[Row]]  # the rows of each sequence number


def check_replay_identity(transform: Given, events: Iterable[object], *, references: Iterable[Row] = ()) -> None:
    """Assert that a replay of these events, in this order, writes the rows that their ingestion wrote.

    The events go through the app's own ingestion and replay, into SQLite in memory with all migrations. `references`
    are states that the store has before the first event. Raises SchemaMismatch when a row class has no table.
    """
    loaded, known = transform_of(transform), tuple(references)
    log = [
        under_key(structs.replace(event_of(each, number=at), sequence_number=SequenceNumber(at)), loaded.key_of)
        for at, each in enumerate(events)
    ]
    connection = memory_connection(rooms_of(loaded.row_classes))
    with closing(SqliteDatabase(Path(":memory:"), connect=lambda: connection, needed=loaded.row_classes)) as database:
        means = Ingestion(Partitions(database), loaded, _clock())
        register(known, means)
        for at in range(0, len(log), BATCH):
            ingest_batch(EventBatch(EVENTS, tuple(log[at : at + BATCH]), f"batch {at}"), means)
        before = _written(database, loaded, len(log))
        if not any(before.values()):
            raise AssertionError("no event became a row, so that a replay shows nothing: give events that do")
        hub = TrialLog(lambda: log, len(log))
        replay_all(
            ReplayKind(STREAM, Replays(database, Partitions(database)), hub, loaded, _clock(seed=1)), is_dry_run=False
        )
        _compare(log, before, _written(database, loaded, len(log)))


def _written(database: Database, transform: Transform, events: int) -> Written:
    """Return the rows in the tables, appended ones in their order, by the number of the event that wrote them."""
    stream_id = Partitions(database).open_stream(STREAM)
    place = {"stream_id": stream_id, "partition_id": EVENTS.partition_id}
    found: Written = {}
    for number in range(events):
        placed: list[tuple[Any, Row]] = []
        for row_class in transform.row_classes:
            read, named = row_reader(row_class), of_rows("select_placed", row_class)
            rows = database.ask(named, **place, sequence_number=number)
            placed += [(ordinal or 0, read(tuple(values))) for ordinal, _, *values in rows]
        found[number] = [row for _, row in sorted(placed, key=lambda one: (one[0], str(one[1])))]
    return found


def _compare(log: Sequence[Event], before: Written, after: Written) -> None:
    for event in log:
        for one, other in zip_longest(before[event.sequence_number], after[event.sequence_number]):
            if one != other:
                raise AssertionError(
                    f"a replay changes the rows of event {event.sequence_number}, {shown(event.body)}:\n"
                    f"  ingested: {one}\n  replayed: {other}"
                )


def _clock(seed: int = 0) -> Clock:
    chance = random.Random(seed)
    ticks = count()
    return Clock(
        now=lambda: NOW + timedelta(milliseconds=next(ticks)),
        new_id=lambda: UUID(int=chance.getrandbits(128), version=4),
        chance=chance.random,
    )

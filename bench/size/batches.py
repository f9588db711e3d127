"""Batches for benches without a hub: of the story's events, or of readings, for one partition after the other."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path

from bench.ingest import STAMPS
from bench.samples import PARTITION, SIZE, START, batch, reading
from bench.size.publisher import Order
from core.ingest.ingest import Means
from core.model.events import Event, EventBatch, Partition, PartitionId, SequenceNumber
from core.model.transforms import Transform
from core.settle.partition_store import Partitions
from core.store.memory import Memory
from core.store.sqlite.database import SqliteDatabase
from local.feed.homes import Script, home_minutes

BAD, HOMES = 0.002, 20_000
EVERY = timedelta(hours=24)  # nothing is forgotten and read again


def story_batches(count: int) -> Iterator[EventBatch]:
    """Yield batches of the story, of which the size run publishes more, in one partition."""
    events = _events(Order("", count * SIZE, HOMES, 1, BAD, "", "", "").script())
    for _ in range(count):
        yield EventBatch(PARTITION, tuple(islice(events, SIZE)), "bench")


def _events(script: Script) -> Iterator[Event]:
    number = 0
    for minute in home_minutes(script):
        for event in minute.events:
            yield Event(SequenceNumber(number), str(number * 200), START, minute.partition_key, {}, event.body)
            number += 1


def partition(number: int) -> Partition:
    """Return a partition of the benches' stream."""
    return replace(PARTITION, partition_id=PartitionId(str(number)))


def ready_batch(place: Partition, number: int, first: int = 0) -> EventBatch:
    """Return a batch of a partition by its turn; the numbers begin at `first`, which is a multiple of SIZE."""
    return replace(batch(first // SIZE + number), partition=place)


def ready_means(store: Path) -> tuple[Means, SqliteDatabase]:
    """Open a store for batches of one reading an event, in the order of their times; the caller closes the database."""
    database = SqliteDatabase(store, busy_timeout=30.0)
    transform = Transform("bench", lambda event, references: (reading(event.sequence_number),))
    return Means(Partitions(database, Memory(EVERY)), transform, STAMPS), database

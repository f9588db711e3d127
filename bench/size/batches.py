"""Batches of readings for benches without a hub, for one partition after the other."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from bench.ingest import STAMPS
from bench.samples import PARTITION, SIZE, batch, reading
from core.ingest.ingest import Ingestion
from core.model.events import EventBatch, Partition, PartitionId
from core.model.transforms import Transform
from core.settle.partition_store import Partitions
from core.store.memory import Memory
from core.store.sqlite.database import SqliteDatabase

EVERY = timedelta(hours=24)  # nothing is forgotten and read again


def partition(number: int) -> Partition:
    return replace(PARTITION, partition_id=PartitionId(str(number)))


def ready_batch(place: Partition, number: int, first: int = 0) -> EventBatch:
    """Return a batch of a partition by its turn. The numbers begin at `first`, which is a multiple of SIZE."""
    return replace(batch(first // SIZE + number), partition=place)


def ready_means(store: Path) -> tuple[Ingestion, SqliteDatabase]:
    """Open a store for batches of one reading an event, in the order of their times. The caller closes the database."""
    database = SqliteDatabase(store, busy_timeout=30.0)
    transform = Transform("bench", lambda event, references: (reading(event.sequence_number),))
    return Ingestion(Partitions(database, Memory(EVERY)), transform, STAMPS), database

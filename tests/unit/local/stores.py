"""Stores that the app filled, and the records of feeds, for tests that hold one against the other."""

import shutil
import sqlite3
import uuid
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

from core.ingest.ingest import Means, ingest_batch
from core.letters.port import Keeper
from core.letters.retry import claim_due, retry_chunk
from core.model.clock import Clock
from core.model.events import Event, EventBatch, Partition, PartitionId, Stream
from core.model.spans import SequenceNumber
from core.store.sqlite.database import SqliteDatabase
from core.store.sqlite.schema import migrate_sqlite
from core.transforms import load_transform
from local.feed.domains import HOMES, Domain
from local.feed.planned import Minute
from local.feed.record import Copies, Record
from local.recount import recount
from tests.fakes.store import Store

PARTITIONS, BATCH = 4, 37
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def write_record(path: Path, minutes: list[tuple[Minute, Copies]], domain: Domain = HOMES) -> None:
    """The record of a feed that told these minutes."""
    record = Record(path, domain, seed=1, senders=40)
    for minute, copies in minutes:
        record.add(minute, copies)
    record.complete()
    record.close()


def ingest(path: Path, minutes: list[Minute], domain: Domain = HOMES) -> None:
    """What hub, host and app do together, without the ways between them."""
    migrate_sqlite(path)
    store, transform = Store(SqliteDatabase(path)), load_transform(domain.transform)
    logs: dict[int, list[Event]] = {number: [] for number in range(PARTITIONS)}
    for minute in minutes:
        log = logs[crc32(minute.partition_key.encode()) % PARTITIONS]
        for event in minute.events:
            log.append(Event(SequenceNumber(len(log)), str(len(log)), NOW, minute.partition_key, {}, event.body))
    stamps = Clock(lambda: NOW, uuid.uuid4)
    for number, log in logs.items():
        partition = Partition("local/telemetry", "hubledger", PartitionId(str(number)))
        for start in range(0, len(log), BATCH):
            ingest_batch(
                EventBatch(partition, tuple(log[start : start + BATCH]), "test"), Means(store, transform, stamps)
            )
    store.close()


def settle_letters(path: Path, domain: Domain = HOMES) -> None:
    """What the keeper does an hour later, when all homes are registered."""
    store, stream = Store(SqliteDatabase(path)), Stream("local/telemetry", "hubledger")
    stamps = Clock(lambda: NOW + timedelta(hours=1), uuid.uuid4)
    keeper = Keeper(stream, store, load_transform(domain.transform), lambda *_: None, stamps)
    while chunks := claim_due(keeper):
        for chunk in chunks:
            retry_chunk(chunk, keeper, "test")
    store.close()


class Files:
    """A store and a record that agree."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.store, self.record = folder / "store.db", folder / "record.db"

    def copied_to(self, folder: Path) -> "Files":
        """The same in another folder: what took long to make is made once."""
        shutil.copytree(self._folder, folder, dirs_exist_ok=True)
        return Files(folder)

    def change(self, *statements: str) -> list[str]:
        """Plant a fault in the store, and recount."""
        with closing(sqlite3.connect(self.store, isolation_level=None)) as connection:
            for statement in statements:
                connection.execute(statement)
        return self.recount()

    def recount(self) -> list[str]:
        return recount(self.store, self.record)


def only(differences: list[str], *kinds: str) -> None:
    """Something was found, and only of these kinds."""
    assert {difference.partition(":")[0] for difference in differences} == set(kinds), differences


def first_row(table: str) -> str:
    """The condition that holds for one row of a table."""
    return (
        f"(stream_id, partition_id, sequence_number, ordinal) = "
        f"(SELECT stream_id, partition_id, sequence_number, ordinal FROM {table} LIMIT 1)"
    )

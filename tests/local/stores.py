"""Stores that the app filled, the records of feeds, and faults that a recount must name."""

import shutil
import sqlite3
import uuid
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zlib import crc32

from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import Event, EventBatch, Partition, PartitionId, SequenceNumber, Stream
from core.model.ports import Clock
from core.store.sqlite.database import SqliteDatabase
from core.transforms.loading import load_transform
from local.feed.businesses import HOMES, Domain
from local.feed.planned_events import Minute
from local.feed.record import ONCE, Copies, Record
from local.recount.recount import recount
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store

PARTITIONS, BATCH = 4, 37
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def write_record(path: Path, minutes: Iterable[tuple[Minute, Copies]], domain: Domain = HOMES) -> None:
    """Write the record of a feed that published these minutes."""
    record = Record(path, domain, seed=1, senders=40)
    for minute, copies in minutes:
        record.add(minute, copies)
    record.complete()
    record.close()


def ingest(path: Path, minutes: Iterable[Minute], domain: Domain = HOMES) -> None:
    """Commit the minutes as hub, host and app do together, in batches of four partitions."""
    store, transform = SqliteEngine(path).open(), load_transform(domain.transform)
    logs: dict[int, list[Event]] = {number: [] for number in range(PARTITIONS)}
    for minute in minutes:
        log = logs[crc32((minute.partition_key or "").encode()) % PARTITIONS]
        for event in minute.events:
            log.append(Event(SequenceNumber(len(log)), str(len(log)), NOW, minute.partition_key, {}, event.body))
    means = Ingestion(store, transform, Clock(lambda: NOW, uuid.uuid4))
    for number, log in logs.items():
        partition = Partition("localhost/telemetry", "hubledger", PartitionId(str(number)))
        for start in range(0, len(log), BATCH):
            ingest_batch(EventBatch(partition, tuple(log[start : start + BATCH]), "test"), means)
    store.close()


def settle_letters(path: Path, domain: Domain = HOMES) -> None:
    """Retry the letters an hour later, when all homes are registered."""
    store, stream = Store(SqliteDatabase(path)), Stream("localhost/telemetry", "hubledger")
    clock = Clock(lambda: NOW + timedelta(hours=1), uuid.uuid4)
    keeper = Keeper(stream, store, load_transform(domain.transform), lambda *_: None, clock)
    while chunks := claim_due(keeper):
        for chunk in chunks:
            retry_chunk(chunk, keeper, "test")
    store.close()


class Files:
    """A store and a record that agree."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.store, self.record = folder / "store.db", folder / "record.db"

    @staticmethod
    def agreeing(folder: Path, minutes: list[Minute], domain: Domain = HOMES, *, settled: bool = False) -> "Files":
        """Ingest and record minutes; settle their letters where this is wanted."""
        files = Files(folder)
        ingest(files.store, minutes, domain)
        if settled:
            settle_letters(files.store, domain)
        write_record(files.record, [(minute, ONCE) for minute in minutes], domain)
        return files

    def copied_to(self, folder: Path) -> "Files":
        """Copy both files, which are slow to make, to a different folder."""
        shutil.copytree(self._folder, folder, dirs_exist_ok=True)
        return Files(folder)

    def change(self, *statements: str) -> list[tuple]:
        """Run statements in the store; return the rows of the last one."""
        with closing(sqlite3.connect(self.store, isolation_level=None)) as connection:
            return [connection.execute(statement).fetchall() for statement in statements][-1]

    def recount(self) -> list[str]:
        return recount(self.store, self.record)


@dataclass(frozen=True)
class Fault:
    """Statements that plant a fault in a store, and the differences that name it.

    `kinds` are the kinds of all differences, where they are certain; each text of `says` is part of one of them.
    """

    statements: tuple[str, ...]
    kinds: frozenset[str]
    says: tuple[str, ...] = ()
    count: int | None = None

    def is_named_by(self, differences: list[str]) -> bool:
        kinds = {difference.partition(":")[0] for difference in differences}
        return (
            differences != []
            and (kinds == self.kinds or not self.kinds)
            and self.count in (None, len(differences))
            and all(any(text in difference for difference in differences) for text in self.says)
        )


def fault(*statements: str, kinds: str = "", says: tuple[str, ...] = (), count: int | None = None) -> Fault:
    """Return a fault; its kinds are words of one text."""
    return Fault(statements, frozenset(kinds.split()), says, count)


def unnamed(faults: list[Fault], files: Files, folder: Path) -> dict[tuple[str, ...], list[str]]:
    """Plant each fault in a copy of the store, and return the differences of those that the recount does not name."""
    found = {}
    for number, each in enumerate(faults):
        copy = files.copied_to(folder / str(number))
        copy.change(*each.statements)
        differences = copy.recount()
        if not each.is_named_by(differences):
            found[each.statements] = differences
    return found


def first_row(table: str) -> str:
    """Return the condition that holds for one row of a table."""
    return (
        f"(stream_id, partition_id, sequence_number, ordinal) = "
        f"(SELECT stream_id, partition_id, sequence_number, ordinal FROM {table} LIMIT 1)"
    )

"""Stores that the app filled, the records of feeds, and faults that a recount must name."""

import shutil
import sqlite3
import sys
import uuid
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self
from zlib import crc32

from core.ingest.ingest import Ingestion, ingest_batch
from core.letters.retry import Keeper, claim_due, retry_chunk
from core.model.events import Event, EventBatch, Partition, PartitionId, SequenceNumber, Stream
from core.model.ports import Clock
from core.store.sqlite.database import SqliteDatabase
from core.transforms.loading import load_transform
from local.feed.businesses import FLIGHTS, HOMES, Domain, domain_of_sample
from local.feed.planned_events import Minute
from local.feed.record import ONCE, Copies, Record
from local.feed.sample import keyed_by, read_sample
from local.recount.recount import recount
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store

PARTITIONS, BATCH = 4, 37
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROOMS = Path(__file__).parents[1] / "fixtures" / "rooms"
LEVELS = {"home_activity": 900, "home_activity_hour": 3_600, "home_activity_day": 86_400}
_ACTIVITY = """
INSERT INTO {table}
SELECT home_id, strftime('%Y-%m-%dT%H:%M:%S.000000Z', unixepoch(observed_at) / {seconds} * {seconds}, 'unixepoch')
    AS begins, kind, COUNT(*), SUM(COALESCE(state, '') = 'active'), SUM(ppm) * 100, MIN(ppm) * 100, MAX(ppm) * 100,
    MIN(observed_at), MAX(observed_at), 1, 0
FROM sensor_reading GROUP BY home_id, begins, kind
"""
_PUNCTUALITY = """
INSERT INTO flight_punctuality
SELECT carrier, departure_date || 'T00:00:00.000000Z' AS begins, COUNT(*), SUM(status = 'delayed'),
    SUM(status = 'cancelled'), SUM(status = 'diverted'), SUM(status = 'departed'), SUM(status = 'arrived'),
    MIN(changed_at), MAX(changed_at), 1, 0
FROM flight_change GROUP BY carrier, begins
"""
AGGREGATED = {  # the statements that add up the aggregates of a business
    HOMES.name: tuple(_ACTIVITY.format(table=table, seconds=seconds) for table, seconds in LEVELS.items()),
    FLIGHTS.name: (_PUNCTUALITY,),
}


def shop(key: str = "customerId") -> Domain:
    if str(ROOMS) not in sys.path:
        sys.path.append(str(ROOMS))
    path = ROOMS / "shop" / "events.jsonl"
    return domain_of_sample("shop", keyed_by(path, read_sample(path), key))


def write_record(path: Path, minutes: Iterable[tuple[Minute, Copies]], domain: Domain = HOMES) -> None:
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
        folder.mkdir(exist_ok=True)
        self.store, self.record = folder / "store.db", folder / "record.db"

    @classmethod
    def agreeing(cls, folder: Path, minutes: list[Minute], domain: Domain = HOMES, *, settled: bool = False) -> Self:
        """Ingest and record minutes. Settle their letters where this is wanted."""
        files = cls(folder)
        ingest(files.store, minutes, domain)
        if settled:
            settle_letters(files.store, domain)
        write_record(files.record, [(minute, ONCE) for minute in minutes], domain)
        return files

    def copied_to(self, folder: Path) -> Self:
        shutil.copytree(self._folder, folder, dirs_exist_ok=True)
        return type(self)(folder)

    def change(self, *statements: str) -> list[tuple]:
        """Run statements in the store. Return the rows of the last one."""
        with closing(sqlite3.connect(self.store, isolation_level=None)) as connection:
            return [connection.execute(statement).fetchall() for statement in statements][-1]

    def recount(self) -> list[str]:
        return recount(self.store, self.record)


Fault = tuple[str, str, str]  # a statement that plants it, the kinds of all differences, and a text that is part of one


def unnamed(faults: list[Fault], files: Files, folder: Path) -> dict[str, list[str]]:
    found = {}
    for number, (statement, kinds, says) in enumerate(faults):
        copy = files.copied_to(folder / str(number))
        copy.change(statement)
        said = copy.recount()
        if {one.partition(":")[0] for one in said} != {*kinds.split()} or not any(says in one for one in said):
            found[statement] = said
    return found


def first_row(table: str) -> str:
    key = "stream_id, partition_id, sequence_number, ordinal"
    return f"({key}) = (SELECT {key} FROM {table} LIMIT 1)"

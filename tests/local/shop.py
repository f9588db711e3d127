"""A hub, a record and a store of the room tests/fixtures/rooms/shop, as a demo leaves them."""

import sqlite3
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from zlib import crc32

from core.store.sqlite.schema import migrate_sqlite
from core.transforms.loading import load_transform, rooms_of
from local.event_hubs.codec import Raw, Symbol, encode
from local.event_hubs.events import Unstamped, stamp
from local.event_hubs.log import Disk
from local.feed.businesses import Domain, domain_of_sample
from local.feed.planned_events import Minute
from local.feed.record import ONCE, Copies
from local.feed.sample import keyed_by, read_sample
from local.recount.sample_recount import recount_sample
from tests.local.stores import PARTITIONS, Files, ingest, settle_letters, write_record

ROOMS = Path(__file__).parents[1] / "fixtures" / "rooms"
DATA = b"\x00\x53\x75"  # an AMQP section of data begins with it
GIVEN_UP = "UPDATE event_hub_dead_letter SET status = 'exhausted', attempts = 6 WHERE status = 'waiting'"


def shop(key: str = "customerId") -> Domain:
    """Return the events of the room, keyed by a field."""
    if str(ROOMS) not in sys.path:
        sys.path.append(str(ROOMS))
    path = ROOMS / "shop" / "events.jsonl"
    return domain_of_sample("shop", keyed_by(path, read_sample(path), key))


def minutes_of(domain: Domain, events: int) -> list[Minute]:
    return list(domain.story(1, events, 1, 0, None))


def write_hub(path: Path, minutes: Iterable[Minute]) -> None:
    """Write the emulator's file with the events where `ingest` has them."""
    ends = dict.fromkeys(range(PARTITIONS), 0)
    with closing(Disk(path)) as disk:
        for minute in minutes:
            key = minute.partition_key
            number = crc32((key or "").encode()) % PARTITIONS
            annotations = [] if key is None else [Raw(encode(Symbol("x-opt-partition-key"))), Raw(encode(key))]
            for event in minute.events:
                at = ends[number]
                ends[number] += 1
                stamped = stamp(Unstamped(annotations, DATA + encode(event.body)), at, at, 1_767_225_600_000)
                disk.add("telemetry", str(number), [stamped])
        disk.commit()


class Shop(Files):
    """The files of a demo of the room that agree."""

    def __init__(self, folder: Path, domain: Domain) -> None:
        super().__init__(folder)
        self.hub, self.domain = folder / "event-hubs.db", domain

    @staticmethod
    def after(folder: Path, domain: Domain, minutes: list[Minute]) -> "Shop":
        """Publish, ingest and record minutes, and retry their letters until they are settled."""
        made = Shop(folder, domain)
        migrate_sqlite(made.store, rooms_of(load_transform(domain.transform).row_classes))
        write_hub(made.hub, minutes)
        ingest(made.store, minutes, domain)
        settle_letters(made.store, domain)
        made.change(GIVEN_UP)
        made.record_copies(minutes, ONCE)
        return made

    def copied_to(self, folder: Path) -> "Shop":
        super().copied_to(folder)
        return Shop(folder, self.domain)

    def record_copies(self, minutes: list[Minute], copies: Copies) -> None:
        write_record(self.record, [(minute, copies) for minute in minutes], self.domain)

    def change_hub(self, statement: str) -> None:
        with closing(sqlite3.connect(self.hub, isolation_level=None)) as connection:
            connection.execute(statement)

    def recount(self) -> list[str]:
        return recount_sample(self.domain, self.hub, self.store, self.record)

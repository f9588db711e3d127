import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bench.peers.consumers import rows_of_bodies
from bench.peers.readings import values_of
from bench.peers.recounted import Recounted, published, recounted
from bench.peers.run import Bench, Consumer, groups
from bench.peers.table import Table, create_tables
from core.errors import PoisonEvent
from local.feed.businesses import HOMES
from local.feed.record import ONCE, Record
from local.stack.processes import Children
from local.stack.stack import HUB, Place, Stack

EVENTS = 2_000
FEW = "few"  # a hub of two partitions: each has deliveries after a lost one, so nobody waits for the next look


def change(store: Path, statement: str) -> None:
    with closing(sqlite3.connect(store)) as connection, connection:
        assert connection.execute(statement).rowcount == 1


def test_a_peer_that_saw_every_event_once_has_lost_and_doubled_nothing(tmp_path: Path) -> None:
    path, store = tmp_path / "telemetry.record", tmp_path / "store.db"
    record, bodies = Record(path, HOMES, 1, 100), list[bytes]()
    for minute in HOMES.story(100, EVENTS, 1, 1_767_225_600_000_000, None):
        record.add(minute, ONCE)
        bodies += [event.body for event in minute.events]
    record.complete()
    record.close()
    consumer = Consumer("c", HUB, tmp_path, create_tables(f"sqlite:{store}"))  # it has letters
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        table = Table(connection)
        table.add_all(rows_of_bodies(("0", number, body) for number, body in enumerate(bodies)))
        for number, body in enumerate(bodies):
            try:
                values_of(body)
            except PoisonEvent as error:
                table.add_letter("0", number, body, error)
    assert recounted(consumer, path) == Recounted(0, 0, 0, 0)
    of = published(path)
    assert of.events == EVENTS == len(bodies)
    assert 0 < of.poison < 50 and EVENTS / 2 < of.rows < EVENTS
    change(store, "DELETE FROM sensor_reading WHERE id = 7")
    copied = "partition_id, sequence_number, home_id, sensor_id, kind, state, ppm, observed_at"
    change(store, f"INSERT INTO sensor_reading ({copied}) SELECT {copied} FROM sensor_reading WHERE id = 9")
    change(store, "DELETE FROM letter WHERE id = 1")
    assert recounted(consumer, path) == Recounted(1, 1, 1, 0)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Children(tmp_path) as children:
        stack = Stack(Place(tmp_path), children, time.sleep)
        stack.start_emulator("--hub", f"{FEW}:2", *groups())
        bench = Bench(tmp_path, children, stack.connection, "")
        bench.start_feed(FEW, 6_000, "full").wait_done(time.sleep)
        yield bench

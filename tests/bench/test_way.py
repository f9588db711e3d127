import math
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

from bench.waits import percentile, waits
from bench.way.part import REST, SDK, table
from bench.way.recorded import Recorded
from bench.way.stages import OF_BOTH, OF_HOST, OF_WORKER, replayed
from core.remote.hub.sdk_patches import keep_values_encoded
from core.store.sqlite.schema import migrate_sqlite
from core.transforms.loading import load_transform, rooms_of
from local.event_hubs.codec import Described, Symbol, Timestamp, ULong, encode
from local.event_hubs.events import Event
from local.event_hubs.log import Disk
from local.feed.businesses import HOMES
from local.stack.app_totals import count_accounted, select

SIZE, BATCHES = 20, 5
NOON = int(datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp())
COMMITS = [
    ("0", 0, 1, "12:00:02.000000", "batch"),
    ("0", 2, 3, "12:00:04.000000", "batch"),
    ("0", 0, 3, "12:30:00.000000", "retry"),
    ("1", 0, 0, "12:00:00.750000", "batch"),
]


def recorded(batch: int) -> Recorded:
    numbers = range(SIZE * batch, SIZE * (batch + 1))
    context = SimpleNamespace(
        fully_qualified_namespace="local", eventhub_name="hub", consumer_group="group", partition_id="0"
    )
    return Recorded(context, tuple(map(payload, numbers)))


def payload(number: int) -> bytes:
    stamps = {
        Symbol("x-opt-sequence-number"): number,
        Symbol("x-opt-offset"): str(number),
        Symbol("x-opt-enqueued-time"): Timestamp(1_767_225_600_000 + number),
    }
    kind = b"motion" if number >= SIZE else b"registration"
    more = b'"sensor_id":"S","state":"idle"' if number >= SIZE else b'"time_zone":"UTC","armed":true'
    home = b"H%d" % (number % SIZE)
    body = b'{"kind":"%s","home_id":"%s",%s,"observed_at":"2026-01-01T12:00:00Z"}' % (kind, home, more)
    return encode(Described(ULong(0x72), stamps)) + encode(Described(ULong(0x75), body))


def test_every_stage_is_replayed_and_every_event_is_ingested_once(tmp_path: Path) -> None:
    keep_values_encoded()
    migrate_sqlite(tmp_path / "store.db", rooms_of(load_transform(HOMES.transform, 100).row_classes))
    stages = replayed([recorded(batch) for batch in range(BATCHES)], HOMES.transform, tmp_path / "store.db")
    assert set(stages) == {*OF_WORKER, *OF_HOST, *OF_BOTH}
    assert count_accounted(tmp_path / "store.db") == SIZE * BATCHES
    counts = select(tmp_path / "store.db", "SELECT SUM(written), SUM(dead_lettered), COUNT(*) FROM batch_ledger")
    assert [tuple(row) for row in counts] == [(SIZE * BATCHES, 0, BATCHES)]
    assert len(select(tmp_path / "store.db", "SELECT 1 FROM sensor_reading")) == SIZE * (BATCHES - 1)


def test_the_stages_of_a_table_add_up_to_the_whole_way() -> None:
    measured = table("way", {SDK: 60.0, "adapter": 5.0, "not of this way": 9.0}, (SDK, "adapter"), whole=80.0)
    assert measured.rows == ((SDK, 60.0, 75.0), ("adapter", 5.0, 6.25), (REST, 15.0, 18.75))


def test_a_wait_ends_with_the_batch_that_committed_the_event_and_without_one_never(tmp_path: Path) -> None:
    hub, store = tmp_path / "hub.db", tmp_path / "store.db"
    disk = Disk(hub)
    disk.add("telemetry", "0", [Event(number, 0, 1000 * (NOON + number), b"") for number in range(4)])
    disk.add("telemetry", "1", [Event(0, 0, 1000 * NOON + 500, b"")])
    disk.add("other", "0", [Event(0, 0, 1000 * NOON, b"")])
    disk.commit()
    disk.close()
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        columns = "partition_id TEXT, first_sequence_number, last_sequence_number, committed_at TEXT, kind TEXT"
        connection.execute(f"CREATE TABLE batch_ledger ({columns})")
        insert = "INSERT INTO batch_ledger VALUES (?, ?, ?, '2026-01-01T' || ? || 'Z', ?)"
        connection.executemany(insert, COMMITS)
        assert waits(hub, "telemetry", store, NOON) == [0.25, 1, 1, 2, 2]
        assert waits(hub, "telemetry", store, NOON + 2) == [1, 2]  # those that were enqueued before do not count
        connection.execute("DELETE FROM batch_ledger WHERE first_sequence_number = 2")
        assert waits(hub, "telemetry", store, NOON) == [0.25, 1, 2, math.inf, math.inf]
    hundred = [float(number) for number in range(1, 101)]
    assert [percentile(hundred, percent) for percent in (50, 99, 99.5, 100)] == [50, 99, 100, 100]
    assert percentile([7.0], 50) == 7.0

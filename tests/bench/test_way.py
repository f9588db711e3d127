"""bench/way: every stage is replayed with the recorded events, which the store then accounts for."""

from pathlib import Path
from types import SimpleNamespace

from bench.way.part import REST, SDK, table
from bench.way.recorded import Recorded
from bench.way.stages import OF_BOTH, OF_HOST, OF_WORKER, replayed
from core.remote.hub.sdk_patches import keep_values_encoded
from core.store.sqlite.schema import migrate_sqlite
from core.transforms.loading import load_transform, rooms_of
from local.event_hubs.codec import Described, Symbol, Timestamp, ULong, encode
from local.feed.businesses import HOMES
from local.stack.app_totals import count_accounted, select

SIZE, BATCHES = 20, 5


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

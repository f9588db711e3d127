"""GapReading of a gap: from a hub over AMQP into SQLite, as the trigger heals it after the host skipped batches."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import perf_counter

from azure.eventhub import EventData, EventHubProducerClient

from bench.figures import Figure
from bench.ingest import STAMPS
from bench.samples import ROOMS, reading
from core.ingest.gaps import GapReading
from core.ingest.ingest import Ingestion, ingest_batch
from core.model.events import EventBatch, Partition, PartitionId, SequenceNumber
from core.model.rows import Row
from core.model.transforms import Transform
from core.remote.hub.reader import SdkHubReader
from core.settings import Settings, read_settings
from core.settle.partition_store import Partitions
from core.store.connect import open_database
from core.store.memory import Memory
from core.store.sqlite.schema import migrate_sqlite
from local.event_hubs import Emulator, HubSettings

HUB, EVENTS, SINGLE = "telemetry", 20_000, 200
BODY = b"x" * 120
PARTITION = Partition(f"localhost/{HUB}", "hubledger", PartitionId("0"))
ROWS: list[tuple[Row, ...]] = [(reading(number),) for number in range(500)]


def measure() -> Iterator[Figure]:
    """Measure the rate at which a gap of 20,000 events is healed, and the time to find one event."""
    emulator = Emulator([HubSettings(HUB, 1, ("hubledger", "hubledger-reader"))])
    with tempfile.TemporaryDirectory(dir=".") as folder, emulator.running():
        settings = _settings(emulator.connection_string, Path(folder) / "store.db")
        _publish(emulator.connection_string)
        with closing(SdkHubReader(settings)) as hub:
            yield _healing(settings, hub)
            yield _finding(hub)


def _settings(connection: str, database: Path) -> Settings:
    migrate_sqlite(database, ROOMS)
    names = {"EVENTHUB_NAME": HUB, "EVENTHUB_CONSUMER_GROUP": "hubledger", "EVENTHUB": connection}
    return read_settings({**names, "STORE_CONNECTION": f"sqlite:{database}"})


def _publish(connection: str) -> None:
    with EventHubProducerClient.from_connection_string(connection, eventhub_name=HUB) as producer:
        for _ in range(EVENTS // 1_000 + 1):
            batch = producer.create_batch(partition_id="0")
            for _ in range(1_000):
                batch.add(EventData(BODY))
            producer.send_batch(batch)


def _healing(settings: Settings, hub: SdkHubReader) -> Figure:
    """Ingest event 20,000 first, so that all events before it are missing."""
    event = hub.find_event(PARTITION, SequenceNumber(EVENTS))
    if event is None:
        raise RuntimeError(f"the hub has no event {EVENTS}: publishing failed")
    transform = Transform("bench", lambda event, _: ROWS[event.sequence_number % 500])
    with closing(open_database(settings.store_connection)) as database:
        store = Partitions(database, Memory(settings.reference_memory))
        began = perf_counter()
        report = ingest_batch(
            EventBatch(PARTITION, (event,), "bench"), Ingestion(store, transform, STAMPS, GapReading(hub))
        )
        rate = report.healed / (perf_counter() - began)
    note = f"{report.healed:,} events in {len(report.commits)} commits"
    return Figure("a gap healed from the hub into SQLite", rate, "events/s", ">= 5000", rate >= 5_000, note)


def _finding(hub: SdkHubReader) -> Figure:
    began = perf_counter()
    for number in range(SINGLE):
        hub.find_event(PARTITION, SequenceNumber(number * 7))
    each = (perf_counter() - began) / SINGLE * 1e3
    return Figure("one event found by its number", each, "ms", "<= 50", each <= 50)

"""A hub and a store for each test, without a worker yet."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.eventhub import EventHubProducerClient

from core.store.sqlite.database import SqliteDatabase
from local.event_hubs import Emulator, HubSettings
from tests.acceptance.worker.started import GROUP, HUB, PARTITIONS, READERS, Workplace
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    """Return a hub and an empty store; end the workers with the test."""
    emulator = Emulator([HubSettings(HUB, PARTITIONS, consumer_groups=(GROUP, READERS))])
    engine = SqliteEngine(tmp_path / "store.db")
    with emulator.running():
        producer = EventHubProducerClient.from_connection_string(emulator.connection_string, eventhub_name=HUB)
        workplace = Workplace(emulator, engine, Store(SqliteDatabase(engine.path)), producer)
        yield workplace
        workplace.end()

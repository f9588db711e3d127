"""Events that kill `python -m core.worker` over real AMQP, which is started again each time."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.eventhub import EventData, EventHubProducerClient

from core.store.sqlite.database import SqliteDatabase
from local.event_hubs import Emulator, HubSettings
from tests.acceptance.killers.supervised import CRASHED, SETTINGS, accounted, letters, supervise
from tests.acceptance.worker.started import (
    GROUP,
    HUB,
    PARTITIONS,
    READERS,
    STREAM,
    TIMES,
    Workplace,
    settings_of,
    start,
)
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store

pytestmark = pytest.mark.slow


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


def starting(place: Workplace) -> "subprocess.Popen[str]":
    settings = {**settings_of(place.emulator.connection_string, place.engine.path), **SETTINGS}
    place.workers.append(start(settings, *TIMES, output=subprocess.DEVNULL))
    return place.workers[-1]


def send(place: Workplace, id: str, bodies: list[bytes]) -> None:
    batch = place.producer.create_batch(partition_id=id)
    for body in bodies:
        batch.add(EventData(body))
    place.producer.send_batch(batch)


def test_killers_in_several_partitions_become_letters_and_the_other_partitions_go_on(place: Workplace) -> None:
    bodies = {str(id): [b"fine"] * 40 for id in range(PARTITIONS)}
    bodies["0"] = [b"fine"] * 250 + [b"exit"] + [b"fine"] * 249
    bodies["3"] = [b"segfault"]
    bodies["5"] = [b"regex"]
    bodies["6"] = [b"fine", b"memory", b"leave"]
    for id, given in bodies.items():
        send(place, id, given)
    statuses = supervise(
        lambda: starting(place),
        lambda: accounted(place.engine, STREAM.stream) == {id: len(given) for id, given in bodies.items()},
    )
    deaths = Counter(statuses)
    assert set(deaths) == {9, -11, 1} and max(deaths.values()) <= 10, deaths
    crashed = dict.fromkeys(("exit", "segfault", "regex", "memory"), CRASHED)
    assert letters(place.engine) == {**crashed, "leave": ("unknown", "SystemExit", "waiting")}
    assert place.engine.sql("SELECT COUNT(*) FROM batch_attempt") == [(0,)]

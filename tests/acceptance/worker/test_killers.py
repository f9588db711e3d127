"""Events that kill `python -m core.worker` over real AMQP, which is started again each time."""

import pytest
from azure.eventhub import EventData

from tests.acceptance.killers.supervised import CRASHED, SETTINGS, WAYS, Supervisor, accounted, letters
from tests.acceptance.worker.started import PARTITIONS, STREAM, Workplace

pytestmark = pytest.mark.slow


def send(place: Workplace, id: str, bodies: list[bytes]) -> None:
    batch = place.producer.create_batch(partition_id=id)
    for body in bodies:
        batch.add(EventData(body))
    place.producer.send_batch(batch)


def test_eight_partitions_with_a_killer_each_cost_two_workers_at_most(place: Workplace) -> None:
    assert len(WAYS) == PARTITIONS
    for id, way in enumerate(WAYS):
        send(place, str(id), [*[b"fine"] * 20, way, b"leave", *[b"fine"] * 20])
    supervisor = Supervisor(lambda: place.start_worker(**SETTINGS), most_deaths=2)
    statuses = supervisor.until(
        lambda: accounted(place.engine, STREAM.stream) == dict.fromkeys(map(str, range(PARTITIONS)), 42)
    )
    assert len(statuses) >= 1
    crashed = dict.fromkeys([way.decode() for way in WAYS], CRASHED)
    assert letters(place.engine) == {**crashed, "leave": ("unknown", "SystemExit", "waiting")}
    assert place.engine.sql("SELECT COUNT(*) FROM batch_attempt") == [(0,)]

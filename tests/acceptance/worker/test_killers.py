"""Events that kill `python -m core.worker` over real AMQP, which is started again each time."""

from collections import Counter

import pytest
from azure.eventhub import EventData

from tests.acceptance.killers.supervised import CRASHED, SETTINGS, Supervisor, accounted, letters
from tests.acceptance.worker.started import PARTITIONS, STREAM, Workplace

pytestmark = pytest.mark.slow


def send(place: Workplace, id: str, bodies: list[bytes]) -> None:
    batch = place.producer.create_batch(partition_id=id)
    for body in bodies:
        batch.add(EventData(body))
    place.producer.send_batch(batch)


def test_killers_in_several_partitions_become_letters_and_the_other_partitions_go_on(place: Workplace) -> None:
    bodies = {str(id): [b"fine"] * 40 for id in range(PARTITIONS)}
    bodies["0"] = [b"exit"]
    bodies["3"] = [b"segfault"]
    bodies["5"] = [b"regex"]
    bodies["6"] = [b"fine", b"leave"]
    bodies["7"] = [b"memory"]
    for id, given in bodies.items():
        send(place, id, given)
    published = {id: len(given) for id, given in bodies.items()}
    supervisor = Supervisor(lambda: place.start_worker(**SETTINGS))
    statuses = supervisor.until(lambda: accounted(place.engine, STREAM.stream) == published)
    assert set(statuses) == {9, -11, 1}
    assert max(Counter(statuses).values()) <= 3, "each is alone in its range, which is not searched again"
    crashed = dict.fromkeys(("exit", "segfault", "regex", "memory"), CRASHED)
    assert letters(place.engine) == {**crashed, "leave": ("unknown", "SystemExit", "waiting")}
    assert place.engine.sql("SELECT COUNT(*) FROM batch_attempt") == [(0,)]

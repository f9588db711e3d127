"""Events that kill `python -m core.worker` over real AMQP, which is started again each time."""

import pytest

from core.settle.attempts import ALONE
from tests.acceptance.killers.supervised import CRASHED, SETTINGS, WAYS, Supervisor, accounted, letters
from tests.acceptance.worker.started import PARTITIONS, STREAM, Workplace


def test_eight_partitions_with_a_killer_each_cost_two_workers_at_most(place: Workplace) -> None:
    assert len(WAYS) == PARTITIONS
    for id, way in enumerate(WAYS):
        place.send(str(id), *[b"fine"] * 20, way, b"leave", *[b"fine"] * 20)
    supervisor = Supervisor(lambda: place.start_worker(apart=False, **SETTINGS), most_deaths=2)
    supervisor.until(  # without a death, when the event that fills the memory comes first: it warns its process
        lambda: accounted(place.engine, STREAM.stream) == dict.fromkeys(map(str, range(PARTITIONS)), 42)
    )
    crashed = dict.fromkeys([way.decode() for way in WAYS], CRASHED)
    assert letters(place.engine) == {**crashed, "leave": ("unknown", "SystemExit", "waiting")}
    assert place.engine.sql("SELECT COUNT(*) FROM batch_attempt") == [(0,)]


@pytest.mark.parametrize(("way", "deaths"), [(b"group", 1), (b"parent", ALONE + 1)])
def test_a_killer_that_takes_its_parent_along_is_isolated_and_its_neighbours_are_written(
    place: Workplace, way: bytes, deaths: int
) -> None:
    """A child has a session of its own. One that kills its parent by its id is known by the marks in the store."""
    place.send("0", *[b"fine"] * 5, way, *[b"fine"] * 5)
    supervisor = Supervisor(lambda: place.start_worker(apart=True, **SETTINGS), most_deaths=deaths)
    assert len(supervisor.until(lambda: accounted(place.engine, STREAM.stream) == {"0": 11})) == deaths
    supervisor.end()
    assert letters(place.engine) == {way.decode(): CRASHED}
    assert place.engine.sql("SELECT COUNT(*) FROM batch_attempt") == [(0,)]


def test_four_events_that_hang_cost_two_workers_at_most_and_a_deadline_each(place: Workplace) -> None:
    for id in range(4):
        place.send(str(id), b"fine", b"sleep", b"fine")
    supervisor = Supervisor(lambda: place.start_worker(apart=False, **SETTINGS), most_deaths=2)
    statuses = supervisor.until(lambda: accounted(place.engine, STREAM.stream) == dict.fromkeys(map(str, range(4)), 3))
    assert set(statuses) == {70}
    kept = place.engine.letters()
    assert [(one.partition_id, one.sequence_number, one.error) for one in kept] == [
        (str(id), 1, "it did not return within 1 s (TRANSFORM_DEADLINE_SECONDS)") for id in range(4)
    ]

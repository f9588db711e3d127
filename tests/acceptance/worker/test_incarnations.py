"""A hub that is recreated under the worker, over AMQP: nothing is mixed, and links open anew at an incarnation."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from azure.eventhub import EventData

from core.incarnations.next_incarnation import IncarnationMeans, IncarnationOrder, Incarnations, next_incarnation
from core.model.ports import Clock
from core.remote.hub.reader import SdkHubReader
from core.settings import read_settings
from core.settle.partition_store import Partitions
from examples.home_security.transform import SensorReading
from tests.acceptance.worker.started import HUB, PARTITIONS, STREAM, Workplace, settings_of
from tests.fakes.builders import ids

BEFORE = 60
LONG_AGO = "2026-01-01T00:00:00.000000Z"


def open_next(work: Workplace) -> None:
    """Open the next incarnation as an operator does, in this process."""
    settings = read_settings(settings_of(work.emulator.connection_string, work.engine.path))
    made = iter(ids())
    clock = Clock(now=lambda: datetime.now(UTC), new_id=lambda: next(made))
    with closing(SdkHubReader(settings)) as hub:
        store = Incarnations(work.store.database, Partitions(work.store.database))
        means = IncarnationMeans(STREAM.stream, store, hub, clock)
        order = IncarnationOrder("ada", "recreated", 1, hub.created_at(), is_dry_run=False)
        next_incarnation(order, means)


def recreate(work: Workplace, renewed: int) -> None:
    """Recreate the hub, with so many events in each partition."""
    work.emulator.recreate(HUB)
    work.published = 0
    work.publish(renewed)


def stops(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM partition_stop WHERE reason = 'incarnation'").fetchone()[0])


def numbers_by_stream(work: Workplace) -> Iterator[list[int]]:
    """Yield the numbers of the rows of each stream, over all partitions, the old stream first."""
    rows = work.engine.rows(SensorReading)
    for stream in sorted({row.stream_id for row in rows}):
        yield sorted(row.sequence_number for row in rows if row.stream_id == stream)


def everywhere(count: int) -> list[int]:
    return sorted(list(range(count)) * PARTITIONS)


@pytest.mark.parametrize("is_up", [True, False], ids=["the worker up", "the worker down"])
def test_a_hub_whose_numbers_fit_stops_every_partition_until_the_next_incarnation(
    place: Workplace, is_up: bool
) -> None:
    worker = place.start_worker()
    place.publish(BEFORE)
    place.until_all_accounted()
    if not is_up:
        worker.kill()
        worker.wait()
    recreate(place, 2 * BEFORE)
    if not is_up:
        place.start_worker()
    place.until(lambda: stops(place.engine.path) == PARTITIONS)
    assert list(numbers_by_stream(place)) == [everywhere(BEFORE)]
    open_next(place)
    place.until_all_accounted()
    assert list(numbers_by_stream(place)) == [everywhere(BEFORE), everywhere(2 * BEFORE)]


@pytest.mark.proof("incarnation")
def test_a_hub_with_fewer_events_is_read_from_its_beginning_once_the_next_incarnation_is_open(place: Workplace) -> None:
    place.start_worker()
    place.publish(BEFORE)
    place.until_all_accounted()
    recreate(place, BEFORE // 2)
    open_next(place)
    place.until_all_accounted()
    place.publish(5)
    place.until_all_accounted()
    assert list(numbers_by_stream(place)) == [everywhere(BEFORE), everywhere(BEFORE // 2 + 5)]


def test_a_letter_without_its_body_waits_while_the_hub_is_a_different_one(place: Workplace) -> None:
    def letter() -> tuple[str, int, str | None]:
        with closing(sqlite3.connect(place.engine.path)) as connection:
            found = connection.execute("SELECT status, attempts, due_at FROM event_hub_dead_letter").fetchall()
        return found[0] if found else ("", 0, None)

    def was_claimed() -> bool:
        status, _, due_at = letter()
        return status == "exhausted" or (status == "waiting" and due_at != LONG_AGO)

    place.start_worker(KEEP_BODIES="false", DEAD_LETTER_LOOK_SECONDS="0.2")
    place.producer.send_batch([EventData(b"look nobody")])
    place.until(lambda: letter()[0] == "waiting")
    place.emulator.recreate(HUB)
    with closing(sqlite3.connect(place.engine.path)) as connection, connection:
        connection.execute("UPDATE event_hub_dead_letter SET due_at = ?", (LONG_AGO,))
    place.until(was_claimed)
    assert letter()[:2] == ("waiting", 1)

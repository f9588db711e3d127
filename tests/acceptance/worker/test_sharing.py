"""Several workers on one hub: they join, leave, die and freeze, and every event is accounted for once."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.store.sqlite.database import SqliteDatabase
from local.event_hubs import Emulator, HubSettings
from tests.acceptance.worker.started import DEADLINE, GROUP, HUB, PARTITIONS, READERS, Workplace
from tests.fakes.engines import SqliteEngine
from tests.fakes.store import Store

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    emulator = Emulator([HubSettings(HUB, PARTITIONS, consumer_groups=(GROUP, READERS))])
    engine = SqliteEngine(tmp_path / "store.db")
    with emulator.running():
        workplace = Workplace(emulator, engine, Store(SqliteDatabase(engine.path)))
        yield workplace
        workplace.end()


def test_workers_that_join_and_leave_share_partitions_evenly(place: Workplace) -> None:
    place.publish(200)
    place.start_worker()
    place.until_shared(8)
    place.start_worker()
    leaving = place.start_worker()
    place.until_shared(2, 3, 3)
    place.publish(200)
    place.until_all_accounted()
    leaving.send_signal(signal.SIGTERM)
    _, errors = leaving.communicate(timeout=DEADLINE)
    assert (leaving.returncode, errors) == (0, "")
    assert len(place.shares()) == 2, "a worker that left still owns partitions"
    place.publish(200)
    place.until_shared(4, 4)
    place.until_all_accounted()
    place.assert_each_event_once()


def test_the_partitions_of_a_killed_worker_are_taken_over(place: Workplace) -> None:
    place.start_worker()
    killed = place.start_worker()
    place.until_shared(4, 4)
    place.publish(500)
    place.until(lambda: sum(place.accounted()) > 0)
    killed.kill()
    killed.wait(DEADLINE)
    place.publish(200)
    place.until_all_accounted()
    place.until_shared(8)
    place.assert_each_event_once()


def test_a_worker_that_froze_and_wakes_up_writes_nothing_twice(place: Workplace) -> None:
    place.start_worker()
    frozen = place.start_worker()
    place.until_shared(4, 4)
    place.publish(500)
    place.until(lambda: sum(place.accounted()) > 0)
    frozen.send_signal(signal.SIGSTOP)
    place.until_shared(8)
    place.publish(200)
    place.until_all_accounted()
    frozen.send_signal(signal.SIGCONT)
    place.until_shared(4, 4)
    place.publish(200)
    place.until_all_accounted()
    place.assert_each_event_once()

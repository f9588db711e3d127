"""What retention cut while no worker ran is absent, to the number, and everything else is accounted for."""

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


def test_a_worker_heals_the_gap_that_retention_left(place: Workplace) -> None:
    place.publish(20)
    worker = place.start_worker()
    place.until_all_accounted()
    worker.kill()
    worker.wait(DEADLINE)
    place.publish(100)
    place.emulator.expire_before(HUB, "0", 60)
    place.start_worker()
    place.until_all_accounted()
    books = {ledger.partition.partition_id: ledger for ledger in place.store.read_ledgers()}
    assert {id: (one.absent, one.written, one.balanced) for id, one in books.items()} == {
        "0": (40, 80, True),
        **{str(id): (0, 120, True) for id in range(1, PARTITIONS)},
    }
    assert [(gap.first, gap.last, gap.status) for gap in place.engine.gaps()] == [(20, 59, "absent")]

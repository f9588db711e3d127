"""Workers on one hub: they join, leave, freeze and die, and every event is accounted for once."""

import signal

from tests.acceptance.worker.started import DEADLINE, HUB, PARTITIONS, STREAM, Workplace
from tests.patience import allowed, ended

WITH_PEERS = ("--interval", "0.5", "--expiry", "3")  # a busy worker must not count as gone


def test_workers_that_join_leave_freeze_and_die_share_partitions_evenly_and_write_each_event_once(
    place: Workplace,
) -> None:
    place.publish(200)
    place.start_worker(*WITH_PEERS)
    place.until_shared(8)
    second, leaving = place.start_worker(*WITH_PEERS), place.start_worker()
    place.until_shared(2, 3, 3)
    place.publish(200)
    place.until_all_accounted()

    leaving.send_signal(signal.SIGTERM)
    _, errors = ended(leaving, DEADLINE)
    assert (leaving.returncode, errors) == (0, "")
    assert len(place.shares()) == 2, "a worker that left still owns partitions"
    place.publish(200)
    place.until_shared(4, 4)
    place.until_all_accounted()
    place.assert_each_event_once()

    publish_and_wait_until_some_are_written(place)
    place.freeze(second)
    place.until_shared(8)
    place.publish(200)
    place.until_all_accounted()
    second.send_signal(signal.SIGCONT)
    place.until_shared(4, 4)
    place.publish(200)
    place.until_all_accounted()
    place.assert_each_event_once()

    publish_and_wait_until_some_are_written(place)
    second.kill()
    second.wait(allowed(DEADLINE))
    place.publish(200)
    place.until_all_accounted()
    place.until_shared(8)
    place.assert_each_event_once()


def publish_and_wait_until_some_are_written(place: Workplace) -> None:
    before = sum(place.accounted())
    place.publish(500)
    place.until(lambda: sum(place.accounted()) > before)


def test_a_worker_heals_the_gap_that_retention_left(place: Workplace) -> None:
    place.publish(20)
    worker = place.start_worker(*WITH_PEERS)
    place.until_all_accounted()
    worker.kill()
    worker.wait(allowed(DEADLINE))
    place.publish(100)
    place.emulator.expire_before(HUB, "0", 60)
    place.start_worker(*WITH_PEERS)
    place.until_all_accounted()
    books = {ledger.partition.partition_id: ledger for ledger in place.store.read_ledgers(STREAM.stream)}
    assert {id: (one.absent, one.written, one.balanced) for id, one in books.items()} == {
        "0": (40, 80, True),
        **{str(id): (0, 120, True) for id in range(1, PARTITIONS)},
    }
    assert [(gap.first, gap.last, gap.status) for gap in place.engine.gaps()] == [(20, 59, "absent")]

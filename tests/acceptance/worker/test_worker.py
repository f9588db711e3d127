import json
import signal
from pathlib import Path

import pytest

from core.settle.attempts import ALONE
from core.worker.__main__ import ENDED_EARLY
from core.worker.health import main as ask
from tests.acceptance import started
from tests.acceptance.started import CRASHED, DEADLINE, HUB, KILLING, STREAM, WAYS, App, Process, Supervisor
from tests.patience import allowed, ended

WITH_PEERS = ("--interval", "0.5", "--expiry", "3")  # a busy worker must not count as gone


def total(place: App) -> int:
    return sum(place.accounted().values())


def publish_until_some_are_written(place: App) -> None:
    before = total(place)
    place.publish(500)
    place.until(lambda: total(place) > before)


def assert_ended_in_order(worker: Process) -> None:
    _, errors = ended(worker, DEADLINE)
    assert (worker.returncode, errors) == (0, "")


@pytest.mark.proof("worker")
def test_a_signal_under_load_loses_nothing_and_releases_every_partition(place: App) -> None:
    for moment in ("it writes its first batches", "it claims its first partitions"):
        place.publish(500)
        before = total(place)
        worker = place.start_worker()
        place.until(lambda: place.shares() if "claims" in moment else total(place) > before)  # noqa: B023
        started.send_to_the_end(worker)
        assert_ended_in_order(worker)
        assert place.shares() == [], f"it still owns partitions after a signal when {moment}"
    assert total(place) < sum(place.published.values()), "every signal came after the load"
    place.start_worker()
    place.until_all_accounted()
    place.assert_each_number_once()


def test_a_signal_before_the_worker_is_ready_ends_it(place: App) -> None:
    worker = place.start_worker()

    def catches_the_signal() -> bool:
        status = Path(f"/proc/{worker.pid}/status").read_text(encoding="ascii")
        mask = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(mask >> (signal.SIGTERM - 1) & 1)

    place.until(catches_the_signal)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(allowed(DEADLINE)) == 0


def test_a_batch_that_hangs_does_not_hold_a_worker_that_is_told_to_end(place: App) -> None:
    place.send("0", [b"sleep"])
    place.send("1", [b"any other"])
    killing = {"TRANSFORM": "tests.fakes.killing_transform", "BATCH_LINES_PER_MINUTE": "0"}
    worker = place.start_worker("--grace", "1", **killing)
    place.until(lambda: place.engine.sql("SELECT COUNT(*) FROM batch_attempt") == [(1,)] and total(place) == 1)
    worker.send_signal(signal.SIGTERM)
    printed, _ = ended(worker, 20)  # below the default of --grace
    assert worker.returncode == ENDED_EARLY
    assert [json.loads(line).get("batches") for line in printed.splitlines()][-2:] == [1, None], printed
    assert total(place) == 1
    place.start_worker()
    place.until_all_accounted()


def test_a_worker_that_is_asked_answers_until_it_hangs(place: App) -> None:
    worker = place.start_worker("--health", "127.0.0.1:0")
    assert worker.stdout is not None
    address = next(json.loads(line)["health"] for line in worker.stdout if "worker ready" in line)
    assert ask([address]) == 0
    place.until(lambda: len(place.shares()) == 1)
    place.freeze(worker)
    assert ask([address]) == 1
    worker.send_signal(signal.SIGCONT)
    assert ask([address]) == 0


def test_workers_that_join_leave_freeze_and_die_share_partitions_evenly_and_write_each_event_once(place: App) -> None:
    place.publish(200)
    place.start_worker(*WITH_PEERS)
    place.until_shared(8)
    second, leaving = place.start_worker(*WITH_PEERS), place.start_worker()
    place.until_shared(2, 3, 3)
    place.publish(200)
    place.until_all_accounted()
    leaving.send_signal(signal.SIGTERM)
    assert_ended_in_order(leaving)
    assert len(place.shares()) == 2, "a worker that left still owns partitions"
    place.publish(200)
    place.until_shared(4, 4)
    place.until_all_accounted()
    place.assert_each_number_once()
    publish_until_some_are_written(place)
    place.freeze(second)
    place.until_shared(8)
    place.publish(200)
    place.until_all_accounted()
    second.send_signal(signal.SIGCONT)
    place.until_shared(4, 4)
    place.publish(200)
    place.until_all_accounted()
    place.assert_each_number_once()
    publish_until_some_are_written(place)
    second.kill()
    second.wait(allowed(DEADLINE))
    place.publish(200)
    place.until_all_accounted()
    place.until_shared(8)
    place.assert_each_number_once()


def test_a_worker_heals_the_gap_that_retention_left(place: App) -> None:
    place.publish(20)
    worker = place.start_worker()
    place.until_all_accounted()
    worker.kill()
    worker.wait(allowed(DEADLINE))
    place.publish(100)
    place.emulator.expire_before(HUB, "0", 60)
    place.start_worker()
    place.until_all_accounted()
    place.assert_each_number_once({"0": set(range(20, 60))})
    books = {str(one.partition.partition_id): (one.absent, one.written) for one in place.store.read_ledgers(STREAM)}
    assert books == {**dict.fromkeys(place.published, (0, 120)), "0": (40, 80)}


def test_eight_partitions_with_a_killer_each_cost_two_workers_at_most(place: App) -> None:
    for id, way in enumerate(WAYS):
        place.send(str(id), [*[b"fine"] * 20, way, b"leave", *[b"fine"] * 20])
    supervisor = Supervisor(lambda: place.start_worker(**KILLING), most_deaths=2)
    # without a death, when the event that fills the memory comes first: it warns its process
    supervisor.until(lambda: place.accounted() == place.published)
    crashed = dict.fromkeys([way.decode() for way in WAYS], CRASHED)
    assert place.letters() == {**crashed, "leave": ("unknown", "SystemExit", "waiting")}
    assert place.engine.sql("SELECT COUNT(*) FROM batch_attempt") == [(0,)]


@pytest.mark.parametrize(("way", "deaths"), [(b"group", 1), (b"parent", ALONE + 1)])
def test_a_killer_that_takes_its_parent_along_is_isolated(place: App, way: bytes, deaths: int) -> None:
    """A child has a session of its own. One that kills its parent by its id is known by the marks in the store."""
    place.send("0", [*[b"fine"] * 5, way, *[b"fine"] * 5])
    supervisor = Supervisor(lambda: place.start_worker(**KILLING), most_deaths=deaths)
    assert len(supervisor.until(lambda: place.accounted() == place.published)) == deaths
    assert place.letters() == {way.decode(): CRASHED}
    assert place.engine.sql("SELECT COUNT(*) FROM batch_attempt") == [(0,)]


def test_four_events_that_hang_cost_two_workers_at_most_and_a_deadline_each(place: App) -> None:
    for id in map(str, range(4)):
        place.send(id, [b"fine", b"sleep", b"fine"])
    supervisor = Supervisor(lambda: place.start_worker(**KILLING), most_deaths=2)
    assert set(supervisor.until(lambda: place.accounted() == place.published)) == {70}
    assert [(one.partition_id, one.sequence_number, one.error) for one in place.engine.letters()] == [
        (str(id), 1, "it did not return within 1 s (TRANSFORM_DEADLINE_SECONDS)") for id in range(4)
    ]

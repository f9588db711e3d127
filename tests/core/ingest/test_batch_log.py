"""core/ingest/batch_log.py: sums are logged after their minute, even when no more batches arrive."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from core.errors import StoreUnavailable
from core.ingest.batch_log import BatchLog, ring_later
from core.ingest.ingest import Ingestion, ingest_batch
from tests.fakes.builders import FakeClock, batch, events, partition, stamps
from tests.fakes.memory_store import MemoryStore
from tests.fakes.plain_transform import PLAIN
from tests.patience import allowed

REPORT = ingest_batch(batch(events(0, 4, "reading a")), Ingestion(MemoryStore(), PLAIN, stamps(3)))


class FakeTimer:
    """Records the call that a timer would make, and its delay."""

    def __init__(self) -> None:
        self.set: list[tuple[float, Callable[[], None]]] = []
        self.cancelled = 0

    def later(self, seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
        self.set.append((seconds, ring))
        return self.cancel

    def cancel(self) -> None:
        self.cancelled += 1


class World:
    """A log of which every batch is summed, over a clock and a timer that a test moves."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO", "hubledger")
        self._caplog = caplog
        self.clock, self.timer = FakeClock(), FakeTimer()
        self.log = BatchLog(0, self.clock.now, self.timer.later)

    @property
    def summed(self) -> list[int]:
        return [vars(record)["batches"] for record in self._caplog.records]


@pytest.fixture
def world(caplog: pytest.LogCaptureFixture) -> World:
    return World(caplog)


def test_after_the_last_batch_a_timer_logs_the_sums(world: World) -> None:
    world.clock.advance(20)
    world.log.add(REPORT, 0.1)
    world.log.add(REPORT, 0.1)
    ((seconds, ring),) = world.timer.set
    assert (seconds, world.summed) == (40, [])
    world.clock.advance(seconds)
    ring()
    assert world.summed == [2]
    assert len(world.timer.set) == 1


def test_a_timer_that_comes_after_the_next_minute_began_is_set_again(world: World) -> None:
    world.log.add(REPORT, 0.1)
    world.clock.advance(70)
    world.log.add(REPORT, 0.1)
    assert world.summed == [1]
    world.timer.set[0][1]()
    assert [seconds for seconds, _ in world.timer.set] == [60, 50]


def test_an_end_logs_all_sums_and_cancels_the_timer(world: World) -> None:
    world.log.add(REPORT, 0.1)
    world.log.close()
    assert (world.summed, world.timer.cancelled) == ([1], 1)


def test_without_sums_no_timer_is_set(caplog: pytest.LogCaptureFixture) -> None:
    timer = FakeTimer()
    log = BatchLog(9, FakeClock().now, timer.later)
    log.add(REPORT, 0.1)
    log.close()
    assert (timer.set, timer.cancelled) == ([], 0)


def test_the_timer_rings_in_a_thread_that_no_exit_waits_for() -> None:
    rung: list[bool] = []
    done = threading.Event()

    def ring() -> None:
        rung.append(threading.current_thread().daemon)
        done.set()

    ring_later(0, ring)
    assert done.wait(allowed(10))
    assert rung == [True]


def test_the_line_of_a_repeated_fault_has_its_count_and_its_partition(caplog: pytest.LogCaptureFixture) -> None:
    given, log = replace(batch(events(0, 4)), retries=6), BatchLog(0, FakeClock().now)
    log.fail(given, StoreUnavailable("no answer"))
    (line,) = map(vars, caplog.records)
    assert {name: line[name] for name in ("action", "partition", "error", "count", "invocation_id")} == {
        "action": "fault_repeated", "partition": str(partition()), "error": "StoreUnavailable: no answer", "count": 7,
        "invocation_id": "invocation-1",
    }  # fmt: skip
    assert log.faults == {"0": "StoreUnavailable"}
    log.add(REPORT, 0.1)
    assert log.faults == {}

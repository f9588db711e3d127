"""core/ingest/batch_log.py: sums are logged after their minute, even when no more batches arrive."""

import re
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import StoreUnavailable
from core.ingest.batch_log import BatchLine, BatchLines, BatchLog, ring_later
from core.ingest.ingest import Ingestion, IngestReport, ingest_batch
from tests.fakes.builders import NOON, FakeClock, batch, event, events, partition, stamps
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


COUNTS = ("batches", "events", "rows", "written", "dead_lettered", "redelivered")
MINUTE = timedelta(minutes=1)


def reports() -> tuple[list[IngestReport], list[IngestReport]]:
    """Return ordinary reports, of two partitions, and unusual ones: redelivered, with a letter, with both."""
    means = Ingestion(MemoryStore(), PLAIN, stamps(9))
    first, other = batch(events(0, 4, "reading a")), batch(events(0, 1, "reading a"), partition("1"))
    letter = batch([event(5, "reading a"), event(6, "poison")])
    both = batch([*events(0, 6, "reading a"), event(7, "poison")])
    one, two, again, failed, mixed = (ingest_batch(each, means) for each in (first, other, first, letter, both))
    return [one, two], [again, failed, mixed]


ORDINARY, UNUSUAL = reports()


def batch_lines(own_lines: int) -> BatchLines:
    return BatchLines(own_lines)


def facts(lines: list[BatchLine]) -> list[dict[str, Any]]:
    return [dict(line.facts) for line in lines]


def totals(lines: list[BatchLine]) -> Counter[str]:
    return sum((Counter({name: line[name] for name in COUNTS}) for line in facts(lines)), Counter())


def test_up_to_the_limit_each_batch_has_its_own_line_at_once() -> None:
    lines = batch_lines(2)
    (one,) = lines.add(ORDINARY[0], 0.5, NOON)
    (two,) = lines.add(ORDINARY[1], 0.25, NOON)
    assert (one.text, one.facts["batches"], one.facts["events"], one.facts["rows"]) == ("batch ingested", 1, 5, 5)
    assert (one.facts["first"], one.facts["last"], one.facts["seconds"]) == (0, 4, 0.5)
    assert (two.facts["partition"], two.facts["invocation_id"]) == ("telemetry/hubledger/1", "invocation-1")
    assert lines.rest() == []


def test_the_others_are_one_line_for_each_partition_when_the_minute_has_ended() -> None:
    lines = batch_lines(0)
    for report in (*ORDINARY, *ORDINARY):
        assert lines.add(report, 0.5, NOON + timedelta(seconds=59)) == []
    assert lines.due(NOON + timedelta(seconds=59.9)) == []
    one, two = lines.due(NOON + MINUTE)
    assert (one.text, one.facts["action"]) == ("batches ingested", "ingest")
    assert (one.facts["batches"], one.facts["events"], one.facts["seconds"]) == (2, 10, 1.0)
    assert (one.facts["first"], one.facts["last"], one.facts["minute"]) == (0, 4, NOON.isoformat())
    assert (two.facts["partition"], two.facts["batches"], two.facts["written"]) == ("telemetry/hubledger/1", 2, 4)
    assert lines.due(NOON + 2 * MINUTE) == []


def test_a_sum_has_the_slowest_batch() -> None:
    lines = batch_lines(0)
    for seconds in (0.1, 3.0, 0.2):
        lines.add(ORDINARY[0], seconds, NOON)
    (line,) = facts(lines.rest())
    assert (line["slowest_seconds"], line["seconds"]) == (3.0, 3.3)


def test_the_next_batch_brings_the_sums_of_the_minute_before_and_has_its_own_line_again() -> None:
    lines = batch_lines(1)
    for _ in range(3):
        lines.add(ORDINARY[0], 0.1, NOON)
    summed, own = lines.add(ORDINARY[0], 0.1, NOON + MINUTE)
    assert (summed.facts["batches"], own.facts["batches"], own.text) == (2, 1, "batch ingested")


def test_an_unusual_batch_keeps_its_own_line_among_many_ordinary_ones() -> None:
    lines = batch_lines(1)
    for _ in range(9):
        lines.add(ORDINARY[0], 0.1, NOON)
    (line,) = lines.add(UNUSUAL[1], 0.1, NOON)
    assert (line.text, line.facts["dead_lettered"]) == ("batch ingested", 1)
    assert lines.add(UNUSUAL[0], 0.1, NOON) == []  # and more of them are summed, so that they cannot flood the log
    assert totals(lines.rest())["redelivered"] == 5


def test_the_line_of_a_batch_and_of_sums_names_the_lines_of_the_room_that_raised_errors() -> None:
    lines = batch_lines(1)
    (own,) = lines.add(UNUSUAL[1], 0.5, NOON)
    (place,) = facts([own])[0]["raised_at"]
    assert re.fullmatch(r"plain_transform\.py:\d+ PoisonEvent", place)
    for report in (UNUSUAL[1], UNUSUAL[2], ORDINARY[0]):
        lines.add(report, 0.5, NOON)
    assert [one.get("raised_at") for one in facts(lines.rest())] == [{place: 2}]
    (ordinary,) = batch_lines(1).add(ORDINARY[0], 0.5, NOON)
    assert "raised_at" not in ordinary.facts


def test_sums_are_due_at_the_end_of_their_minute_and_at_once_when_it_has_passed() -> None:
    lines = batch_lines(0)
    assert lines.wait(NOON) is None
    lines.add(ORDINARY[0], 0.1, NOON + timedelta(seconds=20))
    assert lines.wait(NOON + timedelta(seconds=20)) == timedelta(seconds=40)
    assert lines.wait(NOON + 3 * MINUTE) == timedelta()


@given(st.lists(st.tuples(st.sampled_from(ORDINARY + UNUSUAL), st.integers(0, 20)), max_size=60), st.integers(0, 4))
def test_whatever_comes_the_lines_sum_to_all_batches_and_are_few(
    given_reports: list[tuple[IngestReport, int]], own_lines: int
) -> None:
    lines, now = batch_lines(own_lines), NOON
    logged: list[tuple[datetime, BatchLine]] = []
    for report, pause in given_reports:
        now += timedelta(seconds=pause)
        logged += [(now, line) for line in lines.add(report, 0.1, now)]
    logged += [(now, line) for line in lines.rest()]
    every = batch_lines(1000)
    each = [line for report, _ in given_reports for line in every.add(report, 0.1, NOON)]
    assert totals([line for _, line in logged]) == totals(each)
    own = Counter(at.replace(second=0) for at, line in logged if line.text == "batch ingested")
    sums = Counter(line.facts["minute"] for _, line in logged if line.text == "batches ingested")
    assert max(own.values(), default=0) <= 2 * own_lines
    assert max(sums.values(), default=0) <= 2  # partitions

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
from core.ingest.ingest import IngestReport
from tests.core.ingest.conftest import World
from tests.fakes.builders import NOON, FakeClock, batch, event, events, partition
from tests.patience import allowed

COUNTS = ("batches", "events", "rows", "written", "dead_lettered", "redelivered")
MINUTE = timedelta(minutes=1)


def reports() -> tuple[list[IngestReport], list[IngestReport]]:
    world, first = World(), events(0, 4, "reading a")
    ordinary = [world.take(*first), world.take(*events(0, 1, "reading a"), of="1")]
    letter = world.take(event(5, "reading a"), event(6, "poison"))
    return ordinary, [world.take(*first), letter, world.take(*events(0, 6, "reading a"), event(7, "poison"))]


ORDINARY, UNUSUAL = reports()


def facts(lines: list[BatchLine]) -> list[dict[str, Any]]:
    return [dict(line.facts) for line in lines]


def totals(lines: list[BatchLine]) -> Counter[str]:
    return sum((Counter({name: line[name] for name in COUNTS}) for line in facts(lines)), Counter())


def test_a_timer_logs_the_sums_after_the_last_batch_unless_the_end_does(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "hubledger")
    clock, timers, cancelled = FakeClock(), list[tuple[float, Callable[[], None]]](), list[int]()

    def later(seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
        timers.append((seconds, ring))
        return lambda: cancelled.append(1)

    def summed() -> list[int]:
        return [vars(record)["batches"] for record in caplog.records]

    log = BatchLog(0, clock.now, later)
    clock.advance(20)
    for _ in range(2):
        log.add(ORDINARY[0], 0.1)
    assert ([seconds for seconds, _ in timers], summed()) == ([40], [])
    clock.advance(40)
    timers[0][1]()
    assert (summed(), len(timers)) == ([2], 1)
    log.add(ORDINARY[0], 0.1)
    clock.advance(70)
    log.add(ORDINARY[0], 0.1)
    assert summed() == [2, 1], "the next batch brings the sums of the minute before"
    timers[1][1]()
    assert [seconds for seconds, _ in timers] == [40, 60, 50], "a timer that comes late is set again"
    log.close()
    assert (summed(), len(cancelled)) == ([2, 1, 1], 1)
    each = BatchLog(9, clock.now, later)
    each.add(ORDINARY[0], 0.1)
    each.close()
    assert (len(timers), len(cancelled)) == (3, 1), "without sums no timer is set"


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
    log = BatchLog(0, FakeClock().now)
    log.fail(replace(batch(events(0, 4)), retries=6), StoreUnavailable("no answer"))
    (line,) = map(vars, caplog.records)
    names = ("action", "partition", "error", "count", "invocation_id")
    said = ["fault_repeated", str(partition()), "StoreUnavailable: no answer", 7, "invocation-1"]
    assert [line[name] for name in names] == said
    assert log.faults == {"0": "StoreUnavailable"}
    log.add(ORDINARY[0], 0.1)
    assert log.faults == {}


def test_an_unusual_batch_keeps_its_own_line_and_names_the_lines_of_the_room_that_raised_errors() -> None:
    lines = BatchLines(1)
    (one,) = lines.add(ORDINARY[1], 0.25, NOON)
    assert (one.text, one.facts["batches"], one.facts["events"], one.facts["rows"]) == ("batch ingested", 1, 2, 2)
    assert (one.facts["first"], one.facts["last"], one.facts["seconds"]) == (0, 1, 0.25)
    assert (one.facts["partition"], one.facts["invocation_id"]) == ("telemetry/hubledger/1", "invocation-1")
    for _ in range(2):
        lines.add(ORDINARY[0], 0.1, NOON)
    (own,) = lines.add(UNUSUAL[1], 0.1, NOON)
    assert (own.text, own.facts["dead_lettered"]) == ("batch ingested", 1)
    (place,) = facts([own])[0]["raised_at"]
    assert re.fullmatch(r"plain_transform\.py:\d+ PoisonEvent", place)
    for report in (*UNUSUAL, ORDINARY[0]):  # more of them are summed, so that they cannot flood the log
        assert lines.add(report, 0.1, NOON) == []
    summed, following = lines.add(ORDINARY[0], 0.1, NOON + MINUTE)
    assert (summed.facts["batches"], summed.facts["raised_at"]) == (6, {place: 2})
    assert (following.text, "raised_at" in following.facts) == ("batch ingested", False)


@given(st.lists(st.tuples(st.sampled_from(ORDINARY + UNUSUAL), st.integers(0, 20)), max_size=60), st.integers(0, 4))
def test_whatever_comes_the_lines_sum_to_all_batches_and_are_few(
    given_reports: list[tuple[IngestReport, int]], own_lines: int
) -> None:
    lines, every, now = BatchLines(own_lines), BatchLines(1000), NOON
    logged: list[tuple[datetime, BatchLine]] = []
    for report, pause in given_reports:
        now += timedelta(seconds=pause)
        logged += [(now, line) for line in lines.add(report, 0.1, now)]
    logged += [(now, line) for line in lines.rest()]
    each = [line for report, _ in given_reports for line in every.add(report, 0.1, NOON)]
    assert totals([line for _, line in logged]) == totals(each)
    own = Counter(at.replace(second=0) for at, line in logged if line.text == "batch ingested")
    sums = Counter(line.facts["minute"] for _, line in logged if line.text == "batches ingested")
    assert max(own.values(), default=0) <= 2 * own_lines
    assert max(sums.values(), default=0) <= 2  # partitions

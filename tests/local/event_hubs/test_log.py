"""Positions, retention and numbering in the log of a partition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.event_hubs.errors import AmqpError
from local.event_hubs.events import read_publication
from local.event_hubs.log import PartitionLog
from tests.local.event_hubs.messages import message

EVENT = read_publication(message(), 0).events


def append(log: PartitionLog, count: int, now: int = 0) -> None:
    log.stage(EVENT * count, now)
    log.append_staged()


def numbers(log: PartitionLog) -> list[int]:
    return [event.sequence_number for event in log.read(0, 1_000_000)]


def position(log: PartitionLog, selector: str) -> int:
    return log.position("amqp.annotation.x-opt-" + selector)


@pytest.fixture
def log() -> PartitionLog:
    """Ten events, two at each of the times 0, 10, 20, 30 and 40."""
    log = PartitionLog("0")
    for now in range(0, 50, 10):
        append(log, 2, now)
    return log


def test_a_selector_names_the_first_event_to_read(log: PartitionLog) -> None:
    offset = log.read(6, 1)[0].offset
    expected = {
        "offset > '-1'": 0,
        "offset >= '-1'": 0,
        "offset > '@latest'": 10,
        f"offset > '{offset}'": 7,
        f"offset >= '{offset}'": 6,
        "sequence-number > '3'": 4,
        "sequence-number >= '3'": 3,
        "sequence-number > '9'": 10,
        "sequence-number >= 9": 9,
        "enqueued-time > '20'": 6,
        "enqueued-time >= '20'": 4,
        "enqueued-time > '15'": 4,
        "enqueued-time > '1000'": 10,
    }
    assert {selector: position(log, selector) for selector in expected} == expected
    assert log.position(None) == 0


def test_a_position_that_does_not_exist_is_refused(log: PartitionLog) -> None:
    last = "The last sequence number in the system is '9'"
    complaints = {
        "sequence-number > '71181'": f"The supplied sequence number '71181' is invalid. {last}",
        "sequence-number >= '10'": last,
        "offset > '99999'": "The supplied offset '99999' is invalid",
        "offset > 'abc'": "unsupported selector",
        "colour > '1'": "unsupported selector",
        "offset < '1'": "unsupported selector",
    }
    for selector, complaint in complaints.items():
        with pytest.raises(AmqpError, match=rf"com\.microsoft:argument-error.*{complaint}"):
            position(log, selector)


def test_enqueued_times_never_go_back_within_a_partition() -> None:
    log = PartitionLog("0")
    append(log, 1, now=100)
    append(log, 1, now=50)
    log.stage(EVENT, 120)
    log.stage(EVENT, 60)
    log.append_staged()
    assert [event.enqueued_at for event in log.read(0, 9)] == [100, 100, 120, 120]
    assert numbers(log) == [0, 1, 2, 3]


def test_a_staged_event_cannot_be_read_and_leaves_no_gap_when_it_is_dropped() -> None:
    log = PartitionLog("0")
    log.stage(EVENT, 0)
    assert log.read(0, 1) == []
    assert log.last_sequence == -1
    log.append_staged()
    log.stage(EVENT, 0)
    log.drop_staged()
    append(log, 1)
    assert numbers(log) == [0, 1]


def test_a_reader_before_the_retained_events_starts_at_the_first_of_them_or_at_the_end(log: PartitionLog) -> None:
    log.expire_before(6)
    assert position(log, "sequence-number > '2'") == 6
    assert [event.sequence_number for event in log.read(2, 2)] == [6, 7]
    log.expire_before(10)
    assert position(log, "sequence-number > '9'") == position(log, "offset > '-1'") == 10
    with pytest.raises(AmqpError, match="system is '9'"):
        position(log, "sequence-number > '10'")
    empty = PartitionLog("0")
    assert position(empty, "offset > '-1'") == position(empty, "offset > '@latest'") == 0
    with pytest.raises(AmqpError):
        position(empty, "sequence-number > '0'")


@given(st.lists(st.integers(1, 60), max_size=30), st.integers(1, 100), st.data())
def test_retention_by_count_leaves_the_newest_where_they_were(
    sizes: list[int], retained: int, data: st.DataObject
) -> None:
    log = PartitionLog("0", retained_events=retained)
    total = first_in_memory = 0
    for size in sizes:
        append(log, size)
        if log.expire():
            first_in_memory = log.first_sequence
        total += size
        expected = list(range(max(0, total - retained), total))
        assert numbers(log) == expected
        assert log.first_sequence == expected[0]
        asked = data.draw(st.integers(-1, total - 1))
        assert position(log, f"sequence-number > '{asked}'") == max(asked + 1, expected[0])
        assert total - first_in_memory <= retained * 10 // 9 + 64

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.event_hubs.codec import decode
from local.event_hubs.errors import AmqpError
from local.event_hubs.events import Event, key_hash, partition_index, read_publication
from local.event_hubs.hubs import Hubs, HubSettings
from local.event_hubs.log import PartitionLog
from local.event_hubs.sections import sections
from tests.local.event_hubs.messages import message
from tests.local.event_hubs.peer import Clock

# The hashes are those of PartitionResolverTests.cs in azure-sdk-for-net, which the clients of Java and Python test too.
KNOWN = {
    "7": -15263,
    "7149583486996073602": 12977,
    "sOdeEAsyQoEuEFPGerWO": -6503,
    "p4*!jioeO/z-!-;w:dh": -3104,
    "-4189260826195535198": 453,
}


def test_a_key_has_the_hash_that_every_client_computes_and_its_sign_is_dropped_after_the_division() -> None:
    assert {key: key_hash(key) for key in KNOWN} == KNOWN
    for count in (1, 4, 5, 16, 32):
        truncated = [abs(known) % count for known in KNOWN.values()]  # C#: Math.Abs(hash % count)
        assert [partition_index(key, count) for key in KNOWN] == truncated
    assert partition_index("", 4) == 0
    assert key_hash("ä") != key_hash("\xc3\xa4"), "it is hashed as UTF-8"


def parts(payload: bytes) -> dict[int, Any]:
    return {section.code: decode(payload, section.body)[0] for section in sections(payload)}


EVENT = read_publication(message(), 0).events


def append(log: PartitionLog, count: int, now: int = 0) -> None:
    log.stage(EVENT * count, now)
    log.append_staged()


def in_log(log: PartitionLog) -> list[int]:
    return [event.sequence_number for event in log.read(0, 1_000_000)]


def position(log: PartitionLog, selector: str) -> int:
    return log.position("amqp.annotation.x-opt-" + selector)


def test_enqueued_times_never_go_back_and_a_dropped_event_leaves_no_gap() -> None:
    log = PartitionLog("0")
    append(log, 1, now=100)
    append(log, 1, now=50)
    log.stage(EVENT, 120)
    log.stage(EVENT, 60)
    assert log.last_sequence == 1, "a staged event cannot be read"
    log.append_staged()
    log.stage(EVENT, 0)
    log.drop_staged()
    append(log, 1)
    assert [event.enqueued_at for event in log.read(0, 9)] == [100, 100, 120, 120, 120]
    assert in_log(log) == [0, 1, 2, 3, 4]


@given(st.lists(st.integers(1, 60), max_size=30), st.integers(1, 100), st.data())
def test_retention_by_count_leaves_the_newest_in_place(sizes: list[int], retained: int, data: st.DataObject) -> None:
    log = PartitionLog("0", retained_events=retained)
    total = first_in_memory = 0
    for size in sizes:
        append(log, size)
        if log.expire():
            first_in_memory = log.first_sequence
        total += size
        expected = list(range(max(0, total - retained), total))
        assert in_log(log) == expected
        assert log.first_sequence == expected[0]
        asked = data.draw(st.integers(-1, total - 1))
        assert position(log, f"sequence-number > '{asked}'") == max(asked + 1, expected[0])
        assert total - first_in_memory <= retained * 10 // 9 + 64


TELEMETRY = HubSettings("telemetry")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hubs.db"


@contextmanager
def opened(path: Path, settings: HubSettings = TELEMETRY, clock: Clock | None = None) -> Iterator[Hubs]:
    hubs = Hubs([settings], clock or Clock(1_700_000_000_000))
    hubs.open(path)
    with closing(hubs):
        yield hubs


def publish(hubs: Hubs, count: int, partition_id: str = "0") -> None:
    hub = hubs["telemetry"]
    for number in range(count):
        hubs.publish(hub, hub.partition(partition_id), message(str(number).encode()), 0)
        hubs.commit()


def expire_before(hubs: Hubs, number: int) -> None:
    hubs.expire_before(hubs["telemetry"], hubs["telemetry"].partition("0"), number)


def events(hubs: Hubs, partition_id: str = "0") -> list[Event]:
    return hubs["telemetry"].partition(partition_id).read(0, 1_000_000)


def numbers(hubs: Hubs, partition_id: str = "0") -> list[int]:
    return [event.sequence_number for event in events(hubs, partition_id)]


def test_events_survive_a_restart_with_their_numbers_offsets_and_times(path: Path) -> None:
    clock = Clock(1_000_000)
    with opened(path, clock=clock) as hubs:
        publish(hubs, 5)
        before, created_at = events(hubs), hubs["telemetry"].created_at
    clock.now -= 500
    with opened(path, clock=clock) as hubs:
        assert events(hubs) == before
        assert hubs["telemetry"].created_at == created_at
        publish(hubs, 1)
        after = events(hubs)[-1]
        assert after.sequence_number == 5
        assert after.offset == before[-1].offset + len(before[-1].payload)
        assert after.enqueued_at == 1_000_000, "times do not go back when the clock has"
    with pytest.raises(ValueError, match="has 4 partitions in the database, not 8"):
        Hubs([HubSettings("telemetry", 8)], clock).open(path)


def test_events_that_retention_or_a_request_has_cut_leave_the_file_and_the_numbers_continue(path: Path) -> None:
    with opened(path, HubSettings("telemetry", retained_events=10)) as hubs:
        publish(hubs, 500)
    with closing(sqlite3.connect(path)) as connection:
        [(stored,)] = connection.execute("SELECT COUNT(*) FROM event").fetchall()
    assert 10 <= stored <= 10 + 64
    with opened(path) as hubs:
        expire_before(hubs, 498)
    with opened(path) as hubs:
        assert numbers(hubs) == [498, 499]
        expire_before(hubs, 500)
        assert numbers(hubs) == []
    with opened(path) as hubs:
        assert numbers(hubs) == [499], "the last event stays in the file, because the numbers continue from it"
        publish(hubs, 1)
        assert numbers(hubs) == [499, 500]


def test_events_that_the_disk_refuses_were_never_there(path: Path) -> None:
    with opened(path) as hubs:
        publish(hubs, 2)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON event WHEN NEW.partition_id = '0'"
            " BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        )
    with opened(path) as hubs:
        with pytest.raises(AmqpError, match=r"amqp:internal-error.*the disk is full"):
            publish(hubs, 1)
        assert numbers(hubs) == [0, 1]
        assert hubs["telemetry"].partition("0").last_sequence == 1
        publish(hubs, 1, "1")
        assert numbers(hubs, "1") == [0]

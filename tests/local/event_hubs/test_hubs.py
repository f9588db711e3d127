"""Settings of hubs, routing, and the copy on disk."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from local.event_hubs.errors import AmqpError
from local.event_hubs.events import BATCH_FORMAT, Event, partition_index
from local.event_hubs.hubs import Hubs, HubSettings
from tests.local.event_hubs.messages import batch, message
from tests.local.event_hubs.peer import Clock

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


@pytest.mark.parametrize(
    ("complaint", "make"),
    [
        ("'' is not a name", lambda: HubSettings("")),
        ("'a b' is not a name", lambda: HubSettings("a b")),
        ("'x/y' is not a name", lambda: HubSettings("telemetry", consumer_groups=("x/y",))),
        ("has 0 partitions", lambda: HubSettings("telemetry", 0)),
        ("retains 0 events", lambda: HubSettings("telemetry", retained_events=0)),
        ("lets publishers lead by 0 events", lambda: HubSettings("telemetry", lead=0)),
        ("two hubs have the same name", lambda: Hubs([TELEMETRY, HubSettings("Telemetry")], Clock())),
    ],
)
def test_settings_that_event_hubs_would_not_take_are_refused(complaint: str, make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=complaint):
        make()


def test_every_hub_has_the_default_consumer_group() -> None:
    hubs = Hubs([HubSettings("telemetry", consumer_groups=("HubLedger",))], Clock())
    assert hubs["TELEMETRY"].consumer_groups == {"$default", "hubledger"}


def test_a_keyed_batch_goes_whole_to_the_partition_of_its_key_and_messages_without_a_key_take_turns() -> None:
    hubs = Hubs([HubSettings("telemetry", 3)], Clock())
    hubs.publish(hubs["telemetry"], None, batch([message()] * 4, partition_key="home-7"), BATCH_FORMAT)
    [grown] = hubs.commit()
    assert (grown.partition_id, grown.last_sequence) == (str(partition_index("home-7", 3)), 3)
    for _ in range(6):
        hubs.publish(hubs["telemetry"], None, message(), 0)
    assert [partition.last_sequence for partition in hubs.commit() if partition is not grown] == [1, 1]
    assert grown.last_sequence == 5
    with pytest.raises(AmqpError, match=r"argument-out-of-range.*'3' of hub telemetry is not between 0 and 2"):
        hubs["telemetry"].partition("3")


# the copy on disk


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


def test_numbers_continue_even_when_every_event_was_cut(path: Path) -> None:
    with opened(path) as hubs:
        publish(hubs, 200)
        expire_before(hubs, 200)
        assert numbers(hubs) == []
    with opened(path) as hubs:
        assert numbers(hubs) == [199], "the last event stays in the file, because the numbers continue from it"
        publish(hubs, 1)
        assert numbers(hubs) == [199, 200]


def test_events_that_retention_or_a_request_has_cut_leave_the_file(path: Path) -> None:
    with opened(path, HubSettings("telemetry", retained_events=10)) as hubs:
        publish(hubs, 500)
    with closing(sqlite3.connect(path)) as connection:
        [(stored,)] = connection.execute("SELECT COUNT(*) FROM event").fetchall()
    assert 10 <= stored <= 10 + 64
    with opened(path) as hubs:
        expire_before(hubs, 498)
    with opened(path) as hubs:
        assert numbers(hubs) == [498, 499]


def test_a_file_of_a_hub_with_other_partitions_is_refused(path: Path) -> None:
    with opened(path):
        pass
    with pytest.raises(ValueError, match="has 4 partitions in the database, not 8"):
        Hubs([HubSettings("telemetry", 8)], Clock()).open(path)


@pytest.mark.slow
def test_a_file_is_for_one_emulator_at_a_time(path: Path) -> None:
    with opened(path), pytest.raises(sqlite3.OperationalError, match="locked"):
        Hubs([TELEMETRY], Clock()).open(path)


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


def test_a_recreated_hub_is_empty_and_has_a_new_time_also_after_a_restart(path: Path) -> None:
    clock = Clock(1_700_000_000_000)
    with opened(path, clock=clock) as hubs:
        publish(hubs, 3)
        created_at = hubs["telemetry"].created_at
        hubs.recreate("Telemetry")
        assert (numbers(hubs), hubs["telemetry"].created_at) == ([], created_at + 1)
        hubs.publish(hubs["telemetry"], hubs["telemetry"].partition("0"), message(b"late"), 0)
        clock.now += 60_000
        hubs.recreate("telemetry")
        assert hubs.commit() == [], "what was staged for it is gone with it"
        publish(hubs, 2)
    with opened(path, clock=clock) as hubs:
        assert (numbers(hubs), hubs["telemetry"].created_at) == ([0, 1], clock.now)


def test_a_hub_that_grows_keeps_its_events_also_after_a_restart(path: Path) -> None:
    with opened(path) as hubs:
        publish(hubs, 3)
        hubs.grow("Telemetry", 6)
        hub = hubs["telemetry"]
        assert (list(hub.partitions), numbers(hubs)) == (list("012345"), [0, 1, 2])
        assert {hub.route(None).partition_id for _ in range(6)} == set("012345")
        assert hub.route("key 3") is hub.partitions[str(partition_index("key 3", 6))]
        publish(hubs, 1, "5")
        for partitions in (6, 1, 2_000):
            with pytest.raises(ValueError, match=r"give a higher number|partitions, not 1 to"):
                hubs.grow("telemetry", partitions)
    with pytest.raises(ValueError, match="has 6 partitions in the database"), opened(path):
        pass
    with opened(path, HubSettings("telemetry", 6)) as hubs:
        assert (numbers(hubs), numbers(hubs, "5")) == ([0, 1, 2], [0])

import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.eventhub.amqp import AmqpAnnotatedMessage

from core.errors import HubRefused, HubUnreachable
from core.model.events import Partition, PartitionId, SequenceNumber
from core.model.ports import OffsetRefused, Place
from core.remote.hub.reader import SdkHubReader, read_ends
from core.settings import Settings, read_settings
from local.event_hubs import Emulator
from tests.acceptance.event_hubs.clients import HUB, join_consumers, producer, publish, reading, wait_until
from tests.acceptance.started import MovableClock
from tests.patience import allowed

GROUP = "hubledger"
P = Partition(f"localhost/{HUB}", GROUP, PartitionId("0"))
NOBODY = "Endpoint=sb://localhost:1;SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true"


def settings(connection: str, **changed: str) -> Settings:
    given = {"EVENTHUB": connection, "EVENTHUB_NAME": HUB, "EVENTHUB_CONSUMER_GROUP": GROUP}
    return read_settings({**given, "STORE_CONNECTION": "sqlite:unused", **changed})


@pytest.fixture
def hub(emulator: Emulator) -> Iterator[SdkHubReader]:
    with closing(SdkHubReader(settings(emulator.connection_string))) as reader:
        yield reader


def reads(hub: SdkHubReader, first: int, last: int, seconds: float = 30.0) -> Generator[Any, None, None]:
    return hub.read_range(
        P, SequenceNumber(first), SequenceNumber(last), datetime.now(UTC) + timedelta(seconds=seconds)
    )


def numbers(hub: SdkHubReader, first: int, last: int) -> list[int]:
    return [event.sequence_number for event in reads(hub, first, last)]


def at(hub: SdkHubReader, place: Place) -> int | None:
    found = hub.first_at(P, place)
    return None if found is None else found.sequence_number


def extent(hub: SdkHubReader) -> tuple[int, int]:
    found = hub.extent(P)
    return found.beginning, found.last


def test_partitions_and_their_extents_are_the_hub_s_also_when_recreated(emulator: Emulator, hub: SdkHubReader) -> None:
    hub.check_access()
    assert hub.partitions() == tuple(Partition(P.event_hub, GROUP, PartitionId(id)) for id in "0123")
    assert (extent(hub), hub.find_event(P, SequenceNumber(0))) == ((0, -1), None)
    publish(emulator, range(10))
    emulator.expire_before(HUB, "0", 4)
    assert extent(hub) == (4, 9)
    assert [hub.find_event(P, SequenceNumber(number)) for number in (0, 3, 10, 2**40)] == [None] * 4
    last = hub.find_event(P, SequenceNumber(9))
    assert last is not None and hub.extent(P).last_enqueued_at == last.enqueued_at
    assert (last.sequence_number, last.body, last.partition_key, last.properties) == (9, b"9", None, {})
    assert abs(last.enqueued_at - datetime.now(UTC)) < timedelta(minutes=1)
    emulator.expire_before(HUB, "0", 10)
    assert extent(hub) == (10, 9)
    before = hub.created_at()
    assert hub.created_at() == before
    emulator.recreate(HUB)
    assert before < hub.created_at() <= datetime.now(UTC)
    assert extent(hub) == (0, -1)


def test_partitions_that_the_hub_gets_are_seen_within_half_a_minute(emulator: Emulator) -> None:
    seconds = 0.0
    with closing(SdkHubReader(settings(emulator.connection_string), monotonic=lambda: seconds)) as hub:
        ids = hub.partition_ids()
        assert ids == list("0123")
        emulator.grow(HUB, 6)
        publish(emulator, range(3), "5")
        seconds = 29.0
        assert len(hub.partitions()) == 4
        seconds = 30.0
        assert read_ends(hub) == {"0": -1, "1": -1, "2": -1, "3": -1, "4": -1, "5": 2}
        assert hub.partition_ids() is ids


def test_the_ends_of_all_partitions_come_over_one_connection(emulator: Emulator, hub: SdkHubReader) -> None:
    publish(emulator, range(200))
    wait_until(lambda: emulator.connection_count == 0)
    for _ in range(5):
        assert read_ends(hub) == {"0": 199, "1": -1, "2": -1, "3": -1}
    assert emulator.connection_count == 1

    def ask(number: int) -> int | None:
        return at(hub, SequenceNumber(number)) if number % 2 else extent(hub)[1]

    began = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(200))) == [number if number % 2 else 199 for number in range(200)]
    assert time.monotonic() - began < allowed(20)


def test_the_first_event_is_found_by_any_position(emulator: Emulator, hub: SdkHubReader, clock: MovableClock) -> None:
    publish(emulator, range(5))
    clock.ahead = timedelta(minutes=2)
    between = datetime.now(UTC) + timedelta(minutes=1)
    publish(emulator, range(5, 10))
    offset = hub.find_event(P, SequenceNumber(7)).offset  # type: ignore[union-attr]
    places: list[Place] = [SequenceNumber(3), offset, between, datetime(2020, 1, 1, tzinfo=UTC)]
    assert [at(hub, place) for place in places] == [3, 7, 5, 0]
    assert at(hub, between + timedelta(hours=1)) is None


@pytest.mark.parametrize("offset", ["abc", "99999999", "9:9:9", "-7-", "1.5", "9" * 64])
def test_an_offset_that_the_hub_refuses_is_named(emulator: Emulator, hub: SdkHubReader, offset: str) -> None:
    publish(emulator, range(10))
    with pytest.raises(OffsetRefused, match=offset) as caught:
        hub.first_at(P, offset)
    assert caught.value.offset == offset
    assert at(hub, "0") == 0


def test_a_range_is_read_to_its_last_event_or_to_the_end_of_the_hub_beside_the_trigger_s_reader(
    emulator: Emulator, hub: SdkHubReader
) -> None:
    publish(emulator, range(100))
    with reading(emulator, GROUP, partition_id="0", owner_level=0, retry_total=0) as trigger:
        trigger.wait_for_events(100)
        for first, last in ((0, 0), (0, 99), (17, 41), (98, 99), (99, 99), (97, 500), (100, 500)):
            assert numbers(hub, first, last) == list(range(first, min(last, 99) + 1))
        emulator.expire_before(HUB, "0", 60)
        assert numbers(hub, 50, 63) == [60, 61, 62, 63]
        assert numbers(hub, 0, 59) == []
        publish(emulator, ["last"])
        trigger.wait_for_events(101)


def test_a_partition_that_is_cut_empty_while_it_is_read_ends_the_range(emulator: Emulator, hub: SdkHubReader) -> None:
    publish(emulator, range(3_000))
    found = reads(hub, 0, 2_999)
    begun = [next(found).sequence_number for _ in range(100)]
    emulator.expire_before(HUB, "0", 3_000)
    rest = [event.sequence_number for event in found]
    assert [*begun, *rest] == list(range(100 + len(rest)))
    assert len(rest) < 2_900


def test_many_events_come_in_order_and_whole_even_over_cut_connections(emulator: Emulator, hub: SdkHubReader) -> None:
    for first in range(0, 6_000, 1_000):
        publish(emulator, range(first, first + 1_000))
    assert numbers(hub, 5, 5_900) == list(range(5, 5_901))
    cuts: list[tuple[Callable[[], None], tuple[int, ...]]] = [
        (emulator.drop_connections, (10, 900, 2_100)),
        (lambda: emulator.detach_links(HUB), (10, 900)),
    ]
    for cut, counts in cuts:
        seen = []
        for event in reads(hub, 0, 2_999):
            seen.append(event.sequence_number)
            if len(seen) in counts:
                cut()
        assert seen == list(range(3_000))
        assert (extent(hub), at(hub, SequenceNumber(1))) == ((0, 5_999), 1)
        cut()
        assert (extent(hub), at(hub, SequenceNumber(1))) == ((0, 5_999), 1)
    stopped_early = reads(hub, 0, 999)
    next(stopped_early)
    stopped_early.close()
    wait_until(lambda: emulator.reader_count(HUB) == 0)


def test_a_slow_hub_is_waited_for_until_the_deadline(emulator: Emulator, hub: SdkHubReader) -> None:
    emulator.delay_deliveries(timedelta(seconds=2.5))
    publish(emulator, range(10))
    assert numbers(hub, 0, 9) == list(range(10))
    emulator.delay_deliveries(timedelta(hours=1))
    with pytest.raises(HubUnreachable):
        list(reads(hub, 0, 9, 0.5))


def test_a_wrong_hub_or_consumer_group_names_its_setting(emulator: Emulator) -> None:
    def refused(ask: Callable[[SdkHubReader], object], **changed: str) -> str:
        reader = SdkHubReader(settings(emulator.connection_string, **changed))
        with closing(reader), pytest.raises(HubRefused) as refusal:
            ask(reader)
        return str(refusal.value)

    publish(emulator, range(3))
    for ask in (
        SdkHubReader.check_access,
        lambda reader: reader.find_event(P, SequenceNumber(1)),
        lambda reader: numbers(reader, 0, 2),
    ):
        group = refused(ask, HUB_READER_CONSUMER_GROUP="nobody")
        assert group.startswith("HUB_READER_CONSUMER_GROUP: telemetry, consumer group nobody: ")
    assert refused(SdkHubReader.partitions, EVENTHUB_NAME="elsewhere").startswith("EVENTHUB_NAME: elsewhere")
    other = Partition("elsewhere/telemetry", GROUP, PartitionId("0"))
    foreign = refused(lambda reader: reader.find_event(other, SequenceNumber(0)))
    assert foreign == "EVENTHUB_NAME: telemetry/hubledger/0 is not a partition of localhost/telemetry"


def test_a_hub_that_nobody_listens_for_or_that_says_nothing_is_unreachable_in_time_and_a_token_is_sent_again(
    emulator: Emulator, hub: SdkHubReader, clock: MovableClock
) -> None:
    with closing(SdkHubReader(settings(NOBODY))) as reader:
        asked = (reader.partitions, lambda: reader.extent(P), lambda: numbers(reader, 0, 1), lambda: at(reader, "abc"))
        for ask in asked:
            with pytest.raises(HubUnreachable):
                ask()
        with pytest.raises(HubUnreachable, match="the hub did not answer"):
            read_ends(reader)
    assert extent(hub) == (0, -1)
    emulator.freeze()
    try:
        began = time.monotonic()
        with pytest.raises(HubUnreachable):
            hub.extent(P)
        assert time.monotonic() - began < allowed(15)
    finally:
        emulator.thaw()
    assert extent(hub) == (0, -1)
    clock.ahead = timedelta(hours=2)
    with pytest.raises(HubRefused, match="EVENTHUB_NAME: telemetry"):
        hub.extent(P)
    clock.ahead = timedelta(0)
    assert extent(hub) == (0, -1)


def test_a_closed_reader_leaves_no_line_and_no_thread_and_opens_again(emulator: Emulator, hub: SdkHubReader) -> None:
    publish(emulator, range(3))
    wait_until(lambda: emulator.connection_count == 0)
    join_consumers()
    before = threading.active_count()
    for _ in range(5):
        assert numbers(hub, 0, 2) == [0, 1, 2]
    wait_until(lambda: threading.active_count() <= before)
    for _ in range(2):
        assert numbers(hub, 0, 2) == [0, 1, 2]
        hub.close()
        wait_until(lambda: emulator.connection_count == 0)
    hub.close()


def test_names_the_first_event_that_the_trigger_cannot_deliver(emulator: Emulator, hub: SdkHubReader) -> None:
    assert hub.suspect(P, SequenceNumber(0)) is None
    publish(emulator, ["a", "b"])
    with producer(emulator) as client:
        client.send_batch([AmqpAnnotatedMessage(value_body="text")], partition_id="0")
    assert hub.suspect(P, SequenceNumber(0)) == "event 2 cannot be delivered: its body is an AMQP value, not data"
    publish(emulator, ["d"])
    assert hub.suspect(P, SequenceNumber(3)) is None
    assert hub.suspect(P, SequenceNumber(9)) is None

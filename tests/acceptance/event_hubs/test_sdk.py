import asyncio
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from azure.core.credentials import AzureSasCredential
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.aio import EventHubProducerClient as AioProducerClient
from azure.eventhub.exceptions import AuthenticationError, EventDataSendError, EventHubError

from local.event_hubs import Emulator, HubSettings, partition_index
from tests.acceptance.event_hubs.clients import CONSUMER, HUB, producer, publish, reading, reading_aio, sas, wait_until
from tests.acceptance.started import MovableClock
from tests.patience import allowed


def test_a_keyed_batch_goes_to_the_partition_of_its_key_in_order(emulator: Emulator) -> None:
    keys = ["a", "ä", "home-17", "7149583486996073602"]
    with producer(emulator) as client, reading(emulator) as seen:
        for key in keys:
            batch = client.create_batch(partition_key=key)
            for number in range(3):
                batch.add(EventData(f"{key}/{number}"))
            client.send_batch(batch)
        seen.wait_for_events(12)
    for key in keys:
        own = [(partition, event) for partition, event in seen.events if event.partition_key == key.encode()]
        assert {partition for partition, _ in own} == {str(partition_index(key, 4))}
        assert [event.body_as_str() for _, event in own] == [f"{key}/{number}" for number in range(3)]
    failed: list[Any] = []
    answers: dict[str, Any] = {
        "on_success": lambda events, id: None,
        "on_error": lambda events, id, error: failed.append(error),
    }
    with producer(emulator, buffered_mode=True, max_wait_time=0.2, **answers) as client:
        for number in range(1000):
            client.send_event(EventData(str(number)), partition_key=f"home-{number}")
        client.flush()
    assert not failed
    assert sum(last + 1 for last in emulator.end_of(HUB).values()) == 1012


def test_sizes_up_to_the_limit_come_back_whole_and_those_over_it_or_throttled_are_refused(emulator: Emulator) -> None:
    with producer(emulator, retry_total=0) as client:
        batch = client.create_batch(partition_id="0")
        assert batch.max_size_in_bytes == 1024 * 1024
        client.send_event(EventData(b"y" * 1_000_000), partition_id="0")
        with suppress(ValueError):
            while True:
                batch.add(EventData(b"z" * 1000))
        client.send_batch(batch)
        with pytest.raises(EventHubError, match=r"exceeds the limit \(1048576 bytes\)"):
            client.send_event(EventData(b"x" * 2_000_000), partition_id="0")
    emulator.throttle(1)
    with producer(emulator) as client:
        with pytest.raises(EventDataSendError, match="throttled"):
            client.send_event(EventData("x"), partition_id="0")
        client.send_event(EventData("after"), partition_id="0")
    with reading(emulator, partition_id="0") as seen:
        seen.wait_for_events(len(batch) + 2)
    assert (seen.bodies[0], seen.bodies[-1]) == ("y" * 1_000_000, "after")


def test_a_reader_starts_at_its_position_or_at_the_first_event_that_retention_left(
    emulator: Emulator, clock: MovableClock
) -> None:
    publish(emulator, range(5))
    clock.ahead = timedelta(minutes=2)
    between = datetime.now(UTC) + timedelta(minutes=1)
    publish(emulator, range(5, 10))
    with reading(emulator, partition_id="0") as seen:
        seen.wait_for_events(10)
    offset = seen.events[3][1].offset
    emulator.expire_before(HUB, "0", 2)
    positions: list[tuple[dict[str, Any], int]] = [
        ({"starting_position": "-1"}, 2),
        ({"starting_position": 0}, 2),
        ({"starting_position": 3}, 4),
        ({"starting_position": 3, "starting_position_inclusive": True}, 3),
        ({"starting_position": between}, 5),
        ({"starting_position": offset}, 4),
        ({"starting_position": offset, "starting_position_inclusive": True}, 3),
        ({"starting_position": "@latest"}, 10),
    ]

    def read(group: str, position: dict[str, Any], first: int) -> list[int]:
        with reading_aio(emulator, group, partition_id="0", **position) as seen:
            seen.wait_for_events(11 - first)
        return seen.numbers

    wait_until(lambda: emulator.reader_count(HUB) == 0)
    with ThreadPoolExecutor(len(positions)) as pool:
        groups = itertools.cycle(("$Default", "hubledger"))  # each takes five readers at the limit
        reads = [pool.submit(read, next(groups), position, first) for position, first in positions]
        wait_until(lambda: emulator.reader_count(HUB) == len(positions))
        publish(emulator, ["last"])
        numbers = [each.result() for each in reads]
    assert numbers == [list(range(first, 11)) for _, first in positions]


def test_sync_and_aio_readers_get_numbers_offsets_and_times_in_every_group_and_in_any_case(emulator: Emulator) -> None:
    publish(emulator, range(300))
    metrics: dict[str, Any] = {"partition_id": "0", "track_last_enqueued_event_properties": True}
    many = {"partition_id": "0", "prefetch": 3000, "max_batch_size": 3000}
    with (
        reading(emulator, **metrics) as one,
        reading_aio(emulator, **metrics) as two,
        reading_aio(emulator, "HUBLEDGER", **many) as three,
    ):
        for seen in (one, two, three):
            seen.wait_for_events(300)
            assert seen.numbers == list(range(300))
            assert seen.bodies == [str(number) for number in range(300)]
            offsets = [int(event.offset) for _, event in seen.events]
            assert offsets == sorted(set(offsets))
            assert max(abs(event.enqueued_time - datetime.now(UTC)) for _, event in seen.events) < timedelta(minutes=1)


def refusals(emulator: Emulator, *readers: dict[str, Any]) -> list[str]:
    """Return the errors of sync consumers that start together. An aio one retries a refused link in silence."""

    def refusal(options: dict[str, Any]) -> str:
        with reading(emulator, **{"retry_total": 0, "partition_id": "0", **options}) as seen:
            seen.wait(lambda now: bool(now.errors))
        return str(seen.errors[0])

    with ThreadPoolExecutor(len(readers)) as pool:
        return list(pool.map(refusal, readers))


def with_token(emulator: Emulator, expires_in: timedelta) -> EventHubProducerClient:
    credential = AzureSasCredential(sas(emulator, expires_in))
    return EventHubProducerClient(f"localhost:{emulator.port}", HUB, credential, use_tls=False, retry_total=0)


def send(client: EventHubProducerClient, partition_id: str = "0") -> None:
    client.send_event(EventData("x"), partition_id=partition_id)


def test_a_producer_is_refused_with_the_reason(emulator: Emulator) -> None:
    here, nowhere = partial(producer, emulator, retry_total=0), partial(producer, emulator, "nowhere", retry_total=0)
    wrong = emulator.connection_string.replace("SAS_KEY_VALUE", "wrong")
    wrong_key = EventHubProducerClient.from_connection_string(wrong, eventhub_name=HUB, retry_total=0)
    expired = with_token(emulator, timedelta(seconds=-5))
    cases: list[tuple[EventHubProducerClient, Callable[[EventHubProducerClient], object], type[Exception], str]] = [
        (nowhere(), lambda client: client.create_batch(), EventHubError, "/nowhere' could not be found"),
        (nowhere(), lambda client: client.get_eventhub_properties(), EventHubError, "404"),
        (here(), lambda client: send(client, "9"), EventHubError, "Invalid partition 9"),
        (here(), lambda client: client.get_partition_properties("9"), EventHubError, "400"),
        (wrong_key, lambda client: client.get_eventhub_properties(), AuthenticationError, "signature does not match"),
        (expired, send, AuthenticationError, "expired"),
    ]

    def refuse(client: EventHubProducerClient, ask: Callable, error: type[Exception], complaint: str) -> None:
        with client, pytest.raises(error, match=complaint):
            ask(client)

    with ThreadPoolExecutor(len(cases)) as pool:
        for each in [pool.submit(refuse, *case) for case in cases]:
            each.result()


def test_a_reader_of_an_unknown_group_a_position_past_the_end_or_a_lower_epoch_is_refused_with_the_reason(
    emulator: Emulator,
) -> None:
    publish(emulator, range(5))
    positions = ({"starting_position": 71181}, {"starting_position": "99999"})
    group, number, offset = refusals(emulator, {"group": "nobody"}, *positions)
    assert "The messaging entity 'localhost:eventhub:telemetry~32766|nobody' could not be found." in group
    assert "sequence number '71181' is invalid. The last sequence number in the system is '4'" in number
    assert "The supplied offset '99999' is invalid" in offset
    with reading_aio(emulator, partition_id="0", owner_level=5) as owner:
        owner.wait_for_events(1)
        lower, none = refusals(emulator, {"owner_level": 4}, {})
        assert "Receiver 'nil' with a higher epoch '5' already exists" in lower
        assert "with epoch of '5', and so non-epoch receiver is not allowed" in none
        assert not owner.errors


def test_dropped_connections_and_detached_links_are_opened_again_without_loss(emulator: Emulator) -> None:
    publish(emulator, range(3))
    with reading(emulator, partition_id="0") as sync, reading_aio(emulator, partition_id="0") as aio:
        for seen in (sync, aio):
            seen.wait_for_events(3)
        for cut, count in ((emulator.drop_connections, 6), (lambda: emulator.detach_links(HUB), 9)):
            cut()
            publish(emulator, range(count - 3, count))
            for seen in (sync, aio):
                seen.wait(lambda now: len(now.events) >= count)  # noqa: B023
    assert sync.numbers == aio.numbers == list(range(9))


def test_clients_go_on_after_a_restart_on_the_same_port_and_in_a_recreated_hub_at_the_old_offset_if_it_fits() -> None:
    emulator = Emulator([HubSettings(HUB)])
    with emulator.running():
        publish(emulator, range(3))
        running = reading_aio(emulator, partition_id="0")
        seen = running.__enter__()
        seen.wait_for_events(3)
    with emulator.running(port=emulator.port):
        publish(emulator, range(3, 6))
        seen.wait(lambda now: len(now.events) >= 6)
        assert seen.numbers == [0, 1, 2, 3, 4, 5]
        emulator.recreate(HUB)
        assert emulator.link_count(HUB) == 0
        publish(emulator, range(10, 18))
        seen.wait(lambda now: now.numbers[-1] == 7)
        running.__exit__(None, None, None)
    assert 0 not in seen.numbers[6:]


SENDS, EVENTS, LEAD = 3, 100, 50


def send_all(emulator: Emulator, answered: list[int]) -> None:
    with producer(emulator) as client:
        for number in range(SENDS):
            client.send_batch([EventData("x")] * EVENTS, partition_id="0")
            answered.append(number)


def send_all_aio(emulator: Emulator, answered: list[int]) -> None:
    async def run() -> None:
        text = emulator.connection_string
        async with AioProducerClient.from_connection_string(text, eventhub_name=HUB) as client:
            for number in range(SENDS):
                await client.send_batch([EventData("x")] * EVENTS, partition_id="0")
                answered.append(number)

    asyncio.run(run())


@pytest.mark.parametrize("send", [send_all, send_all_aio])
def test_publishers_wait_until_the_owner_takes_events_again(send: Callable[..., None]) -> None:
    entered, stopped, answered = threading.Event(), threading.Event(), list[int]()

    def take(_: Any, events: list[EventData]) -> None:
        if events:
            entered.set()
            stopped.wait()

    with Emulator([HubSettings(HUB, 4, lead=LEAD)]).running() as emulator:
        publish(emulator, range(1))
        text = emulator.connection_string
        owner = EventHubConsumerClient.from_connection_string(text, "$Default", eventhub_name=HUB)
        receive = {"owner_level": 0, "prefetch": 10, "max_batch_size": 10, "starting_position": "-1"}
        own = {"partition_id": "0", **receive}
        threading.Thread(target=owner.receive_batch, args=(take,), kwargs=own, name=CONSUMER, daemon=True).start()
        try:
            assert entered.wait(allowed(30))
            publishing = threading.Thread(target=send, args=(emulator, answered))
            publishing.start()
            wait_until(lambda: emulator.end_of(HUB)["0"] == EVENTS)
            publish(emulator, range(5 * LEAD), "1")
            assert (answered, emulator.end_of(HUB)["0"]) == ([], EVENTS)
        finally:
            stopped.set()
        publishing.join()
        owner.close()
        assert emulator.end_of(HUB)["0"] == SENDS * EVENTS, "no event came twice"

"""The SDK's publishers wait for the owner of a partition, without an error and without an event sent twice."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubConsumerClient
from azure.eventhub.aio import EventHubProducerClient as AioProducerClient

from local.event_hubs import Emulator, HubSettings
from tests.acceptance.event_hubs.clients import CONSUMER, HUB, producer, publish, wait_until
from tests.acceptance.event_hubs.conftest import MovableClock
from tests.patience import allowed

SENDS, EVENTS, LEAD = 3, 100, 50


@pytest.fixture
def emulator(clock: MovableClock) -> Iterator[Emulator]:
    with Emulator([HubSettings(HUB, 4, lead=LEAD)], clock=clock).running() as running:
        yield running


@contextmanager
def owner(emulator: Emulator, stopped: threading.Event) -> Iterator[None]:
    """Own partition 0 with an epoch, and stop in the first batch until the event is set."""
    entered = threading.Event()

    def take(_: Any, events: list[EventData]) -> None:
        if events:
            entered.set()
            stopped.wait()

    publish(emulator, range(1))
    client = EventHubConsumerClient.from_connection_string(emulator.connection_string, "$Default", eventhub_name=HUB)
    receive = {"partition_id": "0", "owner_level": 0, "prefetch": 10, "max_batch_size": 10, "starting_position": "-1"}
    threading.Thread(target=client.receive_batch, args=(take,), kwargs=receive, name=CONSUMER, daemon=True).start()
    try:
        assert entered.wait(allowed(30))
        yield
    finally:
        stopped.set()
        client.close()


def send(emulator: Emulator, answered: list[int]) -> None:
    with producer(emulator) as client:
        for number in range(SENDS):
            client.send_batch([EventData("x")] * EVENTS, partition_id="0")
            answered.append(number)


def send_aio(emulator: Emulator, answered: list[int]) -> None:
    async def run() -> None:
        text = emulator.connection_string
        async with AioProducerClient.from_connection_string(text, eventhub_name=HUB) as client:
            for number in range(SENDS):
                await client.send_batch([EventData("x")] * EVENTS, partition_id="0")
                answered.append(number)

    asyncio.run(run())


@pytest.mark.parametrize("send", [send, send_aio])
def test_they_wait_until_it_takes_events_again(emulator: Emulator, send: Callable[..., None]) -> None:
    stopped, answered = threading.Event(), list[int]()
    publishing = threading.Thread(target=send, args=(emulator, answered))
    with owner(emulator, stopped):
        publishing.start()
        wait_until(lambda: emulator.end_of(HUB)["0"] == EVENTS)
        publish(emulator, range(5 * LEAD), "1")
        assert (answered, emulator.end_of(HUB)["0"]) == ([], EVENTS)
        stopped.set()
        publishing.join()
    assert emulator.end_of(HUB)["0"] == SENDS * EVENTS, "no event came twice"

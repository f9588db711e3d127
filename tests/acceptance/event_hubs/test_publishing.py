"""Publishing with the SDK's producers."""

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest
from azure.eventhub import EventData
from azure.eventhub.aio import EventHubProducerClient as AioProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage
from azure.eventhub.exceptions import EventDataSendError, EventHubError

from core.remote.hub.sdk_patches import RECEIVERS
from local.event_hubs import Emulator, partition_index
from tests.acceptance.event_hubs.clients import HUB, producer, reading


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


@pytest.fixture
def sdk_alone() -> Iterator[None]:
    """Let the SDK read messages by itself, where the app's reader has taken its place in this process."""
    modules: list[Any] = [import_module(name) for name in RECEIVERS]
    readers = [module.decode_payload for module in modules]
    for module, reader in zip(modules, readers, strict=True):
        module.decode_payload = getattr(reader, "original", reader)
    yield
    for module, reader in zip(modules, readers, strict=True):
        module.decode_payload = reader


@pytest.mark.usefixtures("sdk_alone")
def test_bodies_annotations_and_properties_come_back_with_their_types(emulator: Emulator) -> None:
    properties = {"u": uuid.UUID(int=5), "n": 2**31 - 1, "f": 1.5, "t": True, "s": "ü"}
    sent = [
        AmqpAnnotatedMessage(value_body={"a": [1, "x", None]}),
        AmqpAnnotatedMessage(sequence_body=[[1, 2], [3]]),
        AmqpAnnotatedMessage(data_body=[b"a", b"b"], annotations={"mine": 7}, application_properties=properties),
    ]
    with producer(emulator) as client, reading(emulator) as seen:
        client.send_batch(sent)
        seen.wait_for_events(3)
    value, sequence, data = (event for _, event in seen.events)
    assert value.raw_amqp_message.body == {b"a": [1, b"x", None]}
    assert list(sequence.body) == [[1, 2], [3]]
    assert list(data.body) == [b"a", b"b"]
    assert data.raw_amqp_message.annotations[b"mine"] == 7
    expected: dict[bytes, Any] = {name.encode(): each for name, each in properties.items()} | {b"s": "ü".encode()}
    assert data.properties == expected


def test_sizes_up_to_the_limit_come_back_whole_and_those_over_it_are_refused(emulator: Emulator) -> None:
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
        client.send_event(EventData("after"), partition_id="0")
    with reading(emulator, partition_id="0") as seen:
        seen.wait_for_events(len(batch) + 2)
    assert seen.bodies[0] == "y" * 1_000_000
    assert seen.bodies[-1] == "after"


def test_the_buffered_producer_loses_nothing(emulator: Emulator) -> None:
    failed: list[Any] = []
    client = producer(
        emulator,
        buffered_mode=True,
        on_success=lambda events, partition_id: None,
        on_error=lambda events, partition_id, error: failed.append(error),
        max_wait_time=0.2,
    )
    with client:
        for number in range(1000):
            client.send_event(EventData(str(number)), partition_key=f"home-{number}")
        client.flush()
    assert not failed
    assert sum(last + 1 for last in emulator.end_of(HUB).values()) == 1000


def test_the_aio_producer_sends_and_reads_properties(emulator: Emulator) -> None:
    async def ask() -> tuple[dict, dict]:
        client = AioProducerClient.from_connection_string(emulator.connection_string, eventhub_name=HUB)
        async with client:
            batch = await client.create_batch(partition_id="2")
            for number in range(100):
                batch.add(EventData(str(number)))
            await client.send_batch(batch)
            return await client.get_eventhub_properties(), await client.get_partition_properties("2")

    hub, partition = asyncio.run(ask())
    assert (hub["eventhub_name"], hub["partition_ids"]) == (HUB, ["0", "1", "2", "3"])
    assert (partition["beginning_sequence_number"], partition["last_enqueued_sequence_number"]) == (0, 99)
    assert not partition["is_empty"]
    assert emulator.end_of(HUB) == {"0": -1, "1": -1, "2": 99, "3": -1}


def test_a_throttled_send_is_refused_as_server_busy_and_the_next_is_not(emulator: Emulator) -> None:
    emulator.throttle(1)
    with producer(emulator) as client:
        with pytest.raises(EventDataSendError, match="throttled"):
            client.send_event(EventData("x"), partition_id="0")
        client.send_event(EventData("x"), partition_id="0")
    assert emulator.end_of(HUB)["0"] == 0

"""Publish to the emulator with the SDK."""

from collections.abc import Mapping, Sequence
from typing import Any

from azure.eventhub import EventData, EventHubProducerClient

HUB = "telemetry"


def publish(connection_string: str, bodies: Mapping[str, Sequence[bytes]]) -> None:
    """Send the bodies of each partition, in order, over one connection."""
    with EventHubProducerClient.from_connection_string(connection_string, eventhub_name=HUB) as producer:
        for partition_id, each in bodies.items():
            producer.send_batch([_event(body) for body in each], partition_id=partition_id)


def publish_raw(connection_string: str, partition_id: str, messages: Sequence[bytes]) -> None:
    """Send messages that are encoded already, because the SDK cannot encode every one."""
    with EventHubProducerClient.from_connection_string(connection_string, eventhub_name=HUB) as producer:
        batch: Any = producer.create_batch(partition_id=partition_id)
        batch._message[5].extend(messages)
        batch._count = len(messages)
        producer.send_batch(batch)


def _event(body: bytes) -> EventData:
    event = EventData(body)
    event.properties = {"tenant": "a"}
    return event

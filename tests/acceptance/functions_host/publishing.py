"""Publish to the emulator with the SDK."""

from collections.abc import Iterable

from azure.eventhub import EventData, EventHubProducerClient

HUB = "telemetry"


def publish(connection_string: str, partition_id: str, bodies: Iterable[bytes]) -> None:
    """Send the bodies to one partition, in order."""
    with EventHubProducerClient.from_connection_string(connection_string, eventhub_name=HUB) as producer:
        batch = producer.create_batch(partition_id=partition_id)
        for body in bodies:
            event = EventData(body)
            event.properties = {"tenant": "a"}
            batch.add(event)
        producer.send_batch(batch)

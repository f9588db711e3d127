"""A producer that encodes events itself: the SDK needs more time to encode an event than the app to ingest it."""

import struct

from azure.eventhub import EventDataBatch, EventHubProducerClient
from azure.eventhub.amqp import AmqpAnnotatedMessage

from local.feed.publisher import PARTITION_KEY

_ANNOTATIONS, _DATA = b"\x00\x53\x72", b"\x00\x53\x75"  # the descriptors of two sections of an AMQP message
_NAME = bytes((0xA3, len(PARTITION_KEY))) + PARTITION_KEY  # a symbol
_LONG = struct.Struct(">I")
_SECTIONS = 5  # the place of the data sections in a message of the SDK; of a batch, each is a message


class LightBatch(EventDataBatch):  # type: ignore[misc]  # the SDK has no types here
    """A batch of the SDK, whose events are encoded here. It has no limit of bytes, because a send of a feed has one."""

    def add(self, event_data: AmqpAnnotatedMessage) -> None:
        """Add an event with a partition key of less than 200 bytes, and no properties."""
        (body,) = event_data.body
        self._message[_SECTIONS].append(encoded(event_data.annotations[PARTITION_KEY].encode(), body))
        self._count += 1


def encoded(key: bytes, body: bytes) -> bytes:
    """Return an event as an AMQP message: its partition key as an annotation, and its body."""
    pair = _NAME + bytes((0xA1, len(key))) + key
    small = len(body) < 256
    size = bytes((0xA0, len(body))) if small else b"\xb0" + _LONG.pack(len(body))
    return b"".join((_ANNOTATIONS, bytes((0xC1, len(pair) + 1, 2)), pair, _DATA, size, body))


class LightProducer:
    """A producer of the feed over a client of the SDK."""

    def __init__(self, client: EventHubProducerClient) -> None:
        self._client = client

    def create_batch(self, *, partition_id: str | None = None, partition_key: str | None = None) -> EventDataBatch:
        """Return an empty batch for one partition."""
        return LightBatch(partition_id=partition_id, partition_key=partition_key)

    def send_batch(self, event_data_batch: EventDataBatch, *, timeout: float) -> None:
        """Send, and wait for the answer."""
        self._client.send_batch(event_data_batch, timeout=timeout)

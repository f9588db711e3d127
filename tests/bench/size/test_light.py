"""bench/size/light.py: its bytes are those of the SDK, and the hub reads key and body from them."""

import pytest
from azure.eventhub import EventDataBatch
from azure.eventhub.amqp import AmqpAnnotatedMessage

from bench.size.light import LightBatch
from local.feed.publisher import PARTITION_KEY

BODIES = [b"", b"x", b"x" * 255, b"x" * 256, b"x" * 70_000]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: str(len(body)))
def test_an_event_has_the_bytes_that_the_sdk_would_send(body: bytes) -> None:
    message = AmqpAnnotatedMessage(data_body=body, annotations={PARTITION_KEY: "home-0é0001"})
    light, usual = LightBatch(partition_id="1"), EventDataBatch(partition_id="1")
    light.add(message)
    usual.add(message)
    assert [bytes(one) for one in light._message[5]] == [bytes(one) for one in usual._message[5]]
    assert len(light) == len(usual) == 1

"""core/remote/hub/client.py: the batches that a worker gets from the SDK."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub import EventData

from core.model.events import EventBatch
from core.remote.hub.client import receive
from tests.fakes.builders import partition

CONTEXT = SimpleNamespace(
    fully_qualified_namespace="namespace", eventhub_name="telemetry", consumer_group="hubledger", partition_id="0"
)


def received(number: int) -> EventData:
    event = EventData(b"")
    event.raw_amqp_message.annotations = {
        b"x-opt-sequence-number": number,
        b"x-opt-offset": b"0",
        b"x-opt-enqueued-time": 1_795_262_400_000,
    }
    return event


class HandingOver:
    """A client of the SDK that hands over batches of these numbers, and ends."""

    def __init__(self, *batches: Sequence[int]) -> None:
        self._batches = batches

    async def receive_batch(self, on_batch: Callable[..., Any], **options: Any) -> None:
        for numbers in self._batches:
            await on_batch(CONTEXT, list(map(received, numbers)))


async def taken(*batches: Sequence[int]) -> list[tuple[str, list[int]]]:
    """The ids and numbers of the batches that come out."""
    found: list[EventBatch] = []

    async def take(batch: EventBatch) -> None:
        found.append(batch)

    await receive(HandingOver(*batches), take, lambda *_: None)
    assert {batch.partition for batch in found} <= {partition()}
    return [(batch.invocation_id, [event.sequence_number for event in batch.events]) for batch in found]


@pytest.mark.asyncio
async def test_events_that_the_sdk_hands_over_twice_after_a_lost_connection_are_a_batch_of_their_own() -> None:
    assert await taken([7, 8, 9, 8, 9, 10]) == [("0@7", [7, 8, 9]), ("0@8", [8, 9, 10])]
    assert await taken([5, 5], [4]) == [("0@5", [5]), ("0@5", [5]), ("0@4", [4])]


@pytest.mark.asyncio
async def test_events_in_order_are_one_batch_and_none_are_no_batch() -> None:
    assert await taken([], [3, 5], [6]) == [("0@3", [3, 5]), ("0@6", [6])]

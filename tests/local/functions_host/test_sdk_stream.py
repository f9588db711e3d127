import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from azure.eventhub import EventData
from azure.eventhub._pyamqp.message import Message
from azure.eventhub.exceptions import EventHubError

from local.functions_host.event_source import START, HubAddress
from local.functions_host.sdk_stream import FIRST_PAUSE, WATCH_INTERVAL, PartitionLink, SdkStream
from tests.local.functions_host.doubles import ManualClock, eventually

pytestmark = pytest.mark.asyncio


def received(number: int) -> EventData:
    stamps = {
        b"x-opt-sequence-number": number,
        b"x-opt-offset": str(number * 64).encode(),
        b"x-opt-enqueued-time": 1_795_262_400_000,
    }
    return EventData._from_message(Message(message_annotations=stamps))


class HubClient:
    def __init__(self, last: int = -1) -> None:
        self.last = last
        self.delivered = 0
        self.positions: list[Any] = []
        self._on_error: Any = None

    async def receive_batch(self, on_event_batch: Any, **options: Any) -> None:
        self.positions.append(options["starting_position"])
        self._on_error = options["on_error"]
        first = int(options["starting_position"]) // 64 + 1 if options["starting_position"] != "-1" else 0
        size = options["max_batch_size"]
        while first <= self.last:
            await on_event_batch(None, list(map(received, range(first, min(first + size, self.last + 1)))))
            self.delivered += 1
            first += size
        await asyncio.Event().wait()

    async def get_partition_properties(self, partition_id: str) -> dict[str, Any]:
        return {"is_empty": self.last < 0, "last_enqueued_sequence_number": self.last}

    async def fail(self, text: str) -> None:
        await self._on_error(None, EventHubError(text))


@asynccontextmanager
async def streaming(client: HubClient, clock: ManualClock) -> AsyncIterator[SdkStream]:
    link = PartitionLink(client, HubAddress("localhost", "telemetry", "cg"), "0", 300, 2)
    stream = SdkStream(link, START, clock)
    await eventually(lambda: client.positions)
    try:
        yield stream
    finally:
        await stream.close()


async def numbers(stream: SdkStream, limit: int) -> list[int]:
    return [event.sequence_number for event in await asyncio.wait_for(stream.read(limit), 5)]


class ForgetfulClient(HubClient):
    """Like the SDK, it reports a broken link while its last callback still waits, and forgets the callback."""

    async def receive_batch(self, on_event_batch: Any, **options: Any) -> None:
        self.forgotten = asyncio.ensure_future(super().receive_batch(on_event_batch, **options))
        await asyncio.Event().wait()


async def test_events_of_a_broken_link_do_not_come_among_those_of_the_next(clock: ManualClock) -> None:
    client = ForgetfulClient(last=5)
    async with streaming(client, clock) as stream:
        await eventually(lambda: client.delivered)  # the second batch waits for room
        await client.fail("gone")
        await eventually(lambda: clock.is_somebody_due_within(FIRST_PAUSE))
        await clock.advance(FIRST_PAUSE)
        await eventually(lambda: len(client.positions) == 2)
        assert [await numbers(stream, 2) for _ in range(3)] == [[0, 1], [2, 3], [4, 5]]
    assert client.positions == ["-1", "64"]


async def watch(clock: ManualClock) -> None:
    await eventually(lambda: clock.is_somebody_due_within(WATCH_INTERVAL))
    await clock.advance(WATCH_INTERVAL)


async def test_a_partition_that_stalls_while_the_hub_has_more_is_opened_again(clock: ManualClock) -> None:
    client = HubClient(last=1)
    async with streaming(client, clock) as stream:
        assert await numbers(stream, 2) == [0, 1]
        await watch(clock)  # the events came in this interval
        await eventually(lambda: clock.is_somebody_due_within(WATCH_INTERVAL))
        client.last = 3
        await watch(clock)
        assert await numbers(stream, 2) == [2, 3]
    assert client.positions == ["-1", "64"]

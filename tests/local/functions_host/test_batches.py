import asyncio
from datetime import timedelta

import pytest

from local.functions_host.event_source import START
from local.functions_host.partition_pump import next_batch
from local.functions_host.settings import EventHubOptions
from tests.local.functions_host.doubles import ManualClock, MemoryHub

pytestmark = pytest.mark.asyncio

AT_LEAST_THREE = EventHubOptions(max_event_batch_size=4, min_event_batch_size=3, max_wait_time=timedelta(seconds=10))


async def test_a_small_batch_waits_for_more(clock: ManualClock) -> None:
    hub = MemoryHub()
    await hub.send("0", b"a")
    waiting = asyncio.ensure_future(next_batch(await hub.open("0", START), AT_LEAST_THREE, clock))
    await clock.next_sleep()
    await hub.send("0", b"b")
    await clock.next_sleep()
    assert not waiting.done()
    await hub.send("0", b"c", b"d", b"e")
    assert [each.body for each in await waiting] == [b"a", b"b", b"c", b"d"]


async def test_a_small_batch_is_delivered_after_the_longest_wait(clock: ManualClock) -> None:
    hub = MemoryHub()
    await hub.send("0", b"a")
    waiting = asyncio.ensure_future(next_batch(await hub.open("0", START), AT_LEAST_THREE, clock))
    assert await clock.next_sleep() == timedelta(seconds=10)
    await clock.advance(timedelta(seconds=10))
    assert [each.body for each in await waiting] == [b"a"]

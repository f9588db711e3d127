import asyncio
from datetime import timedelta

import pytest

from local.functions_host.clock import sleep_until, unless
from tests.local.functions_host.doubles import ManualClock

pytestmark = pytest.mark.asyncio


async def test_work_that_ends_first_gives_its_result_and_cancels_the_interruption() -> None:
    interruption = asyncio.ensure_future(asyncio.Event().wait())

    async def work() -> int:
        return 7

    assert await unless(interruption, work()) == 7
    assert interruption.cancelled()


async def test_an_interruption_that_comes_first_cancels_the_work() -> None:
    interrupted = asyncio.Event()
    interrupted.set()
    work = asyncio.ensure_future(asyncio.Event().wait())
    assert await unless(interrupted.wait(), work) is None
    assert work.cancelled()


async def test_an_item_in_a_queue_is_not_lost_to_an_interruption() -> None:
    queue: asyncio.Queue[int] = asyncio.Queue()
    interrupted = asyncio.Event()
    waiting = asyncio.ensure_future(unless(interrupted.wait(), queue.get()))
    await asyncio.sleep(0)
    interrupted.set()
    queue.put_nowait(1)
    got = await waiting
    assert (got, queue.qsize()) in ((1, 0), (None, 1))


async def test_sleeping_until_an_instant_goes_in_steps_so_that_a_set_clock_is_noticed(clock: ManualClock) -> None:
    sleeping = asyncio.ensure_future(sleep_until(clock, clock.now() + timedelta(hours=1)))
    assert await clock.next_sleep() == timedelta(minutes=1)
    await clock.advance(timedelta(hours=1))
    await asyncio.wait_for(sleeping, 5)


async def test_sleeping_until_an_instant_ends_when_the_clock_is_set_back(clock: ManualClock) -> None:
    sleeping = asyncio.ensure_future(sleep_until(clock, clock.now() + timedelta(hours=1)))
    await clock.next_sleep()
    clock.pass_time(-timedelta(days=1))
    clock.wake()
    await asyncio.wait_for(sleeping, 5)

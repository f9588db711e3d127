import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from local.functions_host.event_source import START, HubEvent, ReaderStopped, StartAt
from local.functions_host.invoker import Ending
from local.functions_host.partition_pump import REOPEN_AFTER, HostCheckpoint, PartitionPump, PumpParts, next_batch
from local.functions_host.settings import EventHubOptions
from tests.local.functions_host.doubles import ManualClock, MemoryHub, MemoryStream, event, eventually

pytestmark = pytest.mark.asyncio

STOP = b"stop"


class Bench:
    """A hub of one partition with a pump. `batches` were delivered, `written` are its checkpoints."""

    def __init__(self) -> None:
        self.options = EventHubOptions(max_event_batch_size=2)
        self.hub = MemoryHub()
        self.clock = ManualClock()
        self.written: list[StartAt] = []
        self.stored: StartAt | None = None
        self.batches: list[list[int]] = []
        self.ending = Ending.SUCCEEDED
        self.gate = asyncio.Event()
        self.gate.set()
        self._at_once = 0

    async def deliver(self, events: Sequence[HubEvent], checkpoints: bool) -> Ending:
        self._at_once += 1
        assert self._at_once == 1, "two batches of one partition at once"
        self.batches.append([each.sequence_number for each in events])
        await self.gate.wait()
        self._at_once -= 1
        return self.ending

    @asynccontextmanager
    async def pumping(self) -> Any:
        checkpoint = HostCheckpoint(lambda: self.stored, self.written.append, self.options.batch_checkpoint_frequency)
        parts = PumpParts(self.hub, self.options, self.clock, self.deliver, "ingest")
        pump = PartitionPump("0", checkpoint, parts)
        task = asyncio.create_task(pump.run())
        try:
            yield pump
        finally:
            pump.stop()
            self.gate.set()
            await asyncio.wait_for(task, 5)

    async def send(self, count: int) -> None:
        await self.hub.send("0", *[b""] * count)

    async def checkpoint_is(self, number: int) -> None:
        await eventually(lambda: self.written[-1:] == [event(number).position])

    async def delivered(self, *batches: list[int]) -> None:
        await eventually(lambda: len(self.batches) >= len(batches))
        assert self.batches == list(batches)


class StoppingHub(MemoryHub):
    async def open(self, partition_id: str, start: StartAt) -> MemoryStream:
        stream = await super().open(partition_id, start)
        read = stream.read

        async def reading(limit: int) -> Sequence[HubEvent]:
            events = await read(limit)
            for place, each in enumerate(events):
                if each.body == STOP:
                    raise ReaderStopped(each.sequence_number, is_first=not place)
            return events

        stream.read = reading  # type: ignore[method-assign]
        return stream


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_batches_are_delivered_in_order_and_checkpointed_after_a_failure_too(bench: Bench) -> None:
    for ending, first in ((Ending.SUCCEEDED, 0), (Ending.FAILED, 5)):
        bench.ending = ending
        await bench.send(5)
        async with bench.pumping():
            await bench.delivered([first, first + 1], [first + 2, first + 3], [first + 4])
            await bench.checkpoint_is(first + 4)
        bench.stored = bench.written[-1]
        bench.batches.clear()
    assert bench.written == [event(number).position for number in (1, 3, 4, 6, 8, 9)]


async def test_an_abandoned_batch_is_not_checkpointed_and_no_batch_after_it_is_taken(bench: Bench) -> None:
    await bench.send(2)
    async with bench.pumping():
        await bench.delivered([0, 1])
        bench.ending = Ending.ABANDONED
        await bench.send(4)
        await bench.delivered([0, 1], [2, 3])
    assert bench.batches == [[0, 1], [2, 3]]
    assert bench.written == [event(1).position]


async def test_a_running_batch_is_finished_before_the_pump_stops_and_no_checkpoint_passes_it(bench: Bench) -> None:
    await bench.send(4)
    bench.gate.clear()
    async with bench.pumping():
        await bench.delivered([0, 1])
    assert bench.batches == [[0, 1]]
    assert bench.written == []


@pytest.mark.parametrize("is_redelivered", [False, True])
async def test_a_stopped_reader_writes_nothing_over_a_lifted_checkpoint(bench: Bench, is_redelivered: bool) -> None:
    bench.options = replace(bench.options, batch_checkpoint_frequency=9)
    bench.hub = StoppingHub()
    await bench.hub.send("0", b"", b"", STOP)
    async with bench.pumping() as pump:
        await bench.delivered([0, 1])
        await eventually(lambda: bench.clock.is_somebody_due_within(REOPEN_AFTER))
        bench.stored = event(2).position
        if is_redelivered:
            pump.redeliver(1)
            await bench.delivered([0, 1], [0, 1])
        else:
            await bench.clock.advance(REOPEN_AFTER)
            await eventually(lambda: len(bench.hub.opened) == 2)
    assert is_redelivered or bench.written == []


async def test_a_small_batch_waits_for_more_or_for_the_longest_wait() -> None:
    at_least_three = EventHubOptions(
        max_event_batch_size=4, min_event_batch_size=3, max_wait_time=timedelta(seconds=10)
    )
    for more in (True, False):
        clock, hub = ManualClock(), MemoryHub()
        await hub.send("0", b"a")
        waiting = asyncio.ensure_future(next_batch(await hub.open("0", START), at_least_three, clock))
        assert await clock.next_sleep() == timedelta(seconds=10)
        if more:
            await hub.send("0", b"b")
            await clock.next_sleep()
            assert not waiting.done()
            await hub.send("0", b"c", b"d", b"e")
        else:
            await clock.advance(timedelta(seconds=10))
        assert [each.body for each in await waiting] == ([b"a", b"b", b"c", b"d"] if more else [b"a"])

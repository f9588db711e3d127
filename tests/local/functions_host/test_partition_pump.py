import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from local.functions_host.event_source import END, HubEvent, ReaderStopped, StartAt
from local.functions_host.invoker import Ending
from local.functions_host.partition_pump import REOPEN_AFTER, HostCheckpoint, PartitionPump, PumpParts
from local.functions_host.settings import EventHubOptions
from tests.local.functions_host.doubles import ManualClock, MemoryHub, MemoryStream, event, eventually

pytestmark = pytest.mark.asyncio

STOP = b"stop"


class Function:
    """Stores its batches; `gate` holds it, `ending` is its result."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.checkpoints: list[bool] = []
        self.ending = Ending.SUCCEEDED
        self.gate = asyncio.Event()
        self.gate.set()
        self.at_once = 0

    async def deliver(self, events: Sequence[HubEvent], checkpoints: bool) -> Ending:
        self.at_once += 1
        assert self.at_once == 1, "two batches of one partition at once"
        self.batches.append([each.sequence_number for each in events])
        self.checkpoints.append(checkpoints)
        await self.gate.wait()
        self.at_once -= 1
        return self.ending


class Bench:
    """A hub of one partition with a pump; `written` are its checkpoints."""

    def __init__(self, options: EventHubOptions) -> None:
        self.options = options
        self.hub = MemoryHub()
        self.function = Function()
        self.written: list[StartAt] = []
        self.stored: StartAt | None = None
        self.clock = ManualClock()

    @asynccontextmanager
    async def pumping(self) -> Any:
        checkpoint = HostCheckpoint(lambda: self.stored, self.written.append, self.options.batch_checkpoint_frequency)
        parts = PumpParts(self.hub, self.options, self.clock, self.function.deliver, "ingest")
        pump = PartitionPump("0", checkpoint, parts)
        task = asyncio.create_task(pump.run())
        try:
            yield pump
        finally:
            pump.stop()
            self.function.gate.set()
            await asyncio.wait_for(task, 5)

    def restart(self) -> None:
        """Let the next pump start at the last checkpoint."""
        self.stored = self.written[-1]
        self.function.batches.clear()

    async def send(self, count: int) -> None:
        await self.hub.send("0", *[b""] * count)

    async def delivered(self, *batches: list[int]) -> None:
        await eventually(lambda: len(self.function.batches) >= len(batches))
        assert self.function.batches == list(batches)

    async def checkpoint_is(self, number: int) -> None:
        await eventually(lambda: self.written and self.written[-1] == event(number).position)


class DisorderedHub(MemoryHub):
    """Its first stream has the events of each read in the wrong order."""

    async def open(self, partition_id: str, start: StartAt) -> MemoryStream:
        stream = await super().open(partition_id, start)
        return stream if len(self.opened) > 1 else DisorderedStream(stream)


class DisorderedStream(MemoryStream):
    def __init__(self, stream: MemoryStream) -> None:
        vars(self).update(vars(stream))

    async def read(self, limit: int) -> Sequence[HubEvent]:
        return (await super().read(limit))[::-1]


class StoppingHub(MemoryHub):
    """Its readers stop on the events whose body is STOP."""

    async def open(self, partition_id: str, start: StartAt) -> MemoryStream:
        return StoppingStream(await super().open(partition_id, start))


class StoppingStream(MemoryStream):
    def __init__(self, stream: MemoryStream) -> None:
        vars(self).update(vars(stream))

    async def read(self, limit: int) -> Sequence[HubEvent]:
        events = await super().read(limit)
        for place, each in enumerate(events):
            if each.body == STOP:
                raise ReaderStopped(each.sequence_number, is_first=not place)
        return events


@pytest.fixture
def bench() -> Bench:
    return Bench(EventHubOptions(max_event_batch_size=2))


async def test_batches_are_delivered_in_order_and_checkpointed_after_a_failure_too(bench: Bench) -> None:
    for ending, first in ((Ending.SUCCEEDED, 0), (Ending.FAILED, 5)):
        bench.function.ending = ending
        await bench.send(5)
        async with bench.pumping():
            await bench.delivered([first, first + 1], [first + 2, first + 3], [first + 4])
            await bench.checkpoint_is(first + 4)
        bench.restart()
    assert bench.written == [event(number).position for number in (1, 3, 4, 6, 8, 9)]


async def test_an_abandoned_batch_is_not_checkpointed_and_no_batch_after_it_is_taken(bench: Bench) -> None:
    await bench.send(2)
    async with bench.pumping():
        await bench.delivered([0, 1])
        bench.function.ending = Ending.ABANDONED
        await bench.send(4)
        await bench.delivered([0, 1], [2, 3])
    assert bench.function.batches == [[0, 1], [2, 3]]
    assert bench.written == [event(1).position]


async def test_the_checkpoint_is_written_on_every_nth_batch_and_at_the_end(bench: Bench) -> None:
    bench.options = replace(bench.options, batch_checkpoint_frequency=2)
    await bench.send(6)
    async with bench.pumping():
        await bench.delivered([0, 1], [2, 3], [4, 5])
        assert bench.written == [event(3).position]
    assert bench.written == [event(3).position, event(5).position]
    assert bench.function.checkpoints == [False, True, False]


async def test_the_initial_offset_counts_only_without_a_checkpoint(bench: Bench) -> None:
    bench.options = replace(bench.options, start_at=END)
    await bench.send(3)
    async with bench.pumping():
        await eventually(lambda: bench.hub.opened)
        await asyncio.sleep(0)
        await bench.send(1)
        await bench.delivered([3])
    bench.restart()
    await bench.send(2)
    async with bench.pumping():
        await bench.delivered([4, 5])


async def test_a_running_batch_is_finished_before_the_pump_stops_and_no_checkpoint_passes_it(bench: Bench) -> None:
    await bench.send(4)
    bench.function.gate.clear()
    async with bench.pumping():
        await bench.delivered([0, 1])
    assert bench.function.batches == [[0, 1]]
    assert bench.written == []


async def test_the_first_events_of_a_partition_without_checkpoint_wait_for_no_others(bench: Bench) -> None:
    bench.options = replace(bench.options, min_event_batch_size=2)
    await bench.send(1)
    async with bench.pumping():
        await bench.delivered([0])
        await bench.send(1)
        await asyncio.sleep(0.01)
        assert bench.function.batches == [[0]]  # the second one waits for another, or for a minute
        await bench.send(1)
        await bench.delivered([0], [1, 2])
        await bench.checkpoint_is(2)
    bench.restart()
    await bench.send(1)
    async with bench.pumping():
        await asyncio.sleep(0.01)
        assert bench.function.batches == []
        await bench.send(1)
        await bench.delivered([3, 4])


async def test_a_batch_that_came_out_of_order_is_read_again_from_the_checkpoint(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.hub = DisorderedHub()
    await bench.send(1)
    async with bench.pumping():
        await bench.delivered([0])
        await bench.send(4)
        await bench.delivered([0], [1, 2], [3, 4])
    (logged,) = [vars(one) for one in caplog.records if getattr(one, "action", "") == "disorder"]
    assert (logged["first"], logged["last"]) == (2, 1)


async def reopened(bench: Bench, times: int) -> None:
    """Let the pause of a stopped reader pass, and wait until it is opened again."""
    await eventually(lambda: bench.clock.is_somebody_due_within(REOPEN_AFTER))
    assert await bench.clock.next_sleep() == REOPEN_AFTER
    await bench.clock.advance(REOPEN_AFTER)
    await eventually(lambda: len(bench.hub.opened) == times)


def actions(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [vars(one)["action"] for one in caplog.records]


async def test_a_reader_that_stopped_opens_again_from_the_checkpoint_that_is_in_the_store_by_then(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.hub = StoppingHub()
    await bench.hub.send("0", b"", b"", b"lost", STOP, b"", b"")
    async with bench.pumping():
        await bench.delivered([0, 1])
        bench.stored = bench.written[-1]
        await reopened(bench, 2)
        bench.stored = event(3).position  # somebody lifts the checkpoint
        await reopened(bench, 3)
        await bench.delivered([0, 1], [4, 5])
        await bench.checkpoint_is(5)  # and the host writes its own over it
    assert [start for _, start in bench.hub.opened[1:]] == [event(1).position, event(3).position]
    assert actions(caplog) == ["reader_stopped"] * 2
    assert vars(caplog.records[0])["sequence_number"] == 3


async def test_a_checkpoint_that_was_lifted_is_not_overwritten_with_an_older_one(bench: Bench) -> None:
    bench.options = replace(bench.options, batch_checkpoint_frequency=9)
    bench.hub = StoppingHub()
    await bench.hub.send("0", b"", b"", STOP)
    async with bench.pumping():
        await bench.delivered([0, 1])
        bench.stored = event(2).position
        await reopened(bench, 2)
    assert bench.written == []


async def test_a_stopped_reader_begins_where_it_is_asked_to_deliver_again(bench: Bench) -> None:
    bench.hub = StoppingHub()
    await bench.hub.send("0", b"", b"", STOP)
    async with bench.pumping() as pump:
        await bench.delivered([0, 1])
        await eventually(lambda: bench.clock.is_somebody_due_within(REOPEN_AFTER))
        bench.stored = event(2).position
        pump.redeliver(1)
        await bench.delivered([0, 1], [0, 1])

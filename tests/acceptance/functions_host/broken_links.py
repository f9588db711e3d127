"""A hub under load whose links break at random, and the pumps of its partitions, whose function can be held."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from local.event_hubs import Emulator
from local.functions_host.app_settings import HubConnection
from local.functions_host.clock import Clock
from local.functions_host.event_source import START, HubAddress, HubEvent
from local.functions_host.invoker import Ending
from local.functions_host.partition_pump import HostCheckpoint, PartitionPump, PumpParts
from local.functions_host.sdk_stream import SdkSource
from local.functions_host.settings import EventHubOptions
from tests.acceptance.functions_host.publishing import HUB, publish
from tests.local.functions_host.doubles import eventually

PARTITIONS = ("0", "1")
OPTIONS = EventHubOptions(max_event_batch_size=20, prefetch_count=100)
MOST = 120  # events of a partition in one round: some of them stay in the SDK's buffer while the function is held
HELD, HOLD_S = 0.7, 4.0  # the share of the rounds in which the function is held, and for how long at most
SOON_S = 60.0


class BreakingHub:
    """A hub of two partitions that are pumped; `delivered` are the numbers that the function got."""

    def __init__(self, emulator: Emulator, dice: random.Random, clock: Clock) -> None:
        self.emulator, self._dice, self._clock = emulator, dice, clock
        self.delivered: dict[str, list[int]] = {id: [] for id in PARTITIONS}
        self.published = 0
        self._may_run = asyncio.Event()
        self._may_run.set()

    @asynccontextmanager
    async def pumping(self) -> AsyncIterator[None]:
        source = self._source()
        pumps = [self._pump(id, source) for id in PARTITIONS]
        running = [asyncio.create_task(pump.run()) for pump in pumps]
        try:
            yield
        finally:
            self._may_run.set()
            for pump in pumps:
                pump.stop()
            await asyncio.gather(*running)
            await source.close()

    async def publish_and_break(self) -> None:
        """Publish, and break the links in one of the ways of a hub, while the function runs or while it is held."""
        await eventually(self._is_read, SOON_S)
        if self._dice.random() < HELD:
            self._may_run.clear()
        count = self._dice.randint(1, MOST)
        self.published += count
        await asyncio.to_thread(publish, self.emulator.connection_string, {id: [b""] * count for id in PARTITIONS})
        await self._dice.choice((self._drop, self._detach, self._steal))()
        held = asyncio.get_running_loop().call_later(HOLD_S, self._may_run.set)  # meanwhile the SDK may not notice
        await eventually(self._is_read, SOON_S)
        held.cancel()
        self._may_run.set()

    async def all_delivered(self) -> None:
        await eventually(lambda: all(len(each) >= self.published for each in self.delivered.values()), SOON_S)

    def _is_read(self) -> bool:
        return self.emulator.reader_count(HUB) == len(PARTITIONS)

    def _source(self) -> SdkSource:
        connection = HubConnection(HubAddress("localhost", HUB, "$Default"), self.emulator.connection_string)
        return SdkSource(connection, OPTIONS, self._clock)

    def _pump(self, id: str, source: SdkSource) -> PartitionPump:
        async def deliver(events: Sequence[HubEvent], _: bool) -> Ending:
            await self._may_run.wait()
            self.delivered[id] += [event.sequence_number for event in events]
            return Ending.SUCCEEDED

        checkpoint = HostCheckpoint(lambda: START, lambda _: None)
        return PartitionPump(id, checkpoint, PumpParts(source, OPTIONS, self._clock, deliver))

    async def _drop(self) -> None:
        self.emulator.drop_connections()

    async def _detach(self) -> None:
        self.emulator.detach_links(HUB)

    async def _steal(self) -> None:
        """Read a partition beside its pump: a reader of the same epoch takes the link."""
        async with AsyncExitStack() as closing:
            thief = self._source()
            closing.push_async_callback(thief.close)
            stream = await thief.open(self._dice.choice(PARTITIONS), START)
            closing.push_async_callback(stream.close)
            await asyncio.wait_for(stream.read(1), SOON_S)

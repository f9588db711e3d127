"""Run the Event Hubs trigger of one function: a pump for each partition, all at the same time."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from local.functions_host.clock import Clock
from local.functions_host.event_hub_inputs import TriggerContext, event_hub_inputs
from local.functions_host.event_source import EventSource, HubAddress, HubEvent
from local.functions_host.function import FunctionDescription
from local.functions_host.invoker import Ending, Invoker
from local.functions_host.partition_pump import REOPEN_AFTER, Deliver, HostCheckpoint, PartitionPump, PumpParts
from local.functions_host.settings import EventHubOptions
from local.functions_host.state_file import StateFile

logger = logging.getLogger("functions_host")

UNBOUND = (
    "Exception binding parameter '{}' ---> NotSupportedException: The event body cannot be retrieved using the "
    "EventBody property: the event has no data, or its key is no text"
)

PumpFactory = Callable[[str], PartitionPump]


class EventHubListener:
    """Listens to the hub at `address` through `source`. The host owns all partitions."""

    def __init__(
        self,
        function: FunctionDescription,
        address: HubAddress,
        source: EventSource,
        reopen_after: timedelta = REOPEN_AFTER,
    ) -> None:
        self.function = function
        self._reopen_after = reopen_after
        self._address = address
        self._source = source
        self._pumps: list[PartitionPump] = []
        self._task: asyncio.Task[None] | None = None
        self._skips = 0  # requested before the pumps existed

    def start(self, invoker: Invoker, state: StateFile, options: EventHubOptions, clock: Clock) -> None:
        """Begin to listen. Return at once, even when the hub cannot be reached."""

        def pump(partition_id: str) -> PartitionPump:
            checkpoint = HostCheckpoint(
                lambda: state.read_checkpoint(self._address, partition_id),
                lambda position: state.write_checkpoint(self._address, partition_id, position),
                options.batch_checkpoint_frequency,
            )
            deliver = self._deliver_to(invoker, partition_id)
            parts = PumpParts(self._source, options, clock, deliver, self.function.name, self._reopen_after)
            return PartitionPump(partition_id, checkpoint, parts)

        self._task = asyncio.create_task(self._run(pump))

    async def stop(self) -> None:
        """Take no new batch, wait for the running ones, and write the checkpoints."""
        for pump in self._pumps:
            pump.stop()
        if self._task is not None:
            if not self._pumps:
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._source.close()

    def redeliver(self, count: int) -> None:
        """Deliver the last `count` batches of each partition again, as after a lost host checkpoint."""
        for pump in self._pumps:
            pump.redeliver(count)

    def skip(self, count: int) -> None:
        """Lose the next `count` batches of each partition, as the real host does when its worker dies."""
        if not self._pumps:
            self._skips += count
        for pump in self._pumps:
            pump.skip(count)

    async def _run(self, pump_of: PumpFactory) -> None:
        partition_ids = await self._source.partition_ids()
        self._pumps = [pump_of(partition_id) for partition_id in partition_ids]
        self.skip(self._skips)
        await asyncio.gather(*map(_run_pump, self._pumps))

    def _deliver_to(self, invoker: Invoker, partition_id: str) -> Deliver:
        trigger = self.function.trigger
        context = TriggerContext(self._address, partition_id, trigger.name, trigger.settings["dataType"])

        async def deliver(events: Sequence[HubEvent], checkpoints: bool) -> Ending:
            inputs = event_hub_inputs(context, events, checkpoints=checkpoints)
            if not all(event.binds for event in events):
                about = {"partition_id": partition_id, "first": events[0].sequence_number}
                logger.warning("batch cannot be bound", extra={"action": "batch_unbound", **about})
                inputs = replace(inputs, fault=UNBOUND.format(trigger.name))
            return await invoker.run(self.function, inputs)

        return deliver


async def _run_pump(pump: PartitionPump) -> None:
    """Run a pump. Log a fault of the host, which stops this partition only."""
    try:
        await pump.run()
    except Exception:
        logger.exception(
            "partition pump failed; its partition stops until the host restarts", extra={"action": "pump_ended"}
        )

"""Deliver the batches of one partition, one at a time, and advance the host checkpoint by the host's rules.

Source: `EventHubListener.PartitionProcessor`. The host checkpoint advances after every invocation, whatever its
outcome, unless the host stops in the middle of the batch. A partition without a checkpoint gets its first events at
once, however few they are.

Where the reader stops, it opens again from the checkpoint that is in the store by then: who moves that one frees the
partition.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from operator import lt

from local.functions_host.clock import Clock, sleep_until, unless
from local.functions_host.event_source import EventSource, EventStream, HubEvent, ReaderStopped, StartAt
from local.functions_host.invoker import Ending
from local.functions_host.settings import EventHubOptions


async def next_batch(stream: EventStream, options: EventHubOptions, clock: Clock) -> Sequence[HubEvent]:
    """Return the next batch of a stream. The longest wait begins with its first event."""
    batch = list(await stream.read(options.max_event_batch_size))
    due_at = clock.now() + options.max_wait_time
    while len(batch) < options.min_event_batch_size:
        more = await unless(sleep_until(clock, due_at), stream.read(options.max_event_batch_size - len(batch)))
        if more is None:
            break
        batch.extend(more)
    return batch


logger = logging.getLogger("functions_host")

REMEMBERED_BATCHES = 100
REOPEN_AFTER = timedelta(seconds=30)  # in which the real reader is opened again

Deliver = Callable[[Sequence[HubEvent], bool], Awaitable[Ending]]
"""Run the function for a batch; the second argument is True when a checkpoint follows."""


class HostCheckpoint:
    """The host's own checkpoint of one partition, read from the store when the reader opens, and written on every n-th
    batch and when the pump stops."""

    def __init__(
        self, read: Callable[[], StartAt | None], write: Callable[[StartAt], None], frequency: int = 1
    ) -> None:
        self._read = read
        self._write = write
        self._frequency = frequency
        self.read()

    def read(self) -> None:
        """Take the position that is in the store, and forget what was not written."""
        self.position = self._read()
        self._unwritten = 0

    @property
    def writes_next(self) -> bool:
        """True when the next batch is followed by a write."""
        return self._unwritten + 1 >= self._frequency

    def advance(self, position: StartAt) -> None:
        """Advance past a batch, and write on every n-th one."""
        self.position = position
        self._unwritten += 1
        if self._unwritten >= self._frequency:
            self.write()

    def write(self) -> None:
        """Write the position, unless it is written."""
        if self._unwritten and self.position is not None:
            self._write(self.position)
            self._unwritten = 0


@dataclass(frozen=True, slots=True)
class PumpParts:
    """The parts that a pump uses."""

    source: EventSource
    options: EventHubOptions
    clock: Clock
    deliver: Deliver
    function_name: str = ""
    reopen_after: timedelta = REOPEN_AFTER


class PartitionPump:
    """The pump of one partition, from `run` to `stop`."""

    def __init__(self, partition_id: str, checkpoint: HostCheckpoint, parts: PumpParts) -> None:
        self._partition_id = partition_id
        self._checkpoint = checkpoint
        self._parts = parts
        self._interrupted = asyncio.Event()
        self._is_stopping = False
        self._skips = 0
        self._is_first = checkpoint.position is None
        self._next = checkpoint.position or parts.options.start_at
        self._starts: deque[StartAt] = deque(maxlen=REMEMBERED_BATCHES)

    async def run(self) -> None:
        """Deliver batches until stopped, then write the checkpoint."""
        while not self._is_stopping:
            self._interrupted.clear()
            try:
                await self._deliver_from(self._next)
            except ReaderStopped as stopped:
                await self._open_again(stopped)
        self._checkpoint.write()

    def stop(self) -> None:
        """Take no new batch. The running one is finished, and no checkpoint follows it."""
        self._is_stopping = True
        self._interrupted.set()

    def redeliver(self, count: int) -> None:
        """Read again from the start of the last `count` batches, within the 100 that are remembered."""
        for _ in range(min(count, len(self._starts))):
            self._next = self._starts.pop()
        self._interrupted.set()

    def skip(self, count: int) -> None:
        """Checkpoint the next `count` batches without delivering them, as the real host does when it loses batches."""
        self._skips += count

    async def _open_again(self, stopped: ReaderStopped) -> None:
        """Wait, and begin at the checkpoint that is then in the store. A request to deliver again goes first."""
        number = {"partition_id": self._partition_id, "sequence_number": stopped.sequence_number}
        if self._is_first and stopped.is_first:
            text = f"The listener for function '{self._parts.function_name}' was unable to start"
            logger.error(text, extra={"action": "listener_failed", **number})
        else:
            text = "event hub reader stopped on an event; it opens again from the host checkpoint"
            logger.error(text, extra={"action": "reader_stopped", **number})
        await unless(self._interrupted.wait(), self._parts.clock.sleep(self._parts.reopen_after))
        if not self._interrupted.is_set():
            self._checkpoint.read()
            self._next = self._checkpoint.position or self._parts.options.start_at

    async def _deliver_from(self, start: StartAt) -> None:
        """Deliver batches until interrupted, or until one is out of order: the app would refuse it at every try."""
        stream = await self._parts.source.open(self._partition_id, start)
        try:
            while not self._interrupted.is_set():
                batch = await unless(self._interrupted.wait(), self._next_batch(stream))
                numbers = [event.sequence_number for event in batch or ()]
                if batch and not all(map(lt, numbers, numbers[1:])):
                    logger.warning("batch came out of order; will read it again", extra=self._about("disorder", batch))
                    return
                if batch:
                    await self._settle(batch)
        finally:
            await stream.close()

    async def _next_batch(self, stream: EventStream) -> Sequence[HubEvent]:
        options = self._parts.options
        if self._is_first:
            options = replace(options, min_event_batch_size=1)
        batch = await next_batch(stream, options, self._parts.clock)
        self._is_first = False
        return batch

    async def _settle(self, batch: Sequence[HubEvent]) -> None:
        self._starts.append(self._next)
        self._next = batch[-1].position
        if self._skips:
            self._skips -= 1
            logger.warning("batch skipped on request", extra=self._about("batch_skipped", batch))
        elif await self._parts.deliver(batch, self._checkpoint.writes_next) is Ending.ABANDONED:
            self.stop()  # to continue would checkpoint past this batch
        if not self._is_stopping:
            self._checkpoint.advance(batch[-1].position)

    def _about(self, action: str, batch: Sequence[HubEvent]) -> dict[str, object]:
        first, last = batch[0].sequence_number, batch[-1].sequence_number
        return {"action": action, "partition_id": self._partition_id, "first": first, "last": last}

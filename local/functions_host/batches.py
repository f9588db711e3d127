"""Cut the stream of one partition into batches: between the smallest and largest size, within the longest wait.

Source: `EventHubListener.PartitionProcessor`; the real host promises neither bound.
"""

from collections.abc import Sequence

from local.functions_host.clock import Clock, sleep_until, unless
from local.functions_host.event_source import EventStream, HubEvent
from local.functions_host.host_json import EventHubOptions


async def next_batch(stream: EventStream, options: EventHubOptions, clock: Clock) -> Sequence[HubEvent]:
    """Return the next batch of a stream; the longest wait begins with its first event."""
    batch = await stream.read(options.max_event_batch_size)
    if len(batch) >= options.min_event_batch_size:
        return batch
    return await _filled(list(batch), stream, options, clock)


async def _filled(
    batch: list[HubEvent], stream: EventStream, options: EventHubOptions, clock: Clock
) -> Sequence[HubEvent]:
    due_at = clock.now() + options.max_wait_time
    while len(batch) < options.min_event_batch_size:
        more = await unless(sleep_until(clock, due_at), stream.read(options.max_event_batch_size - len(batch)))
        if more is None:
            break
        batch.extend(more)
    return batch

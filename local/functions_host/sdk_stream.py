"""Receive one partition through the SDK: check the link, receive until it breaks, and resume after the last event.

The aio client hides a refused link (wrong consumer group, no Listen right, a position past the end, a different
owner): the link stays open and never delivers an event. So each link is tested first, and a partition that delivers
nothing although the hub has more events is opened again.

It loses events as the real reader does: it stops on some, and drops others with those that came with them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from azure.eventhub import EventData
from azure.eventhub.exceptions import EventHubError

from local.functions_host.app_settings import HubConnection
from local.functions_host.clock import Clock
from local.functions_host.event_source import EventStream, HubAddress, HubEvent, ReaderStopped, StartAt
from local.functions_host.sdk_events import to_hub_event
from local.functions_host.sdk_messages import Delivery, mark_of
from local.functions_host.settings import EventHubOptions

logger = logging.getLogger("functions_host")

OWNER_LEVEL = 0
FIRST_PAUSE = timedelta(milliseconds=500)
LONGEST_PAUSE = timedelta(seconds=10)
WATCH_INTERVAL = timedelta(seconds=15)
LOST_TOGETHER = 217  # events: one that is dropped, and those that are lost with it


@dataclass(frozen=True, slots=True)
class PartitionLink:
    """The options to receive one partition."""

    client: Any
    address: HubAddress
    partition_id: str
    prefetch: int
    batch_size: int


class SdkStream:
    """An EventStream on the SDK. It holds up to one batch, besides those that the SDK has prefetched."""

    def __init__(self, link: PartitionLink, start: StartAt, clock: Clock) -> None:
        self._link = link
        self._position = start
        self._clock = clock
        self._arrived: asyncio.Queue[Sequence[EventData] | ReaderStopped] = asyncio.Queue(1)
        self._rest: deque[HubEvent] = deque()
        self._reported: str | None = None
        self._taking: asyncio.Task[Any] | None = None
        self._broken: asyncio.Future[Exception] | None = None
        self._task = asyncio.create_task(self._receive_for_ever())

    async def read(self, limit: int) -> Sequence[HubEvent]:
        """Wait for events and return up to `limit` of them.

        Raises ReaderStopped in the place of the one it stops on.
        """
        if not self._rest:
            arrived = await self._arrived.get()
            if isinstance(arrived, ReaderStopped):
                raise arrived
            for event in arrived:
                is_bound = mark_of(event) is not Delivery.BINDING_FAILS
                self._rest.append(to_hub_event(event) if is_bound else replace(to_hub_event(event), binds=False))
        return [self._rest.popleft() for _ in range(min(limit, len(self._rest)))]

    async def close(self) -> None:
        """Stop receiving. The SDK takes about a second."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _receive_for_ever(self) -> None:
        pause = FIRST_PAUSE
        while True:
            refusal = await refusal_of(self._link, self._position)
            if refusal is None:
                if self._reported is not None:
                    self._reported = None
                    logger.warning("event hub partition is received again", extra=self._about("partition_received"))
                pause = FIRST_PAUSE
                refusal = await self._receive_until_broken()
            if isinstance(refusal, ReaderStopped):
                await self._arrived.put(refusal)
                return
            if refusal is not None:
                self._report(refusal)
                await self._clock.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _receive_until_broken(self) -> Exception | None:
        """Return the error that broke the link, or None when it delivered nothing although the hub has more."""
        broken = self._broken = asyncio.get_running_loop().create_future()

        async def note(_: Any, error: Exception) -> None:
            if not broken.done():
                broken.set_result(error)

        tasks: set[asyncio.Future[Any]] = set(map(asyncio.ensure_future, (self._receive(note), self._stood_still())))
        try:
            await asyncio.wait({*tasks, broken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._taking is not None:  # the SDK forgets it; it would put its events among those of the next link
                tasks.add(self._taking)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return broken.result() if broken.done() else None

    async def _receive(self, on_error: Any) -> None:
        await self._link.client.receive_batch(
            self._take,
            partition_id=self._link.partition_id,
            owner_level=OWNER_LEVEL,
            prefetch=self._link.prefetch,
            max_batch_size=self._link.batch_size,
            starting_position=sdk_position(self._position),
            on_error=on_error,
        )

    async def _take(self, _: Any, events: Sequence[EventData]) -> None:
        self._taking = asyncio.current_task()
        if not events or self._broken is None or self._broken.done():
            return
        marks = list(map(mark_of, events))
        if Delivery.READER_STOPS in marks:
            place = marks.index(Delivery.READER_STOPS)
            self._broken.set_result(ReaderStopped(events[place].sequence_number or 0, is_first=not place))
            return
        if arriving := self._without_dropped(events, marks):
            await self._arrived.put(arriving)
        self._position = StartAt(events[-1].offset, None, events[-1].sequence_number)

    def _without_dropped(self, events: Sequence[EventData], marks: Sequence[Delivery]) -> Sequence[EventData]:
        """Return the events without those that are dropped and those that are lost with them."""
        if Delivery.DROPPED not in marks:
            return events
        arriving: list[EventData] = []
        for first in range(0, len(events), LOST_TOGETHER):
            together = events[first : first + LOST_TOGETHER]
            if Delivery.DROPPED in marks[first : first + LOST_TOGETHER]:
                numbers = {"first": together[0].sequence_number, "last": together[-1].sequence_number}
                logger.warning("event hub reader dropped events", extra=self._about("events_dropped") | numbers)
            else:
                arriving += together
        return arriving

    async def _stood_still(self) -> None:
        """Return when no event came for a while although the hub has more."""
        while True:
            before = self._position
            await self._clock.sleep(WATCH_INTERVAL)
            is_idle = before is self._position and self._arrived.empty()
            if is_idle and before.sequence_number is not None and await self._hub_is_ahead(before.sequence_number):
                return

    async def _hub_is_ahead(self, sequence_number: int) -> bool:
        try:
            found = await self._link.client.get_partition_properties(self._link.partition_id)
        except (EventHubError, OSError) as error:
            self._report(error)
            return False
        return not found["is_empty"] and found["last_enqueued_sequence_number"] > sequence_number

    def _report(self, error: Exception) -> None:
        """Log an error, unless it is the last one that was logged."""
        text = f"{type(error).__name__}: {error}"
        if text != self._reported:
            self._reported = text
            logger.error(
                "event hub partition cannot be received; will retry",
                extra=self._about("partition_refused") | {"error": text},
            )

    def _about(self, action: str) -> dict[str, object]:
        address = self._link.address
        return {
            "action": action,
            "event_hub": address.hub,
            "consumer_group": address.consumer_group,
            "partition_id": self._link.partition_id,
        }


def sdk_position(start: StartAt) -> str | int | datetime:
    """Return the SDK's starting position: an offset must stay a text, and a number counts only without an offset."""
    if start.enqueued_at is not None:
        return start.enqueued_at
    return start.offset or ("-1" if start.sequence_number is None else start.sequence_number)


async def refusal_of(link: PartitionLink, start: StartAt) -> Exception | None:
    """Open the link once. Return the error that refuses it, or None.

    The SDK's public client hides this error. An SDK without the private name skips the check. The watch remains.
    """
    create = getattr(link.client, "_create_consumer", None)
    if create is None:
        return None
    consumer = create(
        link.address.consumer_group,
        link.partition_id,
        sdk_position(start),
        _ignore,
        owner_level=OWNER_LEVEL,
        prefetch=1,
    )
    try:
        await consumer._open_with_retry()
    except (EventHubError, OSError) as error:
        return error
    finally:
        await consumer.close()
    return None


async def _ignore(_: Any) -> None:
    """Take no event: the link is a test."""


# The aio client pauses 50 ms after each prefetch, so the extension's default of 300 would cap a partition at
# 6,000 events/s.
PREFETCH = 3000
PAUSE = timedelta(seconds=2)


class SdkSource:
    """A hub, read by one consumer group. It retries while the hub cannot be reached."""

    def __init__(self, connection: HubConnection, options: EventHubOptions, clock: Clock) -> None:
        self._connection = connection
        self._options = options
        self._clock = clock
        self._client: Any = None
        self._closing = AsyncExitStack()

    async def partition_ids(self) -> Sequence[str]:
        """Return the partitions once the hub answers. Log each failure."""
        while True:
            try:
                return tuple(await (await self._opened()).get_partition_ids())
            except (EventHubError, OSError) as error:
                logger.error("event hub cannot be reached; will retry", extra=self._about("hub_unreachable", error))
            await self._clock.sleep(PAUSE)

    async def open(self, partition_id: str, start: StartAt) -> EventStream:
        options = self._options
        link = PartitionLink(
            await self._opened(),
            self._connection.address,
            partition_id,
            options.prefetch_count or PREFETCH,
            options.max_event_batch_size,
        )
        return SdkStream(link, start, self._clock)

    async def close(self) -> None:
        await self._closing.aclose()

    async def _opened(self) -> Any:
        if self._client is None:
            self._client = await self._connection.open_client(self._closing)
        return self._client

    def _about(self, action: str, error: Exception) -> dict[str, str]:
        address = self._connection.address
        return {
            "action": action,
            "event_hub": address.hub,
            "namespace": address.namespace,
            "error": f"{type(error).__name__}: {error}",
        }

"""The real SDK's clients as tests use them: publish, and read in a thread of its own until told to end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from azure.eventhub import CheckpointStore, EventData, EventDataBatch, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.aio import CheckpointStore as AioCheckpointStore
from azure.eventhub.aio import EventHubConsumerClient as AioConsumerClient

HUB = "telemetry"
DEADLINE = 30.0


class Namespace(Protocol):
    """What clients connect to: an emulator, in this process or in another."""

    @property
    def connection_string(self) -> str: ...


def wait_until(condition: Callable[[], bool], seconds: float = DEADLINE) -> None:
    """Return as soon as a condition holds; fail when it does not in time."""
    nobody = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if condition():
            return
        nobody.wait(0.01)
    raise AssertionError(f"not within {seconds} s")


def producer(emulator: Namespace, hub: str = HUB, **options: Any) -> EventHubProducerClient:
    return EventHubProducerClient.from_connection_string(emulator.connection_string, eventhub_name=hub, **options)


def publish(emulator: Namespace, bodies: Iterable[object], partition_id: str = "0") -> None:
    """Publish the bodies as one batch."""
    batch = EventDataBatch(
        max_size_in_bytes=1024 * 1024, partition_id=partition_id
    )  # create_batch would ask for the size
    for body in bodies:
        batch.add(EventData(str(body)))
    with producer(emulator) as client:
        client.send_batch(batch)


def publish_everywhere(emulator: Namespace, bodies: Sequence[object], partition_ids: Sequence[str]) -> None:
    """Publish the bodies to each partition, to all at once."""
    with ThreadPoolExecutor(len(partition_ids)) as pool:
        list(pool.map(lambda partition_id: publish(emulator, bodies, partition_id), partition_ids))


class Readings:
    """What a consumer has seen until now."""

    def __init__(self) -> None:
        self.events: list[tuple[str, EventData]] = []
        self.errors: list[Exception] = []
        self.owned: set[str] = set()
        self._changed = threading.Condition()

    def note(self, change: Callable[[], object]) -> None:
        with self._changed:
            change()
            self._changed.notify_all()

    def wait(self, condition: Callable[[Readings], bool], seconds: float = DEADLINE) -> None:
        """Return as soon as the condition holds for what was seen; fail when it does not in time."""
        with self._changed:
            held = self._changed.wait_for(lambda: condition(self), seconds)
        assert held, f"not within {seconds} s: {len(self.events)} events, {self.errors}, owned {self.owned}"

    @property
    def numbers(self) -> list[int]:
        return [event.sequence_number for _, event in self.events]

    @property
    def bodies(self) -> list[str]:
        return [event.body_as_str() for _, event in self.events]

    def wait_for_events(self, count: int) -> None:
        self.wait(lambda seen: len(seen.events) >= count or bool(seen.errors))
        assert not self.errors

    def callbacks(self) -> dict[str, Callable[..., None]]:
        """The callbacks of a sync consumer."""
        return {
            "on_error": lambda context, error: self.note(lambda: self.errors.append(error)),
            "on_partition_initialize": lambda context: self.note(lambda: self.owned.add(context.partition_id)),
            "on_partition_close": lambda context, _: self.note(lambda: self.owned.discard(context.partition_id)),
        }

    def take(self, context: Any, events: list[EventData]) -> None:
        self.note(lambda: self.events.extend((context.partition_id, event) for event in events))


@contextmanager
def reading(
    emulator: Namespace, group: str = "$Default", store: CheckpointStore | None = None, **options: Any
) -> Iterator[Readings]:
    """A sync consumer at work while the block runs; `retry_total=0` makes it report the first error."""
    retries = {name: options.pop(name) for name in ("retry_total",) if name in options}
    balancing = {name: options.pop(name) for name in list(options) if name.startswith(("load_", "partition_owner"))}
    client = EventHubConsumerClient.from_connection_string(
        emulator.connection_string, group, eventhub_name=HUB, checkpoint_store=store, **retries, **balancing
    )
    seen = Readings()

    def take(context: Any, events: list[EventData]) -> None:
        seen.take(context, events)
        if store and events:
            context.update_checkpoint()

    receive = {"starting_position": "-1", "max_wait_time": 0.1, **options, **seen.callbacks()}
    thread = threading.Thread(target=lambda: client.receive_batch(take, **receive), daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        client.close()
        thread.join(DEADLINE)


@contextmanager
def reading_aio(
    emulator: Namespace, group: str = "$Default", store: AioCheckpointStore | None = None, **options: Any
) -> Iterator[Readings]:
    """An aio consumer at work while the block runs, on an event loop in a thread of its own."""
    seen = Readings()
    end = asyncio.Event()
    started: list[asyncio.AbstractEventLoop] = []
    ready = threading.Event()

    def run() -> None:
        asyncio.run(_read_aio(emulator, group, store, options, (seen, end, started, ready)))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait(DEADLINE)
    try:
        yield seen
    finally:
        started[0].call_soon_threadsafe(end.set)
        thread.join(DEADLINE)


async def _read_aio(
    emulator: Namespace, group: str, store: AioCheckpointStore | None, options: dict, shared: tuple
) -> None:
    seen, end, started, ready = shared
    started.append(asyncio.get_running_loop())
    ready.set()
    balancing = {name: options.pop(name) for name in list(options) if name.startswith(("load_", "partition_owner"))}
    client = AioConsumerClient.from_connection_string(
        emulator.connection_string, group, eventhub_name=HUB, checkpoint_store=store, **balancing
    )

    async def take(context: Any, events: list[EventData]) -> None:
        seen.take(context, events)
        if store and events:
            await context.update_checkpoint()

    receive = {"starting_position": "-1", **options}
    receive |= {name: _as_coroutine(callback) for name, callback in seen.callbacks().items()}
    task = asyncio.create_task(client.receive_batch(take, **receive))
    await end.wait()
    await client.close()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _as_coroutine(callback: Callable[..., None]) -> Callable[..., Any]:
    async def call(*arguments: Any) -> None:
        callback(*arguments)

    return call

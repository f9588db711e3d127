"""Clients of an emulator: a publisher of bare frames that takes milliseconds, and the SDK's own clients."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol, Self

from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.aio import EventHubConsumerClient as AioConsumerClient

from local.event_hubs.codec import UInt
from local.event_hubs.events import BATCH_FORMAT
from local.event_hubs.frames import ACCEPTED, AMQP_HEADER, BEGIN, OPEN, composite, frame
from local.event_hubs.sections import VALUE
from tests.local.event_hubs.messages import attach_sender, batch, make_token, message, section, transfer, transfers
from tests.patience import Patience, allowed, until

HUB = "telemetry"
DEADLINE = 30.0  # seconds of an idle machine
CONSUMER = "consumer under test"  # the name of the threads that `join_consumers` waits for


class Namespace(Protocol):
    """An emulator, in this process or in a different one."""

    @property
    def port(self) -> int: ...

    @property
    def connection_string(self) -> str: ...


def wait_until(condition: Callable[[], bool]) -> None:
    """Return as soon as a condition holds. Fail when it does not in time."""
    until(condition, DEADLINE)


def sas(emulator: Namespace, expires_in: timedelta = timedelta(hours=1)) -> str:
    parts = dict(part.split("=", 1) for part in emulator.connection_string.split(";"))
    expiry = int(time.time() + expires_in.total_seconds())
    resource = f"sb://localhost:{emulator.port}/{HUB}"
    return make_token(resource, parts["SharedAccessKeyName"], parts["SharedAccessKey"], expiry)


def publish(emulator: Namespace, bodies: Iterable[object], partition_id: str = "0") -> None:
    """Publish the bodies as one batch. The SDK's producer would need most of a second to open."""
    events = batch([message(str(body).encode()) for body in bodies])
    sent = [attach_sender(f"{HUB}/Partitions/{partition_id}", 1), *transfers(events, 1, 1, BATCH_FORMAT)]
    assert bytes(composite(ACCEPTED)) in talk(emulator, signed_in(emulator, *sent))


def signed_in(emulator: Namespace, *performatives: bytes) -> bytes:
    """Encode a connection with a session that shows its token and then sends the performatives."""
    begun = (
        composite(OPEN, "peer"),
        composite(BEGIN, None, UInt(0), UInt(100), UInt(100)),
        attach_sender("$cbs"),
        transfer(section(VALUE, sas(emulator)), settled=True),
    )
    return AMQP_HEADER + b"".join(map(frame, (*begun, *performatives)))


def talk(emulator: Namespace, data: bytes) -> bytes:
    """Send the bytes, hang up, and return the answer. It is empty when the server ended first."""
    with socket.create_connection(("127.0.0.1", emulator.port), timeout=allowed(10)) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65_536), b""))
        except ConnectionError:
            return b""


def producer(emulator: Namespace, hub: str = HUB, **options: Any) -> EventHubProducerClient:
    return EventHubProducerClient.from_connection_string(emulator.connection_string, eventhub_name=hub, **options)


class Readings:
    """The events and errors of a consumer until now."""

    def __init__(self) -> None:
        self.events: list[tuple[str, EventData]] = []
        self.errors: list[Exception] = []
        self._changed = threading.Condition()

    def note(self, change: Callable[[], object]) -> None:
        with self._changed:
            change()
            self._changed.notify_all()

    def wait(self, condition: Callable[[Self], bool], seconds: float = DEADLINE) -> None:
        """Return as soon as the condition holds for these readings. Fail when none comes in time."""
        patience = Patience(seconds)
        with self._changed:
            while not self._changed.wait_for(lambda: condition(self), 0.2):
                patience.look(lambda: f"{len(self.events)} events, {self.errors}")

    @property
    def numbers(self) -> list[int]:
        return [event.sequence_number for _, event in self.events]

    @property
    def bodies(self) -> list[str]:
        return [event.body_as_str() for _, event in self.events]

    def wait_for_events(self, count: int) -> None:
        """Return when that many events have come without an error."""
        self.wait(lambda seen: len(seen.events) >= count or bool(seen.errors))
        assert not self.errors

    def take(self, context: Any, events: list[EventData]) -> None:
        self.note(lambda: self.events.extend((context.partition_id, event) for event in events))

    def fail(self, context: Any, error: Exception) -> None:
        self.note(lambda: self.errors.append(error))


def join_consumers() -> None:
    for thread in threading.enumerate():
        if thread.name == CONSUMER:
            thread.join(allowed(DEADLINE))


@contextmanager
def reading(emulator: Namespace, group: str = "$Default", retry_total: int = 3, **options: Any) -> Iterator[Readings]:
    """Run a sync consumer while the block runs. `retry_total=0` makes it report the first error."""
    client = EventHubConsumerClient.from_connection_string(
        emulator.connection_string, group, eventhub_name=HUB, retry_total=retry_total
    )
    seen = Readings()
    receive = {"starting_position": "-1", "max_wait_time": 0.1, **options, "on_error": seen.fail}
    threading.Thread(target=client.receive_batch, args=(seen.take,), kwargs=receive, name=CONSUMER, daemon=True).start()
    try:
        yield seen
    finally:
        client.close()


@contextmanager
def reading_aio(emulator: Namespace, group: str = "$Default", **options: Any) -> Iterator[Readings]:
    seen, loop, end = Readings(), asyncio.new_event_loop(), asyncio.Event()
    receive = {"starting_position": "-1", **options, "on_error": _as_coroutine(seen.fail)}

    async def read() -> None:
        client = AioConsumerClient.from_connection_string(emulator.connection_string, group, eventhub_name=HUB)
        task = asyncio.create_task(client.receive_batch(_as_coroutine(seen.take), **receive))
        await end.wait()
        await client.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(read())

    threading.Thread(target=run, name=CONSUMER, daemon=True).start()
    try:
        yield seen
    finally:
        loop.call_soon_threadsafe(end.set)


def _as_coroutine(callback: Callable[..., None]) -> Callable[..., Any]:
    async def call(*arguments: Any) -> None:
        callback(*arguments)

    return call

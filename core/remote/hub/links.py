"""One receiving link to a partition, from a place on: it opens in milliseconds if the SDK has the private names for it.

The SDK's `receive` needs half a second to begin and one to end, because it serves partitions in turn on a thread of its
own. It uses `EventHubConsumer`, which begins and ends at once; that name is private, so the public call is the
fallback. Source: azure-eventhub 5.15, `_consumer.py`.
"""

import queue
import threading
from contextlib import suppress
from typing import Any, Protocol

from core.model.hub import BEFORE_FIRST, Place

OPENING = 5.0  # seconds; the sync SDK would wait for ever on a hub that accepts a connection and sends nothing
TURN = 0.2  # seconds that a call may wait for events


class AmqpLink(Protocol):
    """Receives events from one place on. Only one thread may use a link; errors are the SDK's."""

    def receive(self) -> list[Any]:
        """Return the events that have arrived, possibly none; wait for a fraction of a second at most."""

    @property
    def is_ready(self) -> bool:
        """True once the hub has accepted the link; until then it cannot have sent anything."""

    def close(self) -> None: ...


def open_link(client: Any, group: str, partition_id: str, place: Place, count: int) -> AmqpLink:
    """Open a link of a sync EventHubConsumerClient that begins with the first event at the place.

    `count` is the most events to receive at once.
    """
    if hasattr(client, "_create_consumer"):
        return _DirectLink(client, group, partition_id, place, count)
    return PublicLink(client, partition_id, place, count)


class _DirectLink:
    def __init__(self, client: Any, group: str, partition_id: str, place: Place, count: int) -> None:
        self._arrived: list[Any] = []
        self._count = count
        self._consumer = client._create_consumer(
            group,
            partition_id,
            place,
            self._arrived.extend,
            event_position_inclusive=_is_inclusive(place),
            prefetch=count,
        )
        self._consumer._keep_alive = 0  # otherwise its thread sleeps for a second before it ends
        self._watchdog = threading.Timer(OPENING, lambda: cut(self._consumer._handler))
        self._watchdog.daemon = True
        self._watchdog.start()

    def receive(self) -> list[Any]:
        if not self.is_ready:
            self._consumer._open_with_retry()  # one step; `receive` would not report its failure
            return []
        self._watchdog.cancel()
        self._consumer.receive(batch=True, max_batch_size=self._count)
        arrived = self._arrived.copy()
        self._arrived.clear()
        return arrived

    @property
    def is_ready(self) -> bool:
        return bool(self._consumer.handler_ready)

    def close(self) -> None:
        self._watchdog.cancel()
        self._consumer.close()


def _is_inclusive(place: Place) -> bool:
    return place != BEFORE_FIRST


def cut(handler: Any) -> None:
    """Shut the socket under an AMQP client, so that the thread that waits on it ends."""
    with suppress(AttributeError, OSError):
        handler._connection._transport.sock.shutdown(2)


class PublicLink:
    """A link through the public call, which needs a thread and closes its client."""

    def __init__(self, client: Any, partition_id: str, place: Place, count: int) -> None:
        self._client = client
        self._arrived: queue.Queue[list[Any] | Exception] = queue.Queue(2)
        self._ended = threading.Event()
        self._ready = False
        options = {
            "partition_id": partition_id,
            "starting_position": place,
            "starting_position_inclusive": _is_inclusive(place),
            "prefetch": count,
            "max_batch_size": count,
            "max_wait_time": TURN,
            "on_error": lambda _, error: self._put(error),
        }
        self._thread = threading.Thread(target=client.receive_batch, args=(self._take,), kwargs=options, daemon=True)
        self._thread.start()

    def receive(self) -> list[Any]:
        try:
            arrived = self._arrived.get(timeout=TURN)
        except queue.Empty:
            return []
        self._ready = True
        if isinstance(arrived, Exception):
            raise arrived
        return arrived

    @property
    def is_ready(self) -> bool:
        return self._ready

    def close(self) -> None:
        self._ended.set()
        self._client.close()
        self._thread.join(OPENING)

    def _take(self, _: Any, events: list[Any]) -> None:
        self._put(events)

    def _put(self, arrived: list[Any] | Exception) -> None:
        while not self._ended.is_set():
            with suppress(queue.Full):
                self._arrived.put(arrived, timeout=TURN)
                return

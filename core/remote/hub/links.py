"""One receiving link to a partition, from a place on: it opens in milliseconds if the SDK has the private names for it.

The SDK's `receive` needs half a second to begin and one to end, because it serves partitions in turn on a thread of its
own. It uses `EventHubConsumer`, which begins and ends at once. That name is private, so the public call is the
fallback. Source: azure-eventhub 5.15, `_consumer.py`.

The link replaces the client's `_management_request`. The public methods work as before. If the SDK does not have these
private names, nothing is replaced and requests stay slow. Source: azure-eventhub 5.15, `_client_base.py`.
"""

import queue
import threading
import time
from contextlib import suppress
from typing import Any, Protocol

from core.model.ports import BEFORE_FIRST, Place

OPENING = 5.0  # seconds; the sync SDK would wait for ever on a hub that accepts a connection and sends nothing
TURN = 0.2  # seconds that a call may wait for events


class AmqpLink(Protocol):
    """Receives events from one place on. Only one thread may use a link. Errors are the SDK's."""

    def receive(self) -> list[Any]:
        """Return the events that have arrived, possibly none. Wait for a fraction of a second at most."""

    @property
    def is_ready(self) -> bool:
        """True once the hub has accepted the link. Until then it cannot have sent anything."""

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


ANSWER = 5.0  # seconds
IDLE = 120.0  # seconds; load balancers cut an idle connection silently after four minutes
_PRIVATE = ("_management_request", "_create_auth", "_amqp_transport", "_address", "_config")


def keep_management_open(client: Any) -> "Management | None":
    """Let a sync client send its requests over one open link. Return the link, or None if the SDK does not allow it."""
    try:
        from azure.eventhub._pyamqp.error import AMQPException
    except ImportError:
        return None
    if not all(hasattr(client, name) for name in _PRIVATE):
        return None
    management = Management(client, (AMQPException, OSError, ValueError))
    client._management_request = management.ask
    return management


class Management:
    """Sends one request at a time. Reopens a link that broke while it was idle, once.

    `faults` are the errors of the SDK's private methods.
    """

    def __init__(self, client: Any, faults: tuple[type[Exception], ...]) -> None:
        self._client = client
        self._faults = faults
        self._lock = threading.Lock()
        self._handler: Any = None
        self._auth: Any = None
        self._used_at = 0.0

    def ask(self, message: Any, op_type: bytes) -> Any:
        """Return the answer, or raise an EventHubError, as the client's method does."""
        with self._lock:
            if time.monotonic() - self._used_at > IDLE:
                self._drop()
            if self._handler is not None:
                with suppress(*self._faults):
                    return self._answer(message, op_type)
                self._drop()
            try:
                self._open()
                return self._answer(message, op_type)
            except self._faults as error:
                self._drop()
                raise self._named(error) from error

    def close(self) -> None:
        """Close the link. The next request opens a new one."""
        with self._lock:
            self._drop()

    def _open(self) -> None:
        client = self._client
        self._auth = client._create_auth()
        self._handler = client._amqp_transport.create_mgmt_client(
            client._address, mgmt_auth=self._auth, config=client._config
        )
        watchdog = threading.Timer(OPENING, cut, [self._handler])
        watchdog.daemon = True
        watchdog.start()
        deadline = time.monotonic() + OPENING
        try:
            self._handler.open()
            while not self._handler.client_ready():  # each turn waits for an answer, up to a fraction of a second
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no answer in {OPENING:g} s")
        finally:
            watchdog.cancel()

    def _answer(self, message: Any, op_type: bytes) -> Any:
        from azure.eventhub import _constants as words

        transport = self._client._amqp_transport
        message.application_properties["security_token"] = transport.get_updated_token(self._auth)
        status, description, response = transport.mgmt_client_request(
            self._handler,
            message,
            operation=words.READ_OPERATION,
            operation_type=op_type,
            status_code_field=words.MGMT_STATUS_CODE,
            description_fields=words.MGMT_STATUS_DESC,
            timeout=ANSWER,
        )
        self._used_at = time.monotonic()
        if int(status) >= 400:
            raise transport.get_error(int(status), description)
        return response

    def _drop(self) -> None:
        handler, self._handler = self._handler, None
        if handler is not None:
            with suppress(*self._faults):
                handler.close()

    def _named(self, error: Exception) -> Exception:
        named: Exception = self._client._amqp_transport._handle_exception(error, self._client, is_consumer=True)
        return named

"""Links to the hub that open in milliseconds: one receives from a partition, one asks the hub about itself.

Both use private names of azure-eventhub 5.15, which requirements.txt pins: the public `receive` needs half a second to
begin and one to end, and each public request opens a link of its own.
"""

import threading
import time
from contextlib import suppress
from typing import Any

from core.model.ports import BEFORE_FIRST, Place

OPENING = 5.0  # seconds; the sync SDK would wait for ever on a hub that accepts a connection and sends nothing


class ReceivingLink:
    """Receives the events of a partition from a place on, at most `count` at once. Only one thread may use it.

    Errors are the SDK's.
    """

    def __init__(self, client: Any, group: str, partition_id: str, place: Place, count: int) -> None:
        self._arrived: list[Any] = []
        self._count = count
        self._consumer = client._create_consumer(
            group,
            partition_id,
            place,
            self._arrived.extend,
            event_position_inclusive=place != BEFORE_FIRST,
            prefetch=count,
        )
        self._consumer._keep_alive = 0  # otherwise its thread sleeps for a second before it ends
        self._watchdog = threading.Timer(OPENING, lambda: cut_off(self._consumer._handler))
        self._watchdog.daemon = True
        self._watchdog.start()

    def receive(self) -> list[Any]:
        """Return the events that have arrived, possibly none. Wait for a fraction of a second at most."""
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
        """True once the hub has accepted the link. Until then it cannot have sent anything."""
        return bool(self._consumer.handler_ready)

    def close(self) -> None:
        self._watchdog.cancel()
        self._consumer.close()


def cut_off(handler: Any) -> None:
    """Shut the socket under an AMQP client, so that the thread that waits on it ends."""
    with suppress(AttributeError, OSError):
        handler._connection._transport.sock.shutdown(2)


ANSWER = 5.0  # seconds
IDLE = 120.0  # seconds; load balancers cut an idle connection silently after four minutes


class ManagementLink:
    """Sends the requests of a sync client, one at a time. Reopens a link that broke while it was idle, once."""

    def __init__(self, client: Any) -> None:
        from azure.eventhub._pyamqp.error import AMQPException

        self._client = client
        client._management_request = self.ask
        self._faults = (AMQPException, OSError, ValueError)  # of the SDK's private methods
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
                named: Exception = self._client._amqp_transport._handle_exception(error, self._client, is_consumer=True)
                raise named from error

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
        watchdog = threading.Timer(OPENING, cut_off, [self._handler])
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

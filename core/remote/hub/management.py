"""A management link that stays open: the SDK opens a connection for each request, which costs a third of a second.

The link replaces the client's `_management_request`; the public methods work as before. If the SDK does not have these
private names, nothing is replaced and requests stay slow. Source: azure-eventhub 5.15, `_client_base.py`.
"""

import threading
import time
from contextlib import suppress
from typing import Any

from core.remote.hub.links import OPENING, cut

ANSWER = 5.0  # seconds
IDLE = 120.0  # seconds; load balancers cut an idle connection silently after four minutes
_PRIVATE = ("_management_request", "_create_auth", "_amqp_transport", "_address", "_config")


def keep_management_open(client: Any) -> "Management | None":
    """Let a sync client send its requests over one open link; return the link, or None if the SDK does not allow it."""
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
    """Sends one request at a time; reopens a link that broke while it was idle, once.

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
        """Close the link; the next request opens a new one."""
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

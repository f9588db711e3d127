"""The health of a worker: its signs of life, a port that reports them, and a command that asks.

The command is `python -m core.worker.health HOST:PORT`. It fails when the worker's loop hangs, because nothing
answers then.
"""

import asyncio
import http.client
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial

from core.errors import SettingsRefused

PATH = "/health"
ANSWER_WITHIN = 5.0  # seconds, for a request to arrive and for an answer
NOT_ASKED_FOR = (404, "Not Found", f"only GET {PATH} is answered")


class Pulse:
    """The signs of life of a worker: its rounds of balancing, and the work in hand. Work past the limit hangs."""

    def __init__(self, limit: timedelta, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit.total_seconds()
        self._monotonic = monotonic
        self._round_at = monotonic()
        self._in_hand: dict[object, tuple[str, float]] = {}

    def beat(self) -> None:
        """Record that a round of balancing begins."""
        self._round_at = self._monotonic()

    @contextmanager
    def over(self, work: object) -> Iterator[None]:
        """Record that this work is in hand, until it ends."""
        key = object()
        self._in_hand[key] = (str(work), self._monotonic())
        try:
            yield
        finally:
            del self._in_hand[key]

    def fault(self) -> str | None:
        """Return the reason to start the worker again, or None while it lives."""
        since = self._monotonic() - self._limit
        if self._round_at < since:
            return f"no balancing of partitions began in the last {self._limit:g} s"
        hanging = (work for work, begun_at in list(self._in_hand.values()) if begun_at < since)
        return next((f"{work} has been in hand for more than {self._limit:g} s" for work in hanging), None)


@asynccontextmanager
async def answering(address: str | None, pulse: Pulse) -> AsyncIterator[str | None]:
    """Serve the health at an address (HOST:PORT, with port 0 a free one), and yield the address. None: serve nothing.

    Raises SettingsRefused when the address cannot be used.
    """
    if address is None:
        yield None
        return
    host, port = parts(address)
    try:
        server = await asyncio.start_server(partial(_answer, pulse), host, port)
    except OSError as error:
        raise SettingsRefused([f"--health {address} cannot be used: {error.strerror or error}"]) from error
    try:
        yield "{}:{}".format(*server.sockets[0].getsockname()[:2])
    finally:
        server.close()


def parts(address: str) -> tuple[str, int]:
    """Return host and port of an address. Raises ValueError when it is not HOST:PORT."""
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ValueError(f"must be HOST:PORT, not {address!r}")
    return host.strip("[]"), int(port)


async def _answer(pulse: Pulse, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        async with asyncio.timeout(ANSWER_WITHIN):
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(_response(pulse, head))
            await writer.drain()
    except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        pass  # no complete request arrived
    finally:
        writer.close()


def _response(pulse: Pulse, head: bytes) -> bytes:
    status, reason, body = NOT_ASKED_FOR
    if head.startswith(f"GET {PATH} HTTP/".encode()):
        fault = pulse.fault()
        status, reason, body = (200, "OK", "alive") if fault is None else (503, "Service Unavailable", fault)
    length = len(body.encode()) + 1
    lines = (f"HTTP/1.1 {status} {reason}", "Content-Type: text/plain; charset=utf-8", f"Content-Length: {length}")
    return "\r\n".join((*lines, "Connection: close", "", f"{body}\n")).encode()


def main(arguments: list[str] | None = None) -> int:
    """Ask a worker for its health. Return 0 if it lives, else 1, and say why in one line."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        (address,) = given
        host, port = parts(address)
    except ValueError:
        print("usage: python -m core.worker.health HOST:PORT", file=sys.stderr)  # noqa: T201
        return 2
    connection = http.client.HTTPConnection(host, port, timeout=ANSWER_WITHIN)
    try:
        connection.request("GET", PATH)
        answer = connection.getresponse()
        print(answer.read(1000).decode(errors="replace").strip())  # noqa: T201
    except (OSError, http.client.HTTPException) as error:
        print(f"{address} does not answer: {error}")  # noqa: T201
        return 1
    finally:
        connection.close()
    return 0 if answer.status == 200 else 1


if __name__ == "__main__":
    sys.exit(main())

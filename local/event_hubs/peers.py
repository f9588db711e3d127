"""Refuse peers that ask for a different host, send a frame too slowly, or do not read, and log their wrongs.

The log has a line for each wrong, and one a second at most for the same wrong of an address.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from local.event_hubs.errors import AmqpError

PATIENCE = 20_000  # milliseconds that a peer has for its greeting, and then for each frame
WAITING_LIMIT = 4_194_304  # bytes that may wait for a peer that does not read
_LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[?::1\]?)(:[0-9]{1,5})?\Z", re.IGNORECASE)
_PLAIN = "the emulator has plain TCP only: give the client UseDevelopmentEmulator=true"
_PROTOCOLS = {
    b"\x16\x03": f"it speaks TLS, and {_PLAIN}",
    b"AMQP\2": f"it asks for TLS, and {_PLAIN}",
    b"AMQP": "it speaks a different version of AMQP",
    b"GET /$se": "it speaks AMQP over WebSockets, and the emulator has none: choose AMQP over TCP in the client",
    **dict.fromkeys((b"GET ", b"HEAD ", b"POST ", b"PUT ", b"OPTIONS ", b"DELETE ", b"PATCH "), "it speaks HTTP"),
}


class SendingPeer(Protocol):
    """A connection, as `SlowPeers` sees it."""

    @property
    def unfinished(self) -> int | None:
        """The number of the frame that has not come whole (0 for the greeting), or None."""


Peer = TypeVar("Peer", bound=SendingPeer)


def refuse_foreign(hostname: str) -> None:
    """Raise AmqpError for the host name of an open that is not one of loopback. The empty one is none."""
    if hostname and not _LOOPBACK.match(hostname):
        described = f"this emulator is not {hostname[:200]!r}: connect to localhost, 127.0.0.1 or [::1]"
        raise AmqpError("amqp:not-allowed", described)


def described(header: bytes) -> str:
    """Return a sentence about the first eight bytes of a peer that does not speak AMQP 1.0."""
    for start, sentence in _PROTOCOLS.items():
        if header.startswith(start):
            return sentence
    return f"its first bytes are {header!r}"


def refuse_unread(size: int) -> None:
    """Raise AmqpError when more bytes than the limit wait for a peer that does not read."""
    if size > WAITING_LIMIT:
        raise AmqpError("amqp:resource-limit-exceeded", f"more than {WAITING_LIMIT} bytes wait for a peer to read them")


class UnreadBytes:
    """A count of the bytes that wait in a full transport. It is never less than their number."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self._transport, self._size = transport, 0

    def add(self, size: int) -> None:
        """Count bytes. Ask the transport only at the limit. Raises AmqpError when too many wait."""
        self._size += size
        if self._size > WAITING_LIMIT:
            self._size = self._transport.get_write_buffer_size()
            refuse_unread(self._size)


class SlowPeers(Generic[Peer]):
    """The peers that are in the midst of a frame, and since when."""

    def __init__(self) -> None:
        self._since: dict[Peer, tuple[int, int]] = {}

    def late(self, peers: Iterable[Peer], now: int) -> list[Peer]:
        """Return the peers whose frame was unfinished in every look of the last `PATIENCE` milliseconds."""
        before, self._since = self._since, {}
        for peer in peers:
            if (frame := peer.unfinished) is not None:
                number, since = before.get(peer, (frame, now))
                self._since[peer] = (frame, since if number == frame else now)
        return [peer for peer, (_, since) in self._since.items() if now - since > PATIENCE]


_QUIET = 1_000  # milliseconds after a line in which the same one is left out
_LONGEST = 400  # characters of a reason
_REMEMBERED = 1_000  # lines; more than that are not repetitions
_TEXTS = {
    "greet": "a peer does not speak AMQP 1.0; its connection ends",
    "sign_in": "a peer signs in with nothing that is known here; its connection ends",
    "close": "a peer broke the protocol; its connection ends",
    "end": "a peer broke the protocol; its session ends",
    "detach": "a peer broke the protocol; its link ends",
    "attach": "a link was refused; the peer gets the reason",
    "drop": "a peer sends a frame too slowly; its connection is cut",
}

_log = logging.getLogger(__name__)


class Complaints:
    """The lines of the last second, by address, action and reason."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._written: dict[tuple[str, str, str], int] = {}

    def note(self, host: str, port: int, action: str, reason: str) -> None:
        """Log that a peer did something wrong, unless its host did the same a moment ago."""
        line, now = (host, action, reason[:_LONGEST]), self._clock()
        if now - self._written.get(line, now - _QUIET) < _QUIET:
            return
        if len(self._written) >= _REMEMBERED:
            self._written.clear()
        self._written[line] = now
        _log.warning(_TEXTS[action], extra={"action": action, "peer": f"{host}:{port}", "reason": line[2]})

"""Refuse peers that ask for a different host, and peers that send a frame too slowly."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from local.event_hubs.errors import AmqpError

PATIENCE = 20_000  # milliseconds that a peer has for its greeting, and then for each frame
_LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[?::1\]?)(:[0-9]{1,5})?\Z", re.IGNORECASE)


class SendingPeer(Protocol):
    """A connection, as `SlowPeers` sees it."""

    @property
    def unfinished(self) -> int | None:
        """The number of the frame that has not come whole (0 for the greeting), or None."""


Peer = TypeVar("Peer", bound=SendingPeer)


def refuse_foreign(hostname: str) -> None:
    """Raise AmqpError for the host name of an open that is not one of loopback; the empty one is none."""
    if hostname and not _LOOPBACK.match(hostname):
        described = f"this emulator is not {hostname[:200]!r}: connect to localhost, 127.0.0.1 or [::1]"
        raise AmqpError("amqp:not-allowed", described)


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

"""The answers of $cbs and $management that wait for credit or for the socket, with a bound for each connection."""

from __future__ import annotations

from collections import deque

from local.event_hubs.links import OutgoingLink
from local.event_hubs.peers import refuse_unread


class Answers:
    """The waiting answers of a connection, by the link that gets them."""

    def __init__(self) -> None:
        self._boxes: dict[OutgoingLink, deque[bytes]] = {}
        self._size = 0

    def open(self, link: OutgoingLink) -> None:
        """Let a link take its answers from here."""
        box = self._boxes[link] = deque()

        def take(count: int) -> list[bytes]:
            taken = [box.popleft() for _ in range(min(count, len(box)))]
            self._size -= sum(map(len, taken))
            return taken

        def close() -> None:
            take(len(box))
            del self._boxes[link]

        link.take, link.on_closed = take, close

    def links(self) -> list[OutgoingLink]:
        """Return the links that get answers."""
        return list(self._boxes)

    def add(self, link: OutgoingLink, answer: bytes) -> None:
        """Store an answer and send it as soon as possible. Raises AmqpError when too many bytes wait."""
        self._boxes[link].append(answer)
        self._size += len(answer)
        link.pump()
        refuse_unread(self._size + sum(one.waiting for one in self._boxes))

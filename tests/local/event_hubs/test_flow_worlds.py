"""In random worlds of windows, credit and drains no frame, delivery or event is too many, missing or out of order."""

import random

import pytest

from local.event_hubs.frames import FLOW, TRANSFER
from tests.local.event_hubs.peer import Peer, make_broker, publisher, reader

pytestmark = pytest.mark.asyncio


class Receiver:
    """A receiver that keeps its own books of the window, the credit and the events."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.frames = self.deliveries = self.credit = self.window = 0
        self.bodies: list[bytes] = []
        self._half = b""

    def allow(self, window: int, credit: int, drain: bool) -> None:
        self.window, self.credit = window, credit
        self.peer.flow((self.frames, window), (1, self.deliveries, credit), drain)
        self.take()

    def take(self) -> None:
        """Enter the frames that came, none of which may break a rule."""
        for code, fields, payload in self.peer.frames():
            if code == TRANSFER:
                self.frames, self.window = self.frames + 1, self.window - 1
                assert self.window >= 0, "a frame too many"
                if not self._half:
                    self.deliveries, self.credit = self.deliveries + 1, self.credit - 1
                    assert self.credit >= 0, "a delivery too many"
                self._half += payload
                if not fields[5]:
                    self.bodies.append(self._half[-self._size() :])
                    self._half = b""
            elif code == FLOW:
                assert not self._half, "a drain is answered in the midst of a delivery"
                assert (fields[5], fields[6], fields[8]) == (self.deliveries + self.credit, 0, True)
                self.deliveries, self.credit = self.deliveries + self.credit, 0

    def _size(self) -> int:
        """Return the size of the body, which begins with it and a slash."""
        return int(self._half[self._half.rindex(b"<") :].split(b"/")[0][1:])


def body(chance: random.Random) -> bytes:
    size = chance.choice((20, 300, 2_000, 9_000))
    return b"<%d/" % size + b"x" * (size - len(b"<%d/" % size))


async def test_every_event_comes_once_in_order_and_within_the_window_and_the_credit() -> None:
    for seed in range(60):
        chance = random.Random(seed)
        broker = make_broker()
        receiver = Receiver(reader(broker, window=0, max_frame=512))
        published: list[bytes] = []
        for _ in range(30):
            if chance.random() < 0.4:
                published += (more := [body(chance) for _ in range(chance.randrange(4))])
                publisher(broker, *more)
                broker.pump()
                receiver.take()
            receiver.allow(chance.choice((0, 1, 3, 7, 40)), chance.choice((0, 1, 2, 5)), chance.random() < 0.3)
        for _ in range(len(published) + 1):
            receiver.allow(10_000, 10_000, False)
        assert receiver.bodies == published, seed

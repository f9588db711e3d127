"""Gateways: put the minutes that senders of one partition publish within a moment into one send."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import cycle
from typing import NamedTuple
from zlib import crc32

from local.event_hubs import partition_index
from local.feed.planned import Minute

LARGEST = 100  # events in a send
LARGEST_SEND = 900_000  # bytes, of more than one minute: a hub takes 1 MiB, with keys and envelopes
ENVELOPE = 64  # bytes of an event beside its body and its key


class Send(NamedTuple):
    """The minutes that go to the hub at once, all or none.

    Without a `partition_id` a send holds one sender's minute, and the hub finds the partition by the sender's key.
    Sends of one `lane` stay in order, and all minutes of a sender are in one lane.
    """

    lane: int
    partition_id: str | None
    minutes: list[Minute]

    @property
    def events(self) -> int:
        """The number of its events."""
        return sum(len(minute.events) for minute in self.minutes)


class NoGateways:
    """The feed without gateways: every sender publishes by itself."""

    def add(self, minute: Minute) -> list[Send]:
        """Return the minute in a separate send."""
        return [Send(crc32((minute.partition_key or "").encode()), None, [minute])]

    def rest(self) -> list[Send]:
        """Return nothing: no minute waits."""
        return []


class Gateways:
    """One gateway for each partition. A later minute ends the wait of those that have waited for `moment` seconds.

    The partition of a sender is the one that the hub's own hash of its key gives, and its events carry the key; minutes
    without a key go to one partition after the other. A send holds no more than `alike` minutes of a sender: with one,
    a send that is published twice leads to the same rows.
    """

    def __init__(
        self,
        partition_ids: Iterable[str],
        moment: float,
        clock: Callable[[], float] = time.monotonic,
        alike: int = 1,
    ) -> None:
        self._ids = sorted(partition_ids, key=lambda id: (len(id), id))
        self._moment = moment
        self._clock = clock
        self._alike = alike
        self._turns = cycle(range(len(self._ids)))
        self._open: dict[int, _Gateway] = {}  # the oldest first

    def add(self, minute: Minute) -> list[Send]:
        """Take a minute, and return the sends that are due."""
        now = self._clock()
        due = self._due(now)
        key = minute.partition_key
        index = next(self._turns) if key is None else partition_index(key, len(self._ids))
        gateway = self._open.get(index)
        if gateway is not None and not gateway.has_room(minute):
            due.append(self._open.pop(index).send)
            gateway = None
        if gateway is None:
            gateway = self._open[index] = _Gateway(Send(index, self._ids[index], []), now, self._alike)
        gateway.take(minute)
        return due

    def rest(self) -> list[Send]:
        """Return the sends that still wait."""
        sends = [gateway.send for gateway in self._open.values()]
        self._open.clear()
        return sends

    def _due(self, now: float) -> list[Send]:
        due = []
        for index, gateway in self._open.items():
            if now - gateway.opened_at < self._moment:
                break
            due.append(index)
        return [self._open.pop(index).send for index in due]


class _Gateway:
    def __init__(self, send: Send, now: float, alike: int) -> None:
        self.opened_at = now
        self.send = send
        self._alike = alike
        self._keys: Counter[str | None] = Counter()
        self._events = self._bytes = 0

    def has_room(self, minute: Minute) -> bool:
        return (
            self._keys[minute.partition_key] < self._alike
            and self._events + len(minute.events) <= LARGEST
            and self._bytes + _bytes(minute) <= LARGEST_SEND
        )

    def take(self, minute: Minute) -> None:
        self.send.minutes.append(minute)
        self._keys[minute.partition_key] += 1
        self._events += len(minute.events)
        self._bytes += _bytes(minute)


def _bytes(minute: Minute) -> int:
    envelope = ENVELOPE + 4 * len(minute.partition_key or "")
    return sum(len(event.body) + envelope for event in minute.events)

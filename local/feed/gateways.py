"""Gateways: put the minutes that senders of one partition publish within a moment into one send."""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple
from zlib import crc32

from local.event_hubs import partition_index
from local.feed.planned import Minute

LARGEST = 100  # events in a send


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
        return [Send(crc32(minute.partition_key.encode()), None, [minute])]

    def rest(self) -> list[Send]:
        """Return nothing: no minute waits."""
        return []


class Gateways:
    """One gateway for each partition. A later minute ends the wait of those that have waited for `moment` seconds.

    The partition of a sender is the one that the hub's own hash of its key gives, and its events carry the key. A send
    holds no more than one minute of a sender, so that a send that is published twice leads to the same rows.
    """

    def __init__(
        self, partition_ids: Iterable[str], moment: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ids = sorted(partition_ids, key=lambda id: (len(id), id))
        self._moment = moment
        self._clock = clock
        self._open: dict[int, _Gateway] = {}  # the oldest first

    def add(self, minute: Minute) -> list[Send]:
        """Take a minute, and return the sends that are due."""
        now = self._clock()
        due = self._due(now)
        index = partition_index(minute.partition_key, len(self._ids))
        gateway = self._open.get(index)
        if gateway is not None and not gateway.has_room(minute):
            due.append(self._open.pop(index).send)
            gateway = None
        if gateway is None:
            gateway = self._open[index] = _Gateway(Send(index, self._ids[index], []), now)
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
    def __init__(self, send: Send, now: float) -> None:
        self.opened_at = now
        self.send = send
        self._keys: set[str] = set()
        self._events = 0

    def has_room(self, minute: Minute) -> bool:
        return minute.partition_key not in self._keys and self._events + len(minute.events) <= LARGEST

    def take(self, minute: Minute) -> None:
        self.send.minutes.append(minute)
        self._keys.add(minute.partition_key)
        self._events += len(minute.events)

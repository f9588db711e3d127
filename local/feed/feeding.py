"""Feed a hub: minute after minute at the asked rate, and each is recorded once the hub has answered."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from local.feed.gateways import Send
from local.feed.lanes import Lanes
from local.feed.pacing import Pace
from local.feed.planned import Minute
from local.feed.record import Copies


class Publishes(Protocol):
    """Puts a send into the hub."""

    def publish(self, send: Send) -> Copies:
        """See Publisher."""


class Gathers(Protocol):
    """Makes sends of minutes."""

    def add(self, minute: Minute) -> list[Send]:
        """See Gateways."""

    def rest(self) -> list[Send]:
        """See Gateways."""


class Records(Protocol):
    """Keeps what was published."""

    def add(self, minute: Minute, copies: Copies) -> None:
        """See Record."""

    def complete(self) -> None:
        """See Record."""


class Tally:
    """Counts and records what the lanes publish, one send at a time."""

    def __init__(self, record: Records) -> None:
        self._record = record
        self._lock = threading.Lock()
        self.published = 0

    def add(self, send: Send, copies: Copies) -> None:
        """A send has ended; where it certainly did not reach the hub, nothing was published."""
        if copies.at_most == 0:
            return
        with self._lock:
            for minute in send.minutes:
                self._record.add(minute, copies)
            self.published += send.events * copies.at_least


@dataclass(frozen=True, slots=True)
class Feed:
    """What a feed works with: a publisher for each lane; `told` hears the number of published events, often."""

    gateways: Gathers
    publishers: Sequence[Publishes]
    record: Records
    pace: Pace
    told: Callable[[int], None]
    stopping: Callable[[], bool]


def feed(minutes: Iterable[Minute], own: Feed) -> int:
    """Publish until the minutes end or it is asked to stop; the record is complete then. Return the number of events.

    What a publisher raises comes out of here, and leaves the record incomplete.
    """
    tally = Tally(own.record)
    lanes = Lanes([_Sender(publisher, tally) for publisher in own.publishers])
    try:
        for send in _sends(minutes, own):
            lanes.put(send)
            own.told(tally.published)
    finally:
        lanes.finish()
    own.record.complete()
    return tally.published


def _sends(minutes: Iterable[Minute], own: Feed) -> Iterator[Send]:
    for minute in minutes:
        own.pace.wait(len(minute.events))
        if own.stopping():
            break
        yield from own.gateways.add(minute)
    yield from own.gateways.rest()


class _Sender:
    """Publishes one lane's sends. After one that was given up it drops the rest, which was told on top of it."""

    def __init__(self, publisher: Publishes, tally: Tally) -> None:
        self._publisher = publisher
        self._tally = tally
        self._gave_up = False

    def __call__(self, send: Send) -> None:
        if self._gave_up:
            return
        copies = self._publisher.publish(send)
        self._tally.add(send, copies)
        self._gave_up = copies.at_least == 0

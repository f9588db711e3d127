"""Feed a hub at the requested rate: record each minute after the hub has answered, and print the progress."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TextIO

from local.feed.gateways import Send
from local.feed.lanes import Lanes
from local.feed.planned import Minute
from local.feed.record import Copies

SHORTEST_SLEEP = 0.005  # seconds: a shorter sleep costs more than it gains
LONGEST_DEBT = 2.0  # seconds of events that may be published at once after a stop
PROGRESS_EVERY = 2.0  # seconds


class Pace:
    """Keep a steady rate, in events a second; None is full speed. The clock counts seconds."""

    def __init__(self, rate: float | None, clock: Callable[[], float], sleep: Callable[[float], object]) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._due_at = clock()

    def wait(self, events: int) -> None:
        """Return when the next `events` may be published."""
        if self._rate is None:
            return
        now = self._clock()
        if self._due_at - now >= SHORTEST_SLEEP:
            self._sleep(self._due_at - now)
        self._due_at = max(self._due_at, now - LONGEST_DEBT) + events / self._rate


class Progress:
    """Print JSON objects, one a line. The rate of a line is over the time since the line before."""

    def __init__(self, out: TextIO, clock: Callable[[], float]) -> None:
        self._out = out
        self._clock = clock
        self._began = self._printed_at = clock()
        self._printed = 0

    def __call__(self, published: int) -> None:
        """Take the number of published events, and print it when a line is due."""
        now = self._clock()
        if now - self._printed_at >= PROGRESS_EVERY:
            rate = (published - self._printed) / (now - self._printed_at)
            self._printed, self._printed_at = published, now
            self._print({"published": published, "events_per_second": round(rate)})

    def end(self, published: int, **more: object) -> None:
        """Print the last line, with the rate over the whole time."""
        seconds = max(self._clock() - self._began, 1e-9)
        rate = round(published / seconds)
        self._print({"published": published, "events_per_second": rate, "seconds": round(seconds, 3), **more})

    def _print(self, line: dict[str, object]) -> None:
        print(json.dumps(line), file=self._out, flush=True)


class Publishes(Protocol):
    """Put a send into the hub."""

    def publish(self, send: Send) -> Copies:
        """Publish a send, and return how often it may now be in the hub."""


class Gathers(Protocol):
    """Make sends of minutes."""

    def add(self, minute: Minute) -> list[Send]:
        """Take a minute, and return the sends that are due."""

    def rest(self) -> list[Send]:
        """Return the sends that still wait."""


class Records(Protocol):
    """Record the published events."""

    def add(self, minute: Minute, copies: Copies) -> None:
        """Record a published minute."""

    def complete(self) -> None:
        """Mark the record as complete."""


class Tally:
    """Count and record the sends that the lanes publish, one at a time."""

    def __init__(self, record: Records) -> None:
        self._record = record
        self._lock = threading.Lock()
        self.published = 0

    def add(self, send: Send, copies: Copies) -> None:
        """Record a send that has ended, unless it certainly did not reach the hub."""
        if copies.at_most == 0:
            return
        with self._lock:
            for minute in send.minutes:
                self._record.add(minute, copies)
            self.published += send.events * copies.at_least


@dataclass(frozen=True, slots=True)
class Feed:
    """The parts of a feed: a publisher for each lane; `progress` takes the number of published events."""

    gateways: Gathers
    publishers: Sequence[Publishes]
    record: Records
    pace: Pace
    progress: Callable[[int], None]
    stopping: Callable[[], bool]


def feed(minutes: Iterable[Minute], own: Feed) -> int:
    """Publish until the minutes end or the feed is stopping, complete the record, and return the number of events.

    A feed that is stopping publishes nothing that still waits in its lanes, because the hub may let publishers wait.
    An error of a publisher is raised here, and leaves the record incomplete.
    """
    tally = Tally(own.record)
    lanes = Lanes([_Sender(publisher, tally, own.stopping) for publisher in own.publishers])
    try:
        for send in _sends(minutes, own):
            lanes.put(send)
            own.progress(tally.published)
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
    """Publish one lane's sends. After a stop, and after a send that was given up, drop the rest, which builds on it."""

    def __init__(self, publisher: Publishes, tally: Tally, stopping: Callable[[], bool]) -> None:
        self._publisher = publisher
        self._tally = tally
        self._stopping = stopping
        self._gave_up = False

    def __call__(self, send: Send) -> None:
        if self._gave_up or self._stopping():
            return
        copies = self._publisher.publish(send)
        self._tally.add(send, copies)
        self._gave_up = copies.at_least == 0

"""Feed a hub at the requested rate: record each minute after the hub has answered, and print the progress."""

import json
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple, Protocol, TextIO

from local.event_hubs import partition_index
from local.feed.planned_events import Minute
from local.feed.record import Copies

LARGEST = 100  # events in a send
LARGEST_SEND = 900_000  # bytes, of more than one minute: a hub takes 1 MiB, with keys and envelopes
ENVELOPE = 64  # bytes of an event beside its body and its key


class Send(NamedTuple):
    """The minutes that go to the hub at once, all or none.

    Sends of one `lane` stay in order, and all minutes of a sender are in one lane.
    """

    lane: int
    partition_id: str
    minutes: list[Minute]

    @property
    def events(self) -> int:
        return sum(len(minute.events) for minute in self.minutes)


class Gateways:
    """One gateway for each partition. A later minute ends the wait of those that have waited for `moment` seconds.

    The partition of a sender is the one that the hub's own hash of its key gives, and its events carry the key. Minutes
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
    whole = [event.body if event.sent is None else event.sent.envelope for event in minute.events]
    return sum(len(each) + envelope for each in whole)


DEPTH = 16  # the limit of sends that wait in a lane


class Lanes:
    """One thread for each publisher. An error of one ends all, and the next `put` or `finish` raises it."""

    def __init__(self, publishers: Sequence[Callable[[Send], None]]) -> None:
        self._failed: list[BaseException] = []
        self._lanes = [_Lane(publish, self._failed) for publish in publishers]

    def put(self, send: Send) -> None:
        """Publish a send after the earlier ones of its lane. Wait while the lane is full."""
        self._raise()
        self._lanes[send.lane % len(self._lanes)].put(send)

    def finish(self) -> None:
        """Return when every send is published."""
        for lane in self._lanes:
            lane.finish()
        self._raise()

    def _raise(self) -> None:
        if self._failed:
            raise self._failed[0]


class _Lane:
    def __init__(self, publish: Callable[[Send], None], failed: list[BaseException]) -> None:
        self._publish = publish
        self._failed = failed
        self._waiting: queue.Queue[Send | None] = queue.Queue(DEPTH)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, send: Send) -> None:
        self._waiting.put(send)

    def finish(self) -> None:
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        """Publish until None comes. After a failure drop the rest, so that `put` does not wait for a full lane."""
        while (send := self._waiting.get()) is not None:
            if self._failed:
                continue
            try:
                self._publish(send)
            except BaseException as error:  # noqa: BLE001 - it is raised in the thread that put the send
                self._failed.append(error)


SHORTEST_SLEEP = 0.005  # seconds: a shorter sleep costs more than it gains
LONGEST_DEBT = 2.0  # seconds of events that may be published at once after a stop
PROGRESS_EVERY = 2.0  # seconds


class Pace:
    """Keep a steady rate, in events a second. None is full speed. The clock counts seconds."""

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
    """The parts of a feed.

    A publisher for each lane publishes a send, and returns how often it may now be in the hub. `progress` takes the
    number of published events.
    """

    gateways: Gathers
    publishers: Sequence[Callable[[Send], Copies]]
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
    lanes = Lanes([_Sender(publish, tally, own.stopping) for publish in own.publishers])
    try:
        for minute in minutes:
            own.pace.wait(len(minute.events))
            if own.stopping():
                break
            for send in own.gateways.add(minute):
                lanes.put(send)
                own.progress(tally.published)
        for send in own.gateways.rest():
            lanes.put(send)
            own.progress(tally.published)
    finally:
        lanes.finish()
    own.record.complete()
    return tally.published


class _Sender:
    """Publish one lane's sends. After a stop, and after a send that was given up, drop the rest, which builds on it."""

    def __init__(self, publish: Callable[[Send], Copies], tally: Tally, stopping: Callable[[], bool]) -> None:
        self._publish = publish
        self._tally = tally
        self._stopping = stopping
        self._gave_up = False

    def __call__(self, send: Send) -> None:
        if self._gave_up or self._stopping():
            return
        copies = self._publish(send)
        self._tally.add(send, copies)
        self._gave_up = copies.at_least == 0

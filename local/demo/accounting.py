"""Wait until the app has accounted for every published event and settled its letters, and strike the blows."""

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from local.demo.chaos import Blow, BlowKind, Strikes
from local.feed.record import Copies, published_copies
from local.stack.app_totals import SETTLED, Books, count_accounted, count_open_letters, letters_by_cause, stops_of
from local.stack.consumers import PROGRESS_EVERY, Consumers
from local.stack.processes import Child, tail
from local.stack.stack import Stack

STEP = 0.05  # seconds


class NoProgress(Exception):
    """No event was accounted for and no letter was tried for too long. The message ends with the newest log's end."""


class Accounted(NamedTuple):
    """The published copies, the books when all was settled, and the seconds until every event was accounted for."""

    published: Copies
    books: Books
    seconds: float

    def followed_by(self, later: "Accounted") -> "Accounted":
        """Return both parts of a run together. The record of the later part holds the copies of both."""
        return Accounted(later.published, later.books.beside(self.books), self.seconds + later.seconds)


NOTHING = Accounted(Copies(0, 0), Books(0, 0, 0, 0, 0, balanced=True), 0.0)


@dataclass(frozen=True, slots=True)
class Waited:
    """The feed and the record of one part of a run, and the result of the earlier parts.

    `patience` is the limit of seconds without a newly accounted event or a tried letter.
    """

    feed: Child
    record: Path
    patience: float
    earlier: Accounted = NOTHING


class Accounting:
    """The wait of one part of a demo."""

    def __init__(self, stack: Stack, consumers: Consumers, waited: Waited) -> None:
        self._stack = stack
        self._consumers = consumers
        self._feed = waited.feed
        self._record = waited.record
        self._patience = waited.patience
        self._earlier = waited.earlier
        self._watch = consumers.watch
        self.struck: Counter[BlowKind] = Counter()
        self._published: Copies | None = None
        self._count = self._printed = self._open_letters = self._attempts = 0
        self._began = self._printed_at = self._moved_at = time.monotonic()
        self._done_at: float | None = None

    def wait(self, blows: list[Blow], strikes: Strikes, emulator: Child) -> Accounted:
        """Return when every event in the hub is accounted for, no letter is open, and every blow was struck.

        Raise ChildFailed when a process died by itself, and NoProgress when the books do not change.
        """
        for blow in blows:
            while self._count < blow.accounted:
                self._step(emulator)
            self._stack.pause(blow.delay)
            strikes[blow.kind]()
            self.struck[blow.kind] += 1
            self._moved_at = time.monotonic()
        while (accounted := self._accounted()) is None:
            self._step(emulator)
        return accounted

    def _step(self, emulator: Child) -> None:
        self._refuse_dead(emulator)
        self._stack.pause(STEP)
        if self._published is None and not self._feed.running:
            self._published = published_copies(self._record)
        store, now = self._stack.place.live, time.monotonic()
        count = count_accounted(store) - self._earlier.books.accounted
        open_letters, attempts = count_open_letters(store)
        if (count, open_letters, attempts) != (self._count, self._open_letters, self._attempts):
            self._moved_at = now
        self._count, self._open_letters, self._attempts = count, open_letters, attempts
        if self._done_at is None and self._published and count >= self._least(self._published):
            self._done_at = now
        if now - self._printed_at >= PROGRESS_EVERY:
            rate = (self._count - self._printed) / (now - self._printed_at)
            self._printed, self._printed_at = self._count, now
            print(f"{now - self._began:6.1f} s  {self._standing()}, {rate:,.0f} events/s", flush=True)

    def _refuse_dead(self, emulator: Child) -> None:
        emulator.refuse_dead()
        self._consumers.refuse_dead()
        if self._feed.exit_code():
            self._feed.refuse_dead()
        if time.monotonic() - self._moved_at > self._patience:
            log, letters = tail(self._consumers.logs[-1]), letters_by_cause(self._stack.place.live, SETTLED)
            waited_for = "; ".join([self._standing(), *letters])
            raise NoProgress(f"nothing new in {self._patience:g} s: {waited_for}; the newest log:\n{log}")

    def _accounted(self) -> Accounted | None:
        """Return the result when all is settled. The books are up to two seconds old, so `in_hub` may lag."""
        books = self._watch.books
        if self._done_at is None or self._published is None or books is None or books.in_hub is None:
            return None
        if self._open_letters:
            return None
        if books.incarnation is not None and books.incarnation == self._earlier.books.incarnation:
            return None  # the app has not read the newest one yet
        if not self._least(self._published) <= books.in_hub <= books.accounted:
            return None
        return Accounted(self._published, books, self._done_at - self._began)

    def _least(self, published: Copies) -> int:
        """Return the number of events that this part has published at least."""
        return published.at_least - self._earlier.published.at_least

    def _standing(self) -> str:
        published = f"{self._least(self._published):,}" if self._published else "a number that still grows"
        silence = f" ({self._watch.silence})" if self._watch.silence else ""
        stops = f" ({stopped})" if (stopped := stops_of(self._stack.place.live)) else ""
        letters = f", {self._open_letters:,} letters open" if self._open_letters else ""
        return f"{self._count:,} accounted for of {published}{letters}{stops}{silence}"

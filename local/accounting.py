"""Wait until the app has accounted for all that a feed published and settled its letters; strike blows meanwhile."""

import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from local.books import Books, count_accounted, count_open_letters
from local.chaos import Blow, Kind, Strikes
from local.consumers import TOLD_EVERY, Consumers
from local.feed.record import Copies, published_copies
from local.processes import Child, tail
from local.stack import Stack

STEP = 0.05


class NoProgress(Exception):
    """Nothing more was accounted for in a long time; the message ends with the newest log's last lines."""


class Accounted(NamedTuple):
    """What was published, the books when all of it was settled, and the seconds until all of it was accounted for."""

    published: Copies
    books: Books
    seconds: float


class Accounting:
    """One demo's wait. `patience` is how many seconds may pass without a newly accounted event or settled letter."""

    def __init__(self, stack: Stack, consumers: Consumers, feed: Child, record: Path, patience: float) -> None:
        self._stack = stack
        self._consumers = consumers
        self._feed = feed
        self._record = record
        self._patience = patience
        self._watch = consumers.watch
        self.struck: Counter[Kind] = Counter()
        self._published: Copies | None = None
        self._count = self._told = self._open_letters = 0
        self._began = self._told_at = self._moved_at = time.monotonic()
        self._done_at: float | None = None

    def wait(self, blows: list[Blow], strikes: Strikes, emulator: Child) -> Accounted:
        """Return when the hub holds nothing that is not accounted for, no letter is open, and every blow was struck.

        ChildFailed when a process died that was not to die, NoProgress when the books stand still.
        """
        with self._watch:
            for blow in blows:
                while self._count < blow.accounted:
                    self._step(emulator)
                self._strike(blow, strikes)
            while (accounted := self._accounted()) is None:
                self._step(emulator)
        return accounted

    def _step(self, emulator: Child) -> None:
        self._refuse_dead(emulator)
        self._stack.pause(STEP)
        if self._published is None and not self._feed.running:
            self._published = published_copies(self._record)
        store, now = self._stack.place.store, time.monotonic()
        count, open_letters = count_accounted(store), count_open_letters(store)
        if count > self._count or open_letters < self._open_letters:
            self._moved_at = now
        self._count, self._open_letters = count, open_letters
        if self._done_at is None and self._published and count >= self._published.at_least:
            self._done_at = now
        if now - self._told_at >= TOLD_EVERY:
            self._tell(now)

    def _refuse_dead(self, emulator: Child) -> None:
        emulator.refuse_dead()
        self._consumers.refuse_dead()
        if self._feed.exit_code():
            self._feed.refuse_dead()
        if time.monotonic() - self._moved_at > self._patience:
            log = tail(self._consumers.logs[-1])
            raise NoProgress(f"nothing new in {self._patience:g} s: {self._standing()}; the newest log:\n{log}")

    def _strike(self, blow: Blow, strikes: Strikes) -> None:
        self._stack.pause(blow.delay)
        strikes[blow.kind]()
        self.struck[blow.kind] += 1
        self._moved_at = time.monotonic()

    def _accounted(self) -> Accounted | None:
        """The hub is asked every two seconds only: until then it may seem to hold less than was published."""
        books = self._watch.books
        if self._done_at is None or self._published is None or books is None or books.in_hub is None:
            return None
        if self._open_letters:
            return None
        if not self._published.at_least <= books.in_hub <= books.accounted:
            return None
        return Accounted(self._published, books, self._done_at - self._began)

    def _tell(self, now: float) -> None:
        rate = (self._count - self._told) / (now - self._told_at)
        self._told, self._told_at = self._count, now
        print(f"{now - self._began:6.1f} s  {self._standing()}, {rate:,.0f} events/s", flush=True)

    def _standing(self) -> str:
        published = f"{self._published.at_least:,}" if self._published else "what is still being published"
        silence = f" ({self._watch.silence})" if self._watch.silence else ""
        letters = f", {self._open_letters:,} letters open" if self._open_letters else ""
        return f"{self._count:,} accounted for of {published}{letters}{silence}"

"""Wait until the app has accounted for all that a feed published, killing its host on the way when asked to."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from local.books import Books, count_accounted
from local.feed.record import Copies, published_copies
from local.kills import Kill
from local.processes import Child, tail
from local.stack import Stack
from local.ticking import ticking
from local.watching import Watch

TOLD_EVERY = 2.0  # seconds
STEP = 0.05


class NoProgress(Exception):
    """Nothing more was accounted for in a long time; the message ends with the host's last lines."""


class Accounted(NamedTuple):
    """What was published, the books when all of it was accounted for, and the seconds since the feed began."""

    published: Copies
    books: Books
    seconds: float


@dataclass(slots=True)
class Host:
    """The functions host that runs at the moment, and the logs of all that ran."""

    stack: Stack
    transform: str
    child: Child
    address: str
    logs: list[Path]

    @classmethod
    def start(cls, stack: Stack, transform: str) -> "Host":
        """Started and ready."""
        child, address = stack.start_host(transform)
        return cls(stack, transform, child, address, [stack.host_log])

    def kill_and_restart(self) -> None:
        """End it without mercy; the next one finds what it left."""
        self.child.kill()
        self.child, self.address = self.stack.start_host(self.transform)
        self.logs.append(self.stack.host_log)


class Accounting:
    """One demo's wait. `patience` is how many seconds may pass without a newly accounted event."""

    def __init__(self, host: Host, feed: Child, record: Path, patience: float) -> None:
        self._host = host
        self._feed = feed
        self._record = record
        self._patience = patience
        self._watch = Watch(host.address)
        self._published: Copies | None = None
        self._count = self._told = 0
        self._began = self._told_at = self._moved_at = time.monotonic()
        self._done_at: float | None = None

    def wait(self, kills: list[Kill], emulator: Child) -> Accounted:
        """Return when the hub holds nothing that is not accounted for, and every kill was made.

        ChildFailed when a process died that was not to die, NoProgress when the books stand still.
        """
        with self._watch:
            for kill in kills:
                while self._count < kill.accounted:
                    self._step(emulator)
                self._kill(kill)
            while (accounted := self._accounted()) is None:
                self._step(emulator)
        return accounted

    def _step(self, emulator: Child) -> None:
        self._refuse_dead(emulator)
        self._host.stack.pause(STEP)
        if self._published is None and not self._feed.running:
            self._published = published_copies(self._record)
        now, count = time.monotonic(), count_accounted(self._host.stack.place.store)
        if count > self._count:
            self._count, self._moved_at = count, now
        if self._done_at is None and self._published and count >= self._published.at_least:
            self._done_at = now
        if now - self._told_at >= TOLD_EVERY:
            self._tell(now)

    def _refuse_dead(self, emulator: Child) -> None:
        emulator.refuse_dead()
        self._host.child.refuse_dead()
        if self._feed.exit_code():
            self._feed.refuse_dead()
        if time.monotonic() - self._moved_at > self._patience:
            log = tail(self._host.logs[-1])
            raise NoProgress(f"no new event in {self._patience:g} s: {self._standing()}; the host's log:\n{log}")

    def _kill(self, kill: Kill) -> None:
        self._host.stack.pause(kill.delay)
        print(f"killing the functions host, process {self._host.child.pid}", flush=True)
        with ticking(TOLD_EVERY, lambda: print("        restarting the functions host", flush=True)):
            self._host.kill_and_restart()
        self._watch.move(self._host.address)
        self._moved_at = time.monotonic()

    def _accounted(self) -> Accounted | None:
        """The app asks the hub every two seconds only: until then it may seem to hold less than was published."""
        books = self._watch.books
        if self._done_at is None or self._published is None or books is None or books.in_hub is None:
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
        return f"{self._count:,} accounted for of {published}{silence}"

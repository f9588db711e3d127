"""The consumers of the hub: the functions host, or workers that share its partitions. A demo can kill either."""

import json
import threading
import urllib.request
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Protocol

from local.stack.app_totals import Watch
from local.stack.processes import Child, ChildFailed
from local.stack.stack import Stack, app_settings
from local.stack.store_totals import StoreBooks

PROGRESS_EVERY = 2.0  # seconds
SKIP_TRIES = 20  # a second apart, while a mortal host is started again
ANSWER = 30.0  # seconds until the host must answer


class Consumers(Protocol):
    """The consumers of one demo. `watch` reads their books. `logs` are those of all that ever ran."""

    watch: Watch
    logs: list[Path]

    def __str__(self) -> str:
        """Return a description for people."""

    def refuse_dead(self) -> None:
        """Raise ChildFailed when a consumer died by itself."""

    def kill_one(self) -> None:
        """Kill one consumer, and start a successor, which continues from its state."""

    def end(self) -> None:
        """End all consumers in order, so that their logs are whole."""


class Host:
    """The functions host. A killed host gets a successor, and so does one that ends with an exit code of `mortal`."""

    def __init__(self, stack: Stack, transform: str, mortal: Container[int] = ()) -> None:
        self._stack = stack
        self._transform = transform
        self._mortal = mortal
        self.deaths = 0
        self._child, self._address = stack.start_host(transform)
        self.logs = [stack.host_log]
        self.watch = Watch(self._address)

    @property
    def address(self) -> str:
        return self._address

    def __str__(self) -> str:
        return f"{self._address}/api/ops"

    def refuse_dead(self) -> None:
        while self._child.exit_code() in self._mortal:
            self.deaths += 1
            times = "once" if self.deaths == 1 else f"{self.deaths} times"
            print(f"an event has killed the functions host ({times} so far); starting it again", flush=True)
            with suppress(ChildFailed):  # it may be killed again before it is ready
                self._start()
        self._child.refuse_dead()

    def kill_one(self) -> None:
        with _restarting("the functions host", self._child):
            self._child.kill()
            self._start()

    def _start(self) -> None:
        try:
            self._child, self._address = self._stack.start_host(self._transform)
        finally:
            self.logs.append(self._stack.host_log)
        self.watch.move(self._address)

    def skip(self, batches: int) -> None:
        """Make the host lose the next batches of every partition as the real host does: checkpointed, not delivered."""
        order, headers = json.dumps({"skip": batches}).encode(), {"Content-Type": "application/json"}
        for tries in range(SKIP_TRIES):
            try:
                request = urllib.request.Request(f"{self._address}/admin/faults", order, headers)
                urllib.request.urlopen(request, timeout=ANSWER).close()
            except OSError:  # an event may have killed it at this moment
                if not self._mortal or tries + 1 == SKIP_TRIES:
                    raise
                self._stack.pause(1.0)
                self.refuse_dead()
            else:
                return

    def end(self) -> None:
        self._child.end()


class Workers:
    """Some worker processes. Chance decides which one a kill hits."""

    def __init__(self, stack: Stack, transform: str, count: int, chance: Random) -> None:
        self._stack = stack
        self._transform = transform
        self._chance = chance
        self._children = [stack.start_worker(transform) for _ in range(count)]
        self.logs = [child.output for child in self._children]
        books = StoreBooks(app_settings(stack.connection, stack.place, transform))
        self.watch = Watch(str(stack.place.live), books.read)

    def __str__(self) -> str:
        return f"{len(self._children)} workers"

    def refuse_dead(self) -> None:
        for child in self._children:
            child.refuse_dead()

    def kill_one(self) -> None:
        position = self._chance.randrange(len(self._children))
        child = self._children[position]
        with _restarting(child.name, child):
            child.kill()
            self._children[position] = self._stack.start_worker(self._transform)
        self.logs.append(self._children[position].output)

    def end(self) -> None:
        for child in self._children:
            child.end()


@contextmanager
def _restarting(name: str, child: Child) -> Iterator[None]:
    print(f"killing {name}, process {child.pid}", flush=True)
    with ticking(PROGRESS_EVERY, lambda: print(f"        restarting {name}", flush=True)):
        yield


@contextmanager
def ticking(seconds: float, action: Callable[[], None]) -> Iterator[None]:
    """Call `action` at an interval of seconds while the block runs, and not after it. The action must not fail."""
    ended = threading.Event()

    def tick() -> None:
        while not ended.wait(seconds):
            action()

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        ended.set()
        ticker.join()

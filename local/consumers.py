"""Who takes the events from the hub: the functions host, or workers that share its partitions; both can be killed."""

import json
import urllib.request
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random
from typing import Protocol

from local.processes import Child
from local.stack import Stack, app_settings
from local.store_books import StoreBooks
from local.ticking import ticking
from local.watching import Watch

TOLD_EVERY = 2.0  # seconds
ANSWER = 30.0  # seconds that the host may take for one


class Consumers(Protocol):
    """All that consume in one demo. `watch` asks for the books they keep; the logs are of all that ever ran."""

    watch: Watch
    logs: list[Path]

    def __str__(self) -> str:
        """What they are, for people."""
        ...

    def refuse_dead(self) -> None:
        """ChildFailed when one died by itself."""
        ...

    def kill_one(self) -> None:
        """End one without mercy and start another in its place, which finds what it left."""
        ...

    def end(self) -> None:
        """End all in order, so that their logs are whole."""
        ...


class Host:
    """The functions host that runs at the moment."""

    def __init__(self, stack: Stack, transform: str) -> None:
        self._stack = stack
        self._transform = transform
        self._child, self._address = stack.start_host(transform)
        self.logs = [stack.host_log]
        self.watch = Watch(self._address)

    @property
    def address(self) -> str:
        """Of the one that runs at the moment."""
        return self._address

    def __str__(self) -> str:
        """Where it answers."""
        return f"{self._address}/api/status"

    def refuse_dead(self) -> None:
        """See Consumers."""
        self._child.refuse_dead()

    def kill_one(self) -> None:
        """See Consumers."""
        with _told("the functions host", self._child):
            self._child.kill()
            self._child, self._address = self._stack.start_host(self._transform)
        self.logs.append(self._stack.host_log)
        self.watch.move(self._address)

    def skip(self, batches: int) -> None:
        """It checkpoints the next batches of every partition without delivering them, as the real host loses them."""
        asked = urllib.request.Request(f"{self._address}/admin/faults", json.dumps({"skip": batches}).encode())
        urllib.request.urlopen(asked, timeout=ANSWER).close()

    def end(self) -> None:
        """See Consumers."""
        self._child.end()


class Workers:
    """Some worker processes; which of them a kill hits is a matter of chance."""

    def __init__(self, stack: Stack, transform: str, count: int, chance: Random) -> None:
        self._stack = stack
        self._transform = transform
        self._chance = chance
        self._children = [stack.start_worker(transform) for _ in range(count)]
        self.logs = [child.output for child in self._children]
        books = StoreBooks(app_settings(stack.connection, stack.place, transform))
        self.watch = Watch(str(stack.place.store), books.read)

    def __str__(self) -> str:
        """How many."""
        return f"{len(self._children)} workers"

    def refuse_dead(self) -> None:
        """See Consumers."""
        for child in self._children:
            child.refuse_dead()

    def kill_one(self) -> None:
        """See Consumers."""
        position = self._chance.randrange(len(self._children))
        child = self._children[position]
        with _told(child.name, child):
            child.kill()
            self._children[position] = self._stack.start_worker(self._transform)
        self.logs.append(self._children[position].output)

    def end(self) -> None:
        """See Consumers."""
        for child in self._children:
            child.end()


def _told(name: str, child: Child) -> AbstractContextManager[None]:
    print(f"killing {name}, process {child.pid}", flush=True)
    return ticking(TOLD_EVERY, lambda: print(f"        restarting {name}", flush=True))

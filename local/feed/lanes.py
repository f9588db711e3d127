"""Publish in several lanes at once: each lane keeps its order, and the lanes wait for the hub side by side."""

import queue
import threading
from collections.abc import Callable, Sequence

from local.feed.gateways import Send

DEPTH = 16  # the limit of sends that wait in a lane

Publish = Callable[[Send], None]


class Lanes:
    """One thread for each publisher. An error of one ends all, and the next `put` or `finish` raises it."""

    def __init__(self, publishers: Sequence[Publish]) -> None:
        self._failed: list[BaseException] = []
        self._lanes = [_Lane(publish, self._failed) for publish in publishers]

    def put(self, send: Send) -> None:
        """Publish a send after the earlier ones of its lane; wait while the lane is full."""
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
    def __init__(self, publish: Publish, failed: list[BaseException]) -> None:
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

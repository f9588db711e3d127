"""Tell how far a feed has come: one JSON object on a line of its own, now and then and at the end."""

import json
from collections.abc import Callable
from typing import TextIO

EVERY = 2.0  # seconds


class Progress:
    """Rates are over the time since the line before."""

    def __init__(self, out: TextIO, clock: Callable[[], float]) -> None:
        self._out = out
        self._clock = clock
        self._began = self._told_at = clock()
        self._told = 0

    def __call__(self, published: int) -> None:
        """So many are published; says so when it is time."""
        now = self._clock()
        if now - self._told_at >= EVERY:
            rate = (published - self._told) / (now - self._told_at)
            self._told, self._told_at = published, now
            self._say({"published": published, "events_per_second": round(rate)})

    def end(self, published: int, **more: object) -> None:
        """The last line, over the whole time."""
        seconds = max(self._clock() - self._began, 1e-9)
        rate = round(published / seconds)
        self._say({"published": published, "events_per_second": rate, "seconds": round(seconds, 3), **more})

    def _say(self, line: dict[str, object]) -> None:
        print(json.dumps(line), file=self._out, flush=True)

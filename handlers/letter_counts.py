"""How many letters there are, without letting a request wait for it: millions of letters take a while to count."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from core.errors import HubledgerError
from core.ledger.books import LetterBooks

FAST = 0.010  # seconds: what is counted within this is counted for every request
KEEP = 5.0  # seconds that a slow count holds; then it is taken again, in the background
OLDEST = 60.0  # seconds: what is older is not shown

_background = ThreadPoolExecutor(1, thread_name_prefix="letter-counts")


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds that pass, and what is done later."""

    monotonic: Callable[[], float] = time.monotonic
    later: Callable[[Callable[[], None]], object] = _background.submit


@dataclass(frozen=True, slots=True)
class Counted:
    """The letters of one moment."""

    letters: LetterBooks
    at: datetime


class LetterCounts:
    """The newest count. The first request waits for it; later ones only where it is quick.

    `later` runs a count in the background: by one thread for all of them, for a store keeps a connection for each.
    """

    def __init__(self, count: Callable[[], LetterBooks], clock: Clock | None = None) -> None:
        self._count = count
        self._clock = clock or Clock()
        self._counting = threading.Lock()
        self._last: tuple[Counted, float, float] | None = None  # with how long it took, and when it was done

    def get(self) -> Counted:
        """The letters now, or those of some seconds ago where there are many. What the count raises, this raises."""
        last = self._last
        if last is None or last[1] < FAST:
            return self._taken()
        counted, _, done = last
        age = self._clock.monotonic() - done
        if age >= OLDEST:
            return self._taken()
        if age >= KEEP and self._counting.acquire(blocking=False):
            self._clock.later(self._take_in_turn)
        return counted

    def forget(self) -> None:
        """Letters were moved here: the next request counts anew."""
        self._last = None

    def _taken(self) -> Counted:
        with self._counting:
            return self._take()

    def _take(self) -> Counted:
        began = self._clock.monotonic()
        counted = Counted(self._count(), datetime.now(UTC))
        done = self._clock.monotonic()
        self._last = (counted, done - began, done)
        return counted

    def _take_in_turn(self) -> None:
        """A fault is for the request that waits for a count of its own, once this one is too old."""
        try:
            with suppress(HubledgerError):
                self._take()
        finally:
            self._counting.release()

"""Remember a value for some seconds, so that many requests cost one read."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar

from core.errors import HubledgerError

Found = TypeVar("Found")
_background = ThreadPoolExecutor(1, thread_name_prefix="remembered")  # one thread: a store has a connection per thread


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The life of a value, in seconds.

    A value is fresh for `fresh` seconds. After that, a request has it looked up again: in the background while it is
    younger than `limit`, else while the request waits. A look that takes less than `quick` seconds is
    repeated for every request.
    """

    fresh: float
    limit: float
    quick: float = 0.0


@dataclass(frozen=True, slots=True)
class _Look(Generic[Found]):
    found: Found
    seconds: float
    done_at: float


class Remembered(Generic[Found]):
    """A value that `look` reads. Any thread may get it."""

    def __init__(
        self,
        look: Callable[[], Found],
        lifetime: Lifetime,
        monotonic: Callable[[], float] = time.monotonic,
        later: Callable[[Callable[[], None]], object] = _background.submit,
    ) -> None:
        self._look = look
        self._lifetime = lifetime
        self._monotonic = monotonic
        self._later = later
        self._looking = threading.Lock()
        self._forgotten = 0
        self._last: _Look[Found] | None = None

    def get(self) -> Found:
        """Return the value, or raise the fault of the look that this request waits for."""
        return self._current().found

    def get_aged(self) -> tuple[Found, float]:
        """Return the value and the seconds since it was looked up, as `get` does."""
        current = self._current()
        return current.found, self._age(current)

    def _current(self) -> _Look[Found]:
        last = self._living()
        if last is None:
            with self._looking:
                last = self._living() or self._taken()  # another request may have looked while this one waited
        elif self._age(last) >= self._lifetime.fresh and self._looking.acquire(blocking=False):
            self._later(self._refresh)
        return last

    def forget(self) -> None:
        """Forget the value: the next request looks again."""
        self._forgotten += 1
        self._last = None

    def _living(self) -> _Look[Found] | None:
        last = self._last
        if last is None or last.seconds < self._lifetime.quick or self._age(last) >= self._lifetime.limit:
            return None
        return last

    def _age(self, look: _Look[Found]) -> float:
        return self._monotonic() - look.done_at

    def _taken(self) -> _Look[Found]:
        forgotten, began = self._forgotten, self._monotonic()
        found = self._look()
        done = self._monotonic()
        taken = _Look(found, done - began, done)
        if self._forgotten == forgotten:
            self._last = taken
        return taken

    def _refresh(self) -> None:
        """Look in the background. A fault changes nothing: once the value is too old, a request meets the fault."""
        try:
            with suppress(HubledgerError):
                self._taken()
        finally:
            self._looking.release()
